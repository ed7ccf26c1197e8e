"""A step that raises and catches exceptions, of C++ and of Python, and what is left of it without either of them.

As a program it prints the shortest CPU time of each, in nanoseconds, as JSON: of `step` and of those without.
"""

import json
import time
from contextlib import suppress

import torch

torch.set_num_threads(1)
torch.manual_seed(0)

square = torch.randn(160, 160)
left, right = torch.randn(3, 4), torch.randn(5, 6)
FRAMES = 5


def work() -> None:
    """What the step is for."""
    for _ in range(8):
        torch.mm(square, square)


def refused() -> None:
    """Products of matrices that do not fit: torch throws, and raises in Python what it has caught."""
    for _ in range(40):
        with suppress(RuntimeError):
            torch.mm(left, right)


def searched(raises: bool, frames: int = FRAMES) -> None:
    """Looks for something some frames below, where it is not."""
    if frames:
        searched(raises, frames - 1)
    elif raises:
        raise KeyError(frames)


def missed(raises: bool) -> None:
    """Searches that end in an exception, which is handled some frames above, or just end."""
    for _ in range(400):
        try:
            searched(raises)
        except KeyError:
            continue


def step() -> None:
    """With both."""
    work()
    refused()
    missed(True)


def without_cpp() -> None:
    """With the exceptions of Python alone."""
    work()
    missed(True)


def without_python() -> None:
    """With the exceptions of C++ alone."""
    work()
    refused()
    missed(False)


def shortest_ns(repeats: int = 40) -> dict[str, int]:
    """The shortest CPU time of each step; they are run in turn."""
    found: dict[str, int] = {}
    for _ in range(repeats):
        for one in (step, without_cpp, without_python):
            start = time.thread_time_ns()
            one()
            took = time.thread_time_ns() - start
            found[one.__name__] = min(found.get(one.__name__, took), took)
    return found


if __name__ == "__main__":
    print(json.dumps(shortest_ns()))
