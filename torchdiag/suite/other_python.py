"""Another Python that runs the runs of a suite in turn with this one."""

import subprocess
from typing import Final

from torchdiag.errors import TorchdiagError

_SECONDS: Final = 180.0


def command(python: str) -> list[str]:
    """What starts a worker in it: its own torchdiag's, with nothing of the current folder in the way."""
    return [python, "-P", "-m", "torchdiag.suite.worker"]


def check(python: str) -> None:
    """Find out whether it can run anything.

    Raises:
        TorchdiagError: it is no Python, or has no torch or no torchdiag with suites.
    """
    try:
        done = subprocess.run(
            [python, "-P", "-c", "import torchdiag.suite.worker, importlib.util as i; assert i.find_spec('torch')"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TorchdiagError(f"--against {python} cannot be run: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        why = "it has no torch" if last == "AssertionError" else last
        raise TorchdiagError(f"--against {python} needs torch and torchdiag installed in it: {why}")
