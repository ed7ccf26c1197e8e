"""The words for a place: from what is known about a stretch of idle time to one short label."""

import re
from dataclasses import dataclass

from torchdiag.timeline import frames
from torchdiag.timeline.frames import Frame
from torchdiag.timeline.result import Cause

EVALUATE = "autograd::engine::evaluate_function: "
STEP_NUMBER = re.compile(r"#\d+$")
TEMPLATE_OR_ARGUMENTS = re.compile(r"[<(].*", re.DOTALL)
GARBAGE_COLLECTION = "Python GC"
NOTHING = {
    Cause.PYTHON: "no host event recorded",
    Cause.UNATTRIBUTED: "work without a launch call",
    Cause.UNKNOWN: "graph replay without its kernels",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a stretch, each None (or False) where it is not.

    `operator` is the outermost one; with `backward` it is the forward operator of what ran. `event` is the name of
    the host event charged (`event_is_python`: it is a frame), `kernel` the work waited for, `loader` the event of the
    data loader (`in_loader`: `frame` lies inside it). With `before` nothing was recorded: operator and frame came next.
    """

    cause: Cause
    operator: str | None = None
    backward: bool = False
    frame: Frame | None = None
    annotation: str | None = None
    event: str | None = None
    event_is_python: bool = False
    kernel: str | None = None
    loader: str | None = None
    in_loader: bool = False
    before: bool = False


def label(facts: Facts) -> str:
    """`train.py:88 step`, `aten::item at train.py:88 step`, `backward of aten::mul in ## forward ##`."""
    if facts.cause is Cause.PYTHON:
        return _python(facts)
    what = operator(facts) or facts.event
    match facts.cause:
        case Cause.DATALOADER:
            what = None if facts.in_loader else _loader(facts.loader)
        case Cause.QUEUED | Cause.LAUNCH_LATENCY | Cause.UNATTRIBUTED:
            what = operator(facts) or (kernel(facts.kernel) if facts.kernel else facts.event)
        case Cause.PROFILER | Cause.UNKNOWN:
            what = facts.event
        case _:
            pass
    return _at(what or NOTHING.get(facts.cause), facts)


def operator(facts: Facts) -> str | None:
    """`aten::mul`, `backward of aten::mul`, `MulBackward0`; None outside of operators."""
    if facts.operator is None:
        return None
    name = facts.operator.removeprefix(EVALUATE)
    return f"backward of {name}" if facts.backward else name


def kernel(name: str) -> str:
    """A kernel's name without return type, template and arguments."""
    plain = name.replace("(anonymous namespace)::", "").removeprefix("void ")
    return TEMPLATE_OR_ARGUMENTS.sub("", plain).strip() or name


def _python(facts: Facts) -> str:
    if facts.event_is_python and facts.event == GARBAGE_COLLECTION:
        return _at(GARBAGE_COLLECTION, facts)
    if facts.before:
        return _at(f"before {operator(facts) or facts.event}", facts)
    if facts.frame is not None:
        return facts.frame.label
    if facts.event_is_python and facts.event is not None:
        frame = frames.parse(facts.event)
        return frame.label if frame is not None else frames.without_address(facts.event)
    if facts.annotation is not None:
        return STEP_NUMBER.sub("", facts.annotation)
    return STEP_NUMBER.sub("", facts.event) if facts.event else NOTHING[Cause.PYTHON]


def _loader(name: str | None) -> str:
    if name is None or name.endswith(": __next__"):
        return "DataLoader.__next__"
    return name.rpartition("#")[2]


def _at(what: str | None, facts: Facts) -> str:
    where = None
    if facts.frame is not None:
        where = facts.frame.label if what is None else f"at {facts.frame.label}"
    elif facts.annotation is not None and facts.annotation.rpartition("#")[2] != what:
        name = STEP_NUMBER.sub("", facts.annotation)
        where = name if what is None else f"in {name}"
    return " ".join(part for part in (what, where) if part) or "not recorded"
