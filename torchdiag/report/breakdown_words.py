"""What the figures of a breakdown are called, and the sentence that sums them up."""

from dataclasses import dataclass

from torchdiag.report.figures import counted, duration, rough_percent
from torchdiag.report.plain_text import plain, shorten
from torchdiag.timeline.result import Breakdown, Cause, DeviceBreakdown, HostBreakdown, Place, Window
from torchdiag.trace.quality import CUT_SHORT

NOT_RECORDED = "gpu-not-recorded"
"""Quality code of a trace with launch calls and no device activity."""

HOST_ONLY = "host-only"
"""Quality code of a trace with neither."""

STATES = {
    "compute": "kernels that compute",
    "communication": "collectives, peer copies",
    "memory": "memsets, copies on the device",
    "transfer": "copies to or from the host",
    "idle": "nothing ran",
}

CAUSES = {
    Cause.PYTHON: ("Python", "Python code ran"),
    Cause.FRAMEWORK: ("framework", "PyTorch operators ran on the CPU"),
    Cause.LAUNCH: ("launch", "calls that launch kernels"),
    Cause.LAUNCH_LATENCY: ("launch latency", "launched, not started yet"),
    Cause.COPY_CALL: ("copy call", "calls that start copies"),
    Cause.SYNC: ("sync", "the host waited for the GPU"),
    Cause.ALLOCATION: ("allocation", "memory allocated or freed"),
    Cause.RUNTIME: ("runtime", "other runtime calls"),
    Cause.DATALOADER: ("data loader", "no batch ready"),
    Cause.PROFILER: ("profiler", "the profiler's own work"),
    Cause.QUEUED: ("queued", "submitted, waiting on the GPU"),
    Cause.UNATTRIBUTED: ("unattributed", "no launch call in the trace"),
    Cause.UNKNOWN: ("unknown", "graph replays, not recorded"),
}
"""Name and meaning of each cause."""

_LOSSES = {
    Cause.PYTHON: "waiting for Python",
    Cause.FRAMEWORK: "waiting for PyTorch operators on the CPU",
    Cause.LAUNCH: "in calls that launch kernels",
    Cause.LAUNCH_LATENCY: "between a launch and the start of its kernel",
    Cause.COPY_CALL: "in calls that start copies",
    Cause.SYNC: "after the host waited for the GPU",
    Cause.ALLOCATION: "allocating or freeing memory",
    Cause.RUNTIME: "in runtime calls",
    Cause.DATALOADER: "waiting for the data loader",
    Cause.PROFILER: "in the profiler's own work",
    Cause.QUEUED: "with work queued that waited on the GPU",
    Cause.UNATTRIBUTED: "idle for a reason the trace does not tell",
}
_UNKNOWN = "cannot be told, as the kernels of graph replays were not recorded"

_SMALL_LOSS = 0.03
_LARGE_PART = 0.1
_MOSTLY = 0.5
_ALL = 0.95
_LONGEST_PLACE = 80


@dataclass(frozen=True, slots=True)
class Loss:
    """Idle time of one cause: nanoseconds, the cause, and the place most of it comes from."""

    nanoseconds: int
    cause: Cause
    place: Place | None


def device_name(device: DeviceBreakdown) -> str:
    """`GPU 0`; `MTIA 1`, `NPU 0`, `HPU 0` for what is not called a GPU."""
    kind = plain(device.kind).upper()
    return f"{kind if kind in {'MTIA', 'NPU', 'HPU', 'XPU', 'AIU'} else 'GPU'} {device.id}"


def causes_by_time(device: DeviceBreakdown) -> list[Cause]:
    """The causes that cost anything, the costliest first."""
    costly = [cause for cause in device.causes if cause.idle_ns]
    return [cause.cause for cause in sorted(costly, key=lambda cause: -cause.idle_ns)]


def largest_loss(device: DeviceBreakdown) -> Loss | None:
    """The costliest of the idle causes; None for a device that was never idle.

    Time that cannot be judged is no loss.
    """
    losses = [
        Loss(cause.idle_ns, cause.cause, cause.places[0] if cause.places else None)
        for cause in device.causes
        if cause.cause is not Cause.UNKNOWN
    ]
    largest = max(losses, key=lambda loss: loss.nanoseconds)
    return largest if largest.nanoseconds else None


def answer(breakdown: Breakdown) -> str:
    """The page's first line: one sentence, in plain words, with the one figure that matters most."""
    if not breakdown.devices:
        return _host_answer(breakdown)
    if len(breakdown.devices) == 1:
        return _device_answer(breakdown, breakdown.devices[0])
    return _devices_answer(breakdown)


def window_words(breakdown: Breakdown, window: Window) -> str:
    """What a window covers: `3 steps (612 ms)`."""
    length = duration(window.length_ns)
    if window.source == "steps" and breakdown.steps_source == "marks" and breakdown.steps:
        return f"{counted(len(breakdown.steps), 'step')} ({length})"
    if window.source == "selection":
        return f"the selected {length}"
    return f"{length}"


