"""The source line, operator and module that host events belong to."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import frames, sites
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import Nesting, named, nesting
from torchdiag.trace.columns import NO_TEXT, Texts, Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]
MODULE = "nn.Module: "


@dataclass(frozen=True, slots=True)
class Where:
    """Where in a person's program something happens; None for what the trace does not tell."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    operator: str | None = None
    module: str | None = None

    @property
    def label(self) -> str:
        """`train.py:88 step`, else the operator or the module, else ""."""
        if self.file is not None and self.line is not None:
            return frames.Frame(self.file, self.line, self.function or "").label.rstrip()
        return self.operator or self.module or ""


@dataclass(frozen=True, eq=False)
class Whereabouts:
    """Answers where rows are; rows of device activities are asked for by their launch."""

    trace: Trace
    landmarks: sites.Landmarks
    tree: Nesting
    modules: NDArray[np.bool_]

    def of(self, rows: Rows) -> list[Where]:
        """Where each of the host rows is: innermost line of a person's code, outermost operator, innermost module.

        What runs in a backward pass is at the line of its forward operator, where that is known.
        """
        trace = self.trace
        found = sites.sites(self.landmarks, trace.track[rows], trace.ts_ns[rows], np.ones(len(rows), np.bool_))
        known: dict[tuple[int, int, int, int, int], Where] = {}
        answers: list[Where] = []
        columns = (found.operator, found.frame, found.call, found.stack, self.tree.nearest(rows, self.modules))
        for operator, frame, call, stack, module in zip(*(column.tolist() for column in columns), strict=True):
            key = (
                self._name(operator),
                self._name(frame),
                self._name(module),
                self._text(trace.args.call_from, call),
                self._text(trace.args.call_stack, stack),
            )
            if key not in known:
                known[key] = self._where(*key)
            answers.append(known[key])
        return answers

    def grouped(self, rows: Rows) -> list[tuple[Where, Rows]]:
        """The rows by where they are, the place with the most rows first."""
        places = self.of(rows)
        counts = Counter(places)
        order = {place: number for number, (place, _) in enumerate(counts.most_common())}
        number = np.array([order[place] for place in places], np.int64)
        return [(place, rows[number == index]) for place, index in order.items()]

    def most(self, rows: Rows) -> Where:
        """Where most of the rows are."""
        return self.grouped(rows)[0][0] if len(rows) else Where()

    def _name(self, row: int) -> int:
        return int(self.trace.name[row]) if row >= 0 else NO_TEXT

    @staticmethod
    def _text(column: Texts, row: int) -> int:
        if row < 0:
            return NO_TEXT
        return int(column.at(np.array([row]), NO_TEXT)[0])

    def _where(self, operator: int, frame: int, module: int, call: int, stack: int) -> Where:
        trace = self.trace
        found = frames.parse(trace.names[frame]) if frame >= 0 else None
        if found is not None and call != NO_TEXT:
            found = found.running(trace.texts[call])
        if found is None and stack != NO_TEXT:
            found = frames.innermost_user(frames.call_stack(trace.texts[stack]))
        return Where(
            file=found.file if found else None,
            line=found.line if found else None,
            function=found.function if found else None,
            operator=trace.names[operator] if operator >= 0 else None,
            module=trace.names[module].removeprefix(MODULE) if module >= 0 else None,
        )


def whereabouts(facts: Facts) -> Whereabouts:
    """Answers where host rows are in a person's program."""
    trace = facts.trace
    tree = facts.get(nesting)
    modules = named(trace, Kind.PYTHON, lambda name: name.startswith(MODULE))
    return Whereabouts(trace, sites.Landmarks.of(trace), tree, tree.mask(modules))
