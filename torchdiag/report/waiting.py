"""How many of several things are done, on a terminal and between the lines that are already results."""

import sys


class Waiting:
    """One line on standard error that comes when it is told to and goes before a result is printed.

    It never appears where standard error is no terminal.
    """

    def __init__(self, total: int, noun: str) -> None:
        self._total = total
        self._noun = noun
        self._shown = 0

    def show(self, done: int) -> None:
        """Write or rewrite the line."""
        if not sys.stderr.isatty():
            return
        text = f"{done} of {self._total} {self._noun} ..."
        print(f"\r{text:<{self._shown}}", end="", file=sys.stderr, flush=True)
        self._shown = max(self._shown, len(text))

    def hide(self) -> None:
        """Wipe the line away."""
        if self._shown:
            print(f"\r{' ' * self._shown}\r", end="", file=sys.stderr, flush=True)
            self._shown = 0
