"""The process in which a target runs: reads what is asked, runs it, and tells how it ended.

Exit codes: 0 measured to the end; 1 the target raised; its own code where it exited; 2 a mistake of the user's; 70 an
error of this tool; 74 the disk; 130 interrupted. `failure` of the partial result has the particulars.
"""

import ctypes
import faulthandler
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Final, TextIO, cast

import msgspec

from torchdiag.capture import environment, gpus
from torchdiag.capture.failures import is_out_of_memory, of_exception
from torchdiag.capture.hand_over import HandOver
from torchdiag.capture.request import Request
from torchdiag.capture.run_target import BrokenError, run
from torchdiag.errors import TorchdiagError
from torchdiag.history.run_result import Failure

TARGET_RAISED: Final = 1
MISTAKE: Final = 2
OURS: Final = 70
DISK: Final = 74
INTERRUPTED: Final = 130

_PR_SET_PDEATHSIG: Final = 1
_HERE: Final = str(Path(__file__).parent)


def main() -> None:
    """Run the request named on the command line and exit."""
    request = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Request)
    _settle(request)
    options = request.options
    folder = Path(options.target).resolve().parent if options.target_kind == "script" else Path.cwd()
    hand_over = HandOver(options, Path(request.folder), environment.without_torch(folder), request.pipe)
    # Before the target is on a GPU itself.
    gpus.processes()
    sys.exit(_run(request, hand_over))


def _settle(request: Request) -> None:
    # Left alone, this process would go on measuring for nobody.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if request.pipe is not None:
        os.set_inheritable(request.pipe, False)
    if request.preload is None:
        os.environ.pop("LD_PRELOAD", None)
    else:
        os.environ["LD_PRELOAD"] = request.preload
    for stream in (sys.stdout, sys.stderr):
        # As on a terminal, so that nothing printed is lost when the process is killed.
        cast("TextIO", stream).reconfigure(line_buffering=True, errors="backslashreplace")  # pyright: ignore
    faulthandler.enable(all_threads=True)
    if hasattr(signal, "SIGUSR1"):
        # How the parent asks where a target hangs.
        faulthandler.register(signal.SIGUSR1, all_threads=True)


def _run(request: Request, hand_over: HandOver) -> int:
    try:
        run(request.options, hand_over, only_timed=request.only_timed)
    except TorchdiagError as error:
        hand_over.tell({"mistake": str(error)})
        return MISTAKE
    except BrokenError as error:
        return _broken(error.__cause__ or error, hand_over)
    except KeyboardInterrupt as error:
        return _ended(
            Failure(kind="interrupted", message="Interrupted.", traceback=_text(error)), hand_over, INTERRUPTED
        )
    except SystemExit as error:
        return _exited(error, hand_over)
    except BaseException as error:
        text = _text(error)
        print(text, end="", file=sys.stderr)
        return _ended(of_exception(error, text), hand_over, TARGET_RAISED)
    return 0


def _exited(error: SystemExit, hand_over: HandOver) -> int:
    code = error.code
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    if hand_over.result.status == "complete":
        return 0
    message = f"{hand_over.result.options.target} exited with code {code or 0} before everything was measured."
    return _ended(Failure(kind="exit", message=message, exit_code=code or 0), hand_over, code or 0)


def _broken(error: BaseException, hand_over: HandOver) -> int:
    """Something went wrong outside the target."""
    if is_out_of_memory(error):
        return _ended(of_exception(error, _text(error)), hand_over, TARGET_RAISED)
    if isinstance(error, OSError):
        hand_over.tell({"disk": _disk(error)})
        return DISK
    if isinstance(error, TorchdiagError):
        hand_over.tell({"mistake": str(error)})
        return MISTAKE
    hand_over.tell({"bug": "".join(traceback.format_exception(error))})
    return OURS


def _ended(failure: Failure, hand_over: HandOver, code: int) -> int:
    try:
        hand_over.fail(failure)
    except OSError as error:
        hand_over.tell({"disk": _disk(error)})
        return DISK
    return code


def _disk(error: OSError) -> str:
    where = f" {error.filename}" if error.filename else ""
    return f"cannot write{where}: {error.strerror or error}."


def _text(error: BaseException) -> str:
    """The traceback from the target's first frame on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HERE + os.sep):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


if __name__ == "__main__":
    main()
