"""Where a fast answer and a slow one differ."""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from reference.partition import DevicePartition
from torchdiag.timeline.result import STATE_NAMES, Breakdown
from torchdiag.trace.columns import NO_TEXT, Args, Sparse, Strings, Trace
from torchdiag.trace.vocabulary import TEXT_ARGUMENTS


def figures(breakdown: Breakdown) -> dict[int, DevicePartition]:
    """The integers of a breakdown, by device, in the form of the slow partition."""
    return {
        device.id: DevicePartition(
            window=(device.window.start_ns, device.window.end_ns),
            source=device.window.source,
            states={name: getattr(device.states, name) for name in STATE_NAMES},
            idle={cause.cause.value: cause.idle_ns for cause in device.causes},
            headline={field.name: getattr(device.headline, field.name) for field in fields(device.headline)},
        )
        for device in breakdown.devices
    }


def differences(fast: Trace, slow: Trace) -> list[str]:
    """One sentence for each column that is not equal, with its first unequal row."""
    if len(fast) != len(slow):
        return [f"{len(fast)} rows, not {len(slow)}"]
    columns: dict[str, tuple[Any, Any]] = {
        name: (getattr(fast, name), getattr(slow, name)) for name in ("phase", "ts_ns", "dur_ns")
    }
    columns["name"] = spelled(fast.name, fast.names), spelled(slow.name, slow.names)
    columns["category"] = spelled(fast.category, fast.categories), spelled(slow.category, slow.categories)
    columns["track"] = tracked(fast), tracked(slow)
    found = [
        f"{name} of row {row}: {left[row]!r}, not {right[row]!r}"
        for name, (left, right) in columns.items()
        for row in np.flatnonzero(left != right)[:1]
    ]
    for field in fields(Args):
        found += sparse_differences(field.name, fast, slow)
    found += flow_differences(fast.flow_id, slow.flow_id)
    if fast.metadata != slow.metadata:
        found.append(f"metadata: {fast.metadata!r:.500}, not {slow.metadata!r:.500}")
    return found


def spelled(codes: Any, strings: Strings) -> Any:
    """The texts of a column, as objects; None where there is none."""
    table = np.array([*strings, None], object)
    return table[np.where(codes == NO_TEXT, len(strings), codes)]


def tracked(trace: Trace) -> Any:
    table = np.empty(len(trace.tracks), object)
    table[:] = [(pid, tid) for pid, tid in zip(trace.tracks.pids, trace.tracks.tids, strict=True)]
    return table[trace.track]


def sparse_differences(field: str, fast: Trace, slow: Trace) -> Iterator[str]:
    left: Sparse[Any] = getattr(fast.args, field)
    right: Sparse[Any] = getattr(slow.args, field)
    if not np.array_equal(left.rows, right.rows):
        missing, extra = (np.setdiff1d(*pair)[:3] for pair in ((right.rows, left.rows), (left.rows, right.rows)))
        yield f"{field}: {len(left)} rows, not {len(right)}; without rows {missing}, with rows {extra}"
    elif field in TEXT_ARGUMENTS:
        pairs = set(zip(left.values.tolist(), right.values.tolist(), strict=True))
        for one, other in pairs:
            if not same_text(fast.texts[one], slow.texts[other]):
                yield f"{field}: {fast.texts[one]!r}, not {slow.texts[other]!r}"
                break
    else:
        for place in np.flatnonzero(left.values != right.values)[:1]:
            yield f"{field} of row {left.rows[place]}: {left.values[place]}, not {right.values[place]}"


def same_text(one: str, other: str) -> bool:
    """Equal as texts, or as JSON, for the slow reader does not keep the white space of the file."""
    if one == other:
        return True
    try:
        return json.loads(one, strict=False) == json.loads(other, strict=False)
    except ValueError:
        return False


def flow_differences(fast: Sparse[Any], slow: Sparse[Any]) -> Iterator[str]:
    """Ids that are no numbers have codes: those need only be alike where they are alike."""
    if not np.array_equal(fast.rows, slow.rows):
        yield f"flow_id: {len(fast)} rows, not {len(slow)}"
        return
    pairs = set(zip(fast.values.tolist(), slow.values.tolist(), strict=True))
    unlike = {(one, other) for one, other in pairs if one != other}
    codes = [one for one, _ in unlike], [other for _, other in unlike]
    if any(len(set(column)) != len(column) or max(column, default=-(2**62)) > -(2**62) for column in codes):
        yield f"flow_id: {sorted(unlike)[:3]}"
