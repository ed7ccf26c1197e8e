"""Which slices may share a track: Perfetto draws a track as a stack, on which slices nest or follow, never cross."""

from collections.abc import Sequence


def lanes(spans: Sequence[tuple[int, int]]) -> list[int]:
    """The lane (0, 1, ...) of each span (start, end) of a thread, the lowest that is free.

    On one lane any two spans are disjoint (touching allowed) or one lies inside the other.
    """
    result = [0] * len(spans)
    open_ends: list[list[int]] = []
    for index in sorted(range(len(spans)), key=lambda i: (spans[i][0], -spans[i][1])):
        start, end = spans[index]
        for lane, ends in enumerate(open_ends):
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or end <= ends[-1]:
                ends.append(end)
                result[index] = lane
                break
        else:
            open_ends.append([end])
            result[index] = len(open_ends) - 1
    return result
