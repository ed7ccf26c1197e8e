"""What is compared: each arm is a command and a test of whether it gave the answer it was asked for."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from child import FailedError

RESULT = "RESULT "
"""The peers print a lot; the line that starts so holds what they were asked for."""

GUNZIP = """
import gzip, sys
total = 0
with gzip.open(sys.argv[1]) as packed:
    while chunk := packed.read(1 << 20):
        total += len(chunk)
print("RESULT", total)
"""

JSON_LOAD = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    print("RESULT", len(json.load(file)["traceEvents"]))
"""

HTA = """
import sys
from pathlib import Path
from hta.trace_analysis import TraceAnalysis
path = Path(sys.argv[1])
analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))
table = analysis.get_temporal_breakdown(visualize=False)
print("RESULT", table.to_json(orient="records"))
"""

TRACELENS = """
import sys
from TraceLens import TreePerfAnalyzer
table = TreePerfAnalyzer.from_file(sys.argv[1]).get_df_gpu_timeline()
print("RESULT", table.to_json(orient="records"))
"""

CAN_IMPORT = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"


@dataclass(frozen=True)
class Subject:
    """The trace that every arm reads."""

    plain: Path
    packed: Path
    small: Path
    events: int
    size: int


@dataclass(frozen=True)
class Arm:
    """One line of the table: how to run it, how often, and how to see that it worked.

    `checks` takes the output and the subject and says in a few words what was found; it raises `FailedError` when that
    is not an answer.
    """

    name: str
    command: Callable[[Subject], list[str]]
    checks: Callable[[str, Subject], str]
    repeats: int = 1
    environment: dict[str, str] = field(default_factory=dict[str, str])


def arms(*, hta_python: str, tracelens: Path | None, tracelens_python: str, repeats: int) -> dict[str, Arm]:
    """All arms, by name, in the order in which they run: the short ones first, as the long ones fill the memory."""

    def torchdiag(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "torchdiag", *arguments]

    def script(python: str, text: str, path: Path) -> list[str]:
        return [python, "-c", text, str(path)]

    every = [
        Arm("torchdiag --help", lambda _: torchdiag("--help"), says_help, max(repeats, 5)),
        Arm("torchdiag small", lambda on: torchdiag("breakdown", "--json", str(on.small)), sums_up, max(repeats, 5)),
        Arm("torchdiag", lambda on: torchdiag("breakdown", "--json", str(on.plain)), sums_up_all, repeats),
        Arm("torchdiag .gz", lambda on: torchdiag("breakdown", "--json", str(on.packed)), sums_up_all, repeats),
        Arm("gunzip", lambda on: script(sys.executable, GUNZIP, on.packed), counts_bytes, repeats),
        Arm("json.load", lambda on: script(sys.executable, JSON_LOAD, on.plain), counts_events),
        Arm("HTA", lambda on: script(hta_python, HTA, on.plain), has_idle_time),
    ]
    if tracelens is not None:
        path = {"PYTHONPATH": str(tracelens)}
        every.append(
            Arm("TraceLens", lambda on: script(tracelens_python, TRACELENS, on.plain), has_rows, environment=path)
        )
    return {arm.name: arm for arm in every}


def result(output: str) -> str:
    """What follows `RESULT` on its line."""
    lines = [line for line in output.splitlines() if line.startswith(RESULT)]
    if not lines:
        raise FailedError(f"no result in the output: {output[-300:]!r}")
    return lines[-1].removeprefix(RESULT)


def says_help(output: str, _: Subject) -> str:
    """The help names the command."""
    if "breakdown" not in output:
        raise FailedError("the help does not name the command `breakdown`")
    return "help"


def sums_up(output: str, _: Subject) -> str:
    """Every device's states and headline sum to its window, and its causes to the idle time."""
    report = json.loads(output)
    if not report["devices"]:
        raise FailedError("no device in the breakdown")
    for device in report["devices"]:
        window = device["window"]["end_ns"] - device["window"]["start_ns"]
        states, causes, headline = (device[key] for key in ("states_ns", "idle_ns", "headline_ns"))
        if not window == sum(states.values()) == sum(headline.values()) or states["idle"] != sum(causes.values()):
            raise FailedError(f"device {device['id']}: the parts do not sum to the whole")
    first = report["devices"][0]
    share = first["states_ns"]["idle"] / (first["window"]["end_ns"] - first["window"]["start_ns"])
    return f"{len(report['devices'])} device(s), idle {share:.2%}"


def sums_up_all(output: str, subject: Subject) -> str:
    """As `sums_up`, of a trace read whole."""
    events = json.loads(output)["trace"]["events"]
    if events != subject.events:
        raise FailedError(f"read {events} events of {subject.events}")
    return sums_up(output, subject)


def counts_bytes(output: str, subject: Subject) -> str:
    """All bytes came out."""
    if int(result(output)) != subject.size:
        raise FailedError(f"{result(output)} bytes of {subject.size}")
    return f"{subject.size / 1e9:.2f} GB"


def counts_events(output: str, subject: Subject) -> str:
    """All events came out."""
    if int(result(output)) != subject.events:
        raise FailedError(f"{result(output)} events of {subject.events}")
    return f"{subject.events} events"


def has_idle_time(output: str, _: Subject) -> str:
    """HTA's table has one row with the share of idle time."""
    (row,) = json.loads(result(output))
    return f"idle {row['idle_time_pctg']:.2f}%"


def has_rows(output: str, _: Subject) -> str:
    """TraceLens's table has its row of idle time."""
    rows = {row["type"]: row for row in json.loads(result(output))}
    return f"idle {rows['idle_time']['percent']:.2f}%"
