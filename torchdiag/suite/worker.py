"""One run of a suite, in a process of its own: runs it, works its figures out, writes its outcome.

It ends with the process that started it, and the process that it starts in turn ends with it.
"""

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from torchdiag import api, profiling
from torchdiag.api import Breakdown
from torchdiag.errors import TorchdiagError
from torchdiag.history.run_result import RESULT, Failure, RunResult, write
from torchdiag.report.figures import size
from torchdiag.suite import outcome as outcomes
from torchdiag.suite import skips
from torchdiag.suite.diagnosis import diagnosed
from torchdiag.suite.figures_of_run import figures
from torchdiag.suite.memory_limit import MemoryWatch
from torchdiag.suite.outcome import Outcome
from torchdiag.suite.worker_order import Order

_PR_SET_PDEATHSIG: Final = 1


def main() -> None:
    """Run the order on standard input, and say on standard output what has been done, a line each."""
    # Left alone, this process would go on measuring for nobody.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    if os.getppid() != order.parent:
        # It ended before it could be followed.
        sys.exit(1)
    done = run(order, lambda text: print(text, flush=True))
    outcomes.write(done, Path(order.folder))


def run(order: Order, on_event: Callable[[str], None]) -> Outcome:
    """Run it; whatever goes wrong is in the outcome."""
    began, clock = datetime.now(UTC), time.monotonic()
    try:
        done = _measured(order, on_event)
    except TorchdiagError as error:
        # The model cannot do what the suite asks here (no such device, no such mode): nothing of it has failed.
        status = "skipped" if order.case.options.target_kind == "model" else "failed"
        done = _ended(order, status, "mistake", str(error))
    except KeyboardInterrupt:
        done = _ended(order, "interrupted", "interrupted", "Interrupted.")
    except Exception as error:
        traceback.print_exc()
        done = _ended(order, "failed", "torchdiag", f"torchdiag failed: {_first_line(error)}")
    return msgspec.structs.replace(
        done, began=began.isoformat(timespec="milliseconds"), wall_s=round(time.monotonic() - clock, 3), jobs=order.jobs
    )


def _measured(order: Order, on_event: Callable[[str], None]) -> Outcome:
    skipped = skips.reason(order.case)
    if skipped is not None:
        return _ended(order, "skipped", *skipped)
    folder = Path(order.folder)
    options = msgspec.structs.replace(order.case.options, device=order.device)
    watch = MemoryWatch(order.memory_bytes) if order.memory_bytes is not None else None
    if watch is None:
        done = profiling.run(options, folder, on_event)
    else:
        with watch:
            done = profiling.run(options, folder, on_event)
    result = done.result
    if watch is not None and watch.exceeded_bytes is not None and result.failure is not None:
        result = _out_of_memory(result, folder, watch.exceeded_bytes, order.memory_bytes or 0)
    failure = result.failure
    if failure is not None and failure.kind == "interrupted":
        return _ended(order, "interrupted", "interrupted", failure.message)
    told = _ended(order, result.status, failure.kind if failure else "", failure.message if failure else "")
    told = msgspec.structs.replace(told, tuned_batch=result.tune.chosen if result.tune is not None else None)
    return _with_figures(told, result, done.breakdown, done.problem, folder)


def _with_figures(told: Outcome, result: RunResult, breakdown: Breakdown | None, problem: str, folder: Path) -> Outcome:
    """What was measured is kept also where working it out fails."""
    problems = [problem] if problem else []
    found = None
    findings = None
    try:
        trace = api.load(folder) if breakdown is not None else None
        found = figures(result, breakdown, trace)
    except Exception as error:
        traceback.print_exc()
        problems.append(f"the figures could not be worked out: {_first_line(error)}")
    if breakdown is not None:
        try:
            findings = diagnosed(folder)
        except Exception as error:
            traceback.print_exc()
            problems.append(f"the diagnosis failed: {_first_line(error)}")
    return msgspec.structs.replace(told, figures=found, findings=findings, problem="; ".join(problems))


def _out_of_memory(result: RunResult, folder: Path, used: int, limit: int) -> RunResult:
    message = f"It used {size(used)} of memory, more than the limit of {size(limit)} (`memory_gb`), so it was ended."
    failure = msgspec.structs.replace(
        result.failure or Failure(kind="out-of-memory", message=""), kind="out-of-memory", message=message
    )
    result = msgspec.structs.replace(result, failure=failure)
    write(result, folder / RESULT)
    return result


def _ended(order: Order, status: outcomes.Status, kind: str, message: str) -> Outcome:
    return Outcome(case=order.case, status=status, began="", kind=kind, message=message)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__


if __name__ == "__main__":
    main()
