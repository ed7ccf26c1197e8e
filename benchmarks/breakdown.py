"""How fast is `torchdiag breakdown`, and how much memory does it take, next to others on the same trace?

    python benchmarks/breakdown.py --source REAL_TRACE.json.gz --hta-python /path/to/venv/bin/python

makes a trace of about 1 GB by repeating a small one (`repeat_trace.py`), reads it with torchdiag, with torchdiag from
`.gz`, with nothing but Python's gunzip, with the standard library's `json.load`, with HTA and, where a checkout is
given, with TraceLens, each in a process of its own, and prints one table and the goals beside what was measured. HTA
and TraceLens do their loading and their temporal breakdown; torchdiag does its whole command, causes and places
included. Each arm must give its answer, or the table says how it failed.

HTA 0.5.0 wants a virtual environment of its own:

    python -m venv hta && hta/bin/pip install HolisticTraceAnalysis==0.5.0 'pandas>=2.2,<3'

With `--scaling` torchdiag alone reads traces of 0.25 GB, 0.5 GB, 1 GB and so on up to `--max-size`. A machine that does
other work at the same time measures that work too: then look at the CPU seconds.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from arms import CAN_IMPORT, Arm, Subject, arms
from child import Cost, FailedError, median, run
from repeat_trace import size_of

HERE = Path(__file__).parent
SHIPPED = HERE.parent / "traces" / "training_step.json.gz"
SMALL_SIZE = "15MB"
SCALING_START = 250_000_000
READ_PACKED = {"torchdiag .gz", "gunzip"}
"""The arms that read the trace compressed."""


@dataclass(frozen=True)
class Goal:
    """What was promised, and what came out."""

    text: str
    limit: float
    measured: float
    unit: str
    at_least: bool
    note: str = ""

    def line(self) -> str:
        """One row of the table of goals."""
        met = self.measured >= self.limit if self.at_least else self.measured <= self.limit
        sign = ">=" if self.at_least else "<="
        number = f"{self.measured:.1f}" if self.measured >= 10 else f"{self.measured:.2f}"
        return row(
            self.text,
            f"{sign} {self.limit:g}{self.unit}",
            f"{number}{self.unit}",
            "met" if met else "MISSED",
            self.note,
        )


def main() -> None:
    """The command line."""
    options = parse_options()
    source = options.source.resolve()
    with tempfile.TemporaryDirectory(prefix="torchdiag-benchmark-", dir=options.folder) as name:
        folder = Path(name)
        if options.scaling:
            scale(source, folder, size_of(options.max_size), options.repeats)
        else:
            compare(options, source, folder)


def parse_options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=SHIPPED, help="the trace to repeat, .json or .json.gz")
    parser.add_argument("--size", default="1GB", help="size of the JSON text to make (default 1GB)")
    parser.add_argument("--only", nargs="+", metavar="ARM", help="run only these arms, named as in the table")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each short arm, of which the median counts")
    parser.add_argument("--hta-python", default=sys.executable, help="a Python that imports HTA (default: this one)")
    parser.add_argument("--tracelens", type=Path, metavar="CHECKOUT", help="a checkout of TraceLens")
    parser.add_argument("--tracelens-python", default=sys.executable, help="a Python with TraceLens's dependencies")
    parser.add_argument("--scaling", action="store_true", help="torchdiag alone, on larger and larger traces")
    parser.add_argument("--max-size", default="2GB", help="where --scaling ends (default 2GB)")
    parser.add_argument("--folder", type=Path, help="where to put the large files for a while (default: the usual)")
    return parser.parse_args()


# Comparing ------------------------------------------------------------------------------------------------------------


def compare(options: argparse.Namespace, source: Path, folder: Path) -> None:
    """Run the arms and print the two tables."""
    chosen = choose(options)
    size = size_of(options.size)
    names = {arm.name for arm in chosen}
    print(machine(options.hta_python if "HTA" in names else None))
    subject = make(source, folder, size, packed=bool(names & READ_PACKED), small="torchdiag small" in names)
    print(f"{subject.plain.name}: {source.name} repeated, {subject.size / 1e9:.2f} GB, {subject.events:,} events\n")
    print(row("arm", "wall s", "CPU s", "peak MB", "result"))
    print(row("---", "---:", "---:", "---:", "---"))
    costs: dict[str, Cost] = {}
    for arm in chosen:
        try:
            costs[arm.name], found = measure(arm, subject, folder)
        except FailedError as error:
            print(row(arm.name, "-", "-", "-", f"FAILED {' '.join(str(error).split())[-160:]}"), flush=True)
            continue
        cost = costs[arm.name]
        print(
            row(arm.name, f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}", f"{cost.peak_bytes / 1e6:.0f}", found), flush=True
        )
    print(f"\n{row('goal', 'promised', 'measured', '', '')}\n{row('---', '---', '---', '---', '---')}")
    for goal in goals(costs, subject.size):
        print(goal.line())


def choose(options: argparse.Namespace) -> list[Arm]:
    """The arms asked for; HTA is left out, with a word, where it was not asked for and cannot be imported."""
    every = arms(
        hta_python=options.hta_python,
        tracelens=options.tracelens and options.tracelens.resolve(),
        tracelens_python=options.tracelens_python,
        repeats=options.repeats,
    )
    unknown = set(options.only or []) - set(every)
    if unknown:
        sys.exit(f"no arm called {', '.join(sorted(unknown))}; there are: {', '.join(every)}")
    if not options.only and subprocess.run([options.hta_python, "-c", CAN_IMPORT, "hta"], check=False).returncode:
        print("HTA is left out: this Python cannot import it, see --hta-python", file=sys.stderr)
        del every["HTA"]
    return [arm for name, arm in every.items() if not options.only or name in options.only]


def make(source: Path, folder: Path, size: int, *, packed: bool = False, small: bool = False) -> Subject:
    """Write the large trace, and what else is wanted, each in a child so that this process stays small."""

    def repeat(name: str, wanted: str, *more: str) -> int:
        command = [sys.executable, str(HERE / "repeat_trace.py"), str(source), name, wanted, *more]
        return int(run(command, folder=folder).output)

    events = repeat("large.json", str(size), *(["--gz"] if packed else []))
    if small:
        repeat("small.json", SMALL_SIZE)
    large = folder / "large.json"
    return Subject(large, folder / "large.json.gz", folder / "small.json", events, large.stat().st_size)


def measure(arm: Arm, subject: Subject, folder: Path) -> tuple[Cost, str]:
    """The median cost of an arm, and what it found."""
    costs = [run(arm.command(subject), folder=folder, environment=arm.environment) for _ in range(arm.repeats)]
    return median(costs), arm.checks(costs[-1].output, subject)


def goals(costs: dict[str, Cost], size: int) -> Iterator[Goal]:
    """The promises for which both sides were measured."""
    for name, cost in costs.items():
        if name == "torchdiag --help":
            yield Goal("torchdiag --help", 0.25, cost.wall_s, " s", at_least=False)
        elif name == "torchdiag small":
            yield Goal(f"torchdiag breakdown, {SMALL_SIZE}", 0.5, cost.wall_s, " s", at_least=False)
    if "torchdiag" in costs:
        own = costs["torchdiag"]
        yield Goal("peak memory, share of the file", 0.5, own.peak_bytes / size, "", at_least=False)
        for peer, factor in (("json.load", 15), ("HTA", 50), ("TraceLens", 30)):
            if peer in costs:
                ratio = costs[peer].wall_s / own.wall_s
                by_cpu = f"{costs[peer].cpu_s / own.cpu_s:.1f}x by CPU seconds"
                yield Goal(f"faster than {peer}", factor, ratio, "x", at_least=True, note=by_cpu)
    if "torchdiag .gz" in costs and "gunzip" in costs:
        packed, alone = costs["torchdiag .gz"], costs["gunzip"]
        ratio = packed.wall_s / alone.wall_s
        by_cpu = f"{packed.cpu_s / alone.cpu_s:.1f}x by CPU seconds"
        yield Goal(".gz, time of gunzip alone", 1, ratio, "x", at_least=False, note=by_cpu)


# Scaling --------------------------------------------------------------------------------------------------------------


def scale(source: Path, folder: Path, largest: int, repeats: int) -> None:
    """Read larger and larger traces; the seconds a gigabyte takes should stay what they are."""
    arm = arms(hta_python="", tracelens=None, tracelens_python="", repeats=repeats)["torchdiag"]
    print(machine(None) + "\n")
    print(row("GB", "wall s", "CPU s", "wall s/GB", "peak MB", "events"))
    print(row("---:", "---:", "---:", "---:", "---:", "---:"))
    size = SCALING_START
    while size <= largest:
        subject = make(source, folder, size)
        cost, _ = measure(arm, subject, folder)
        gigabytes = subject.size / 1e9
        seconds = (f"{value:.2f}" for value in (gigabytes, cost.wall_s, cost.cpu_s, cost.wall_s / gigabytes))
        print(row(*seconds, f"{cost.peak_bytes / 1e6:.0f}", f"{subject.events:,}"), flush=True)
        size *= 2


# Saying ---------------------------------------------------------------------------------------------------------------


def row(*cells: str) -> str:
    """One row of a Markdown table."""
    first, *others = cells
    return f"| {first:32} | " + " | ".join(f"{cell:>10}" for cell in others) + " |"


def machine(hta_python: str | None) -> str:
    """Processor, cores and versions."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    parts = [model, f"{os.cpu_count()} cores", platform.system(), f"Python {platform.python_version()}"]
    parts.append(versions(sys.executable, "torchdiag", "numpy"))
    if hta_python is not None:
        parts.append(f"for HTA {versions(hta_python, 'HolisticTraceAnalysis', 'pandas', 'numpy')}")
    return ", ".join(parts)


def versions(python: str, *packages: str) -> str:
    """Versions of installed packages under another Python."""
    script = (
        "import sys\nfrom importlib.metadata import version, PackageNotFoundError\n"
        "for name in sys.argv[1:]:\n"
        "    try: print(name, version(name))\n"
        "    except PackageNotFoundError: print(name, 'not installed')\n"
    )
    answer = subprocess.run([python, "-c", script, *packages], capture_output=True, text=True, check=False)
    return ", ".join(answer.stdout.splitlines()) or f"nothing: {python} did not run"


if __name__ == "__main__":
    main()
