"""How a target's end becomes a sentence."""

import errno
import signal
from pathlib import Path
from typing import Final

from torchdiag.history.run_result import Failure

_ADVICE: Final = "Use a smaller batch (`--batch-size`), or `--size tiny` for a suite model."
# What torch says where it has no exception type of its own: the CPU's allocator, and old CUDA versions.
_OUT_OF_MEMORY: Final = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory")
_COUNTERS: Final = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))


def of_exception(error: BaseException, traceback: str) -> Failure:
    """What the target raised."""
    what = _first_line(error)
    if is_out_of_memory(error):
        return Failure(
            kind="out-of-memory", message=f"Out of memory: {what}. {_ADVICE}", exit_code=1, traceback=traceback
        )
    return Failure(kind="exception", message=f"The target raised {what}", exit_code=1, traceback=traceback)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was what was missing, on the host or on a device."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    if type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in _OUT_OF_MEMORY)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    name = type(error).__qualname__
    return f"{name}: {lines[0]}" if lines else name


def of_signal(number: int, *, out_of_memory: bool) -> Failure:
    """The process was ended by a signal that this tool did not send."""
    name = _signal_name(number)
    if out_of_memory:
        message = f"The system killed the process ({name}) because memory ran out. {_ADVICE}"
        return Failure(kind="out-of-memory", message=message, signal=name)
    meaning = {
        "SIGKILL": "somebody killed it, or the system did because memory ran out (see `dmesg`)",
        "SIGSEGV": "it crashed in native code; the output ends with where Python was",
        "SIGBUS": "it crashed in native code; too little shared memory (/dev/shm) does that",
        "SIGABRT": "it aborted in native code; the output says why",
        "SIGFPE": "it crashed in native code",
        "SIGILL": "it used an instruction that this processor does not have",
        "SIGTERM": "somebody ended it",
    }.get(name, "")
    return Failure(
        kind="killed", message=f"The process was ended by {name}" + (f": {meaning}." if meaning else "."), signal=name
    )


def of_exit(code: int, target: str) -> Failure:
    """The process ended by itself, without a word, before everything was measured (`os._exit`)."""
    return Failure(
        kind="exit", message=f"{target} exited with code {code} before everything was measured.", exit_code=code
    )


def of_timeout(seconds: float, *, traceback: str, stacks: str) -> Failure:
    """The process was ended because its time was up. `traceback` is the target's own, where it was still able to give
    one; `stacks` is what `faulthandler` printed of all threads, innermost frame first.
    """
    calls = [line.strip() for line in traceback.splitlines() if line.lstrip().startswith('File "')]
    innermost = calls[-1:] or [line.strip() for line in stacks.splitlines() if line.lstrip().startswith('File "')][:1]
    where = f" It was at {innermost[0].removeprefix('File ')}." if innermost else ""
    message = f"Not finished after {seconds:g} s, the limit given (`--timeout`), so it was ended.{where}"
    return Failure(kind="timeout", message=message, traceback=traceback or stacks)


def interrupted() -> Failure:
    """The user ended it."""
    return Failure(kind="interrupted", message="Interrupted.")


def oom_kills() -> int:
    """How often the system has killed a process of this container for want of memory; 0 where it does not say."""
    for file in _COUNTERS:
        try:
            for line in file.read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
        except (OSError, ValueError):
            continue
    return 0


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