def _device_answer(breakdown: Breakdown, device: DeviceBreakdown) -> str:
    length = device.window.length_ns
    over = window_words(breakdown, device.window)
    if device.states.idle == length:
        start = f"{device_name(device)} did nothing in {over}"
    else:
        start = f"{device_name(device)} was busy {_busy(device)} of {over}{_busy_parts(device)}"
    sentences = [start]
    unknown = next(cause.idle_ns for cause in device.causes if cause.cause is Cause.UNKNOWN)
    loss = largest_loss(device)
    if unknown and (loss is None or unknown > loss.nanoseconds):
        sentences.append(f"{rough_percent(unknown, length)} {_UNKNOWN}")
    if loss:
        share = rough_percent(loss.nanoseconds, length)
        only = "only " if loss.nanoseconds < _SMALL_LOSS * length and share[0].isdigit() else ""
        sentences.append(f"the largest loss is {only}{share} {_loss_words(loss)}")
    return "; ".join(sentences) + "."


def _busy(device: DeviceBreakdown) -> str:
    length = device.window.length_ns
    return rough_percent(length - device.states.idle, length)


def _busy_parts(device: DeviceBreakdown) -> str:
    """Parts of busy time that are worth a word because nothing was computed in them."""
    length = device.window.length_ns
    parts = (
        (device.states.communication, "only communicating"),
        (device.states.transfer, "only copying to or from the host"),
    )
    return "".join(
        f", {rough_percent(amount, length)} {words}" for amount, words in parts if amount >= _LARGE_PART * length > 0
    )


def _loss_words(loss: Loss) -> str:
    words = _LOSSES[loss.cause]
    if loss.place is None:
        return words
    share = loss.place.idle_ns / loss.nanoseconds
    where = _where(loss.cause, loss.place)
    if share >= _ALL:
        return f"{words} {where}" if where.startswith("at ") else f"{words}, nearly all {where}"
    return f"{words}, {'mostly' if share >= _MOSTLY else 'most of all'} {where}"


def _where(cause: Cause, place: Place) -> str:
    label = shorten(plain(place.label), _LONGEST_PLACE)
    if label.startswith("before "):
        return label
    if label.startswith("no "):
        return f"with {label}"
    if cause in {Cause.QUEUED, Cause.LAUNCH_LATENCY, Cause.UNATTRIBUTED}:
        return f"before {label}"
    is_line = place.file is not None and place.operator is None and " at " not in label
    return f"at {label}" if is_line else f"in {label}"


def _devices_answer(breakdown: Breakdown) -> str:
    by_activity = sorted(breakdown.devices, key=lambda device: (-_busy_share(device), device.id))
    busiest, laziest = by_activity[0], by_activity[-1]
    worst = max(by_activity, key=_loss_share)
    kinds = {device_name(device).split()[0] for device in by_activity}
    noun = f"{kinds.pop()}s" if len(kinds) == 1 else "devices"
    text = (
        f"{device_name(busiest)} was the busiest of {len(by_activity)} {noun} with "
        f"{_busy(busiest)} of {window_words(breakdown, busiest.window)}, "
        f"{device_name(laziest)} the least busy with {_busy(laziest)}"
    )
    loss = largest_loss(worst)
    if loss:
        share = rough_percent(loss.nanoseconds, worst.window.length_ns)
        text += f"; the largest loss is {share} of {device_name(worst)}'s time {_loss_words(loss)}"
    return text + "."


def _busy_share(device: DeviceBreakdown) -> float:
    return 1 - device.states.idle / max(device.window.length_ns, 1)


def _loss_share(device: DeviceBreakdown) -> float:
    loss = largest_loss(device)
    return loss.nanoseconds / max(device.window.length_ns, 1) if loss else 0.0


def _host_answer(breakdown: Breakdown) -> str:
    start, host = without_gpu(breakdown)[0], breakdown.host
    if host is None or not host.window.length_ns:
        return f"{start}."
    return f"{start}; on the CPU, {_host_words(breakdown, host)}."


def without_gpu(breakdown: Breakdown) -> tuple[str, str]:
    """Why a breakdown has no device, in a sentence without its end and in a few words."""
    codes = {note.code for note in breakdown.trace.quality}
    if codes & CUT_SHORT:
        long = "The trace is cut short and what is left holds no GPU work, so how busy the GPU was cannot be told"
        return long, "cut short before any GPU work"
    if NOT_RECORDED in codes:
        long = "Kernels were launched, but the GPU's work was not recorded, so how busy it was cannot be told"
        return long, "GPU work was not recorded"
    return "This trace holds no GPU work", "no GPU work in this trace"


def host_parts(host: HostBreakdown) -> list[tuple[int, str]]:
    """Nanoseconds of the main thread and where it spent them, most first."""
    parts = (
        (host.operator_ns, "in operators"),
        (host.runtime_ns, "in runtime calls"),
        (host.python_ns, "in Python"),
        (host.dataloader_ns, "waiting for the data loader"),
        (host.uncovered_ns, "with nothing recorded"),
    )
    return sorted(parts, key=lambda part: -part[0])


def _host_words(breakdown: Breakdown, host: HostBreakdown) -> str:
    length = host.window.length_ns
    (first_ns, first), (second_ns, second) = host_parts(host)[:2]
    text = f"the main thread spent {rough_percent(first_ns, length)} of {window_words(breakdown, host.window)} {first}"
    if second_ns:
        text += f" and {rough_percent(second_ns, length)} {second}"
    return text
