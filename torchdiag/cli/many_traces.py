"""Many traces broken down at once, each in a process of its own, the outcomes in the order of the files."""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from torchdiag.cli.breakdown_options import Options
from torchdiag.errors import TorchdiagError
from torchdiag.timeline.result import Breakdown

_PATIENCE_S = 1.0
_DIED = "the process that read it was killed; it may have run out of memory"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file: a breakdown or an error; `bug` is the traceback of an error of ours."""

    path: str
    breakdown: Breakdown | None = None
    error: str = ""
    bug: str = ""


def outcomes(paths: Sequence[str], options: Options, waiting: Callable[[int], None]) -> Iterator[Outcome]:
    """Yield the outcome of each file as soon as it and those before it are known.

    While there is nothing to yield, `waiting` is told every second how many files are done. Whoever stops listening,
    be it by Ctrl-C, ends the processes.
    """
    answered = 0
    try:
        with _Pool(min(len(paths), _processors())) as pool:
            futures = [pool.submit(path, options) for path in paths]
            for future in futures:
                while not wait([future], _PATIENCE_S).done:
                    waiting(sum(other.done() for other in futures))
                yield future.result()
                answered += 1
    except BrokenProcessPool:
        # One process died and took the pool with it. One at a time it shows whose file that was.
        for path in paths[answered:]:
            yield _alone(path, options)


def break_down(path: str, options: Options) -> Outcome:
    """The outcome of one file. Runs in a worker."""
    from torchdiag import api  # noqa: PLC0415 - numpy and the scanner, which the process that waits never needs

    try:
        found = api.breakdown(path, steps=options.steps, window=options.window, device=options.device, top=options.top)
    except TorchdiagError as error:
        return Outcome(path, error=str(error))
    except Exception as error:
        return Outcome(path, error=f"error in torchdiag: {type(error).__name__}: {error}", bug=traceback.format_exc())
    return Outcome(path, found)


def _alone(path: str, options: Options) -> Outcome:
    try:
        with _Pool(1) as pool:
            return pool.submit(path, options).result()
    except BrokenProcessPool:
        return Outcome(path, error=_DIED)


class _Pool:
    def __init__(self, workers: int) -> None:
        # Not fork: the parent may have threads, and a forked copy of a held lock never opens.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["torchdiag.api"])
        self._executor = ProcessPoolExecutor(workers, context, _let_go_on_interrupt)

    def __enter__(self) -> "_Pool":
        return self

    def submit(self, path: str, options: Options) -> "Future[Outcome]":
        return self._executor.submit(break_down, path, options)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._executor.shutdown()
            return
        self._executor.shutdown(wait=False, cancel_futures=True)
        for worker in multiprocessing.active_children():
            worker.terminate()


def _let_go_on_interrupt() -> None:
    # Ctrl-C reaches the whole process group: a worker ends without a traceback, the parent tells.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _processors() -> int:
    return len(os.sched_getaffinity(0))
