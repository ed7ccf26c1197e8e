"""Hand-made breakdowns, small enough to add up in one's head."""

from torchdiag.timeline.result import (
    Breakdown,
    Cause,
    DeviceBreakdown,
    HostBreakdown,
    IdleCause,
    Place,
    States,
    Step,
    TraceSummary,
    Window,
)
from torchdiag.trace.quality import Quality

MS = 1_000_000


def place(label, idle_ns, count=1, *, file=None, line=None, function=None, operator=None):
    return Place(label, file, line, function, operator, idle_ns, count, 7)


def causes(**idle):
    """All thirteen causes; a keyword gives (nanoseconds, stretches, places) of one."""
    found = []
    for cause in Cause:
        nanoseconds, count, places = idle.get(cause.value, (0, 0, ()))
        found.append(IdleCause(cause, nanoseconds, count, tuple(places)))
    return tuple(found)


def device(id=0, *, name="NVIDIA A100", kind="CUDA", start=5_000, source="steps", busy=(0, 0, 0, 0), **idle):
    found = causes(**idle)
    idle_ns = sum(cause.idle_ns for cause in found)
    end = start + sum(busy) + idle_ns
    return DeviceBreakdown(id, name, kind, Window(start, end, source), States(*busy, idle_ns), found)


def training_device(id=0):
    """600 ms: 240 compute, 6 memory, 6 transfer, 228 Python, 120 data loader."""
    return device(
        id,
        busy=(240 * MS, 0, 6 * MS, 6 * MS),
        python=(
            228 * MS,
            1203,
            (
                place("dataset.py:88 __getitem__", 120 * MS, 300, file="dataset.py", line=88, function="__getitem__"),
                place("train.py:12 step", 60 * MS, 150, file="train.py", line=12, function="step"),
            ),
        ),
        dataloader=(120 * MS, 3, (place("train.py:9 main", 120 * MS, 3, file="train.py", line=9, function="main"),)),
    )


def step(number, *, time_ms=200, busy=0.42, note="", group="a"):
    start = 5_000 + number * 200 * MS
    return Step(f"ProfilerStep#{number}", start, start + time_ms * MS, busy, 3188, 3190, 4, 9, 154_000_000, group, note)


def summary(path="run/worker0.pt.trace.json.gz", quality=(), ranks=(0,), torch="2.4.0"):
    return TraceSummary(path, 73_639, tuple(ranks), torch, tuple(quality))


def training(**changes):
    steps = (step(2, note="first: 4 more copies than the others", group="b"), step(3), step(4))
    return Breakdown(summary(**changes), steps, "marks", (training_device(),), None)


def several_devices():
    first = device(
        0, busy=(100 * MS, 200 * MS, 0, 0), python=(300 * MS, 10, (place("a.py:1 f", 300 * MS, 10, file="a.py"),))
    )
    second = device(1, busy=(400 * MS, 0, 0, 100 * MS), sync=(100 * MS, 5, (place("aten::item", 60 * MS, 4),)))
    return Breakdown(summary(ranks=()), (step(2), step(3), step(4)), "marks", (first, second), None)


def host_only(*quality, steps=()):
    """1 s of a thread: 700 ms operators, 50 runtime, 150 Python, 0 loader, 100 uncovered."""
    host = HostBreakdown(
        Window(0, 1000 * MS, "activity"),
        "python 4242",
        700 * MS,
        50 * MS,
        150 * MS,
        0,
        100 * MS,
        900 * MS,
        (place("aten::conv2d", 500 * MS, 40, operator="aten::conv2d"),),
    )
    return Breakdown(summary(quality=quality, ranks=()), tuple(steps), "marks" if steps else "none", (), host)


NOT_RECORDED = Quality("gpu-not-recorded", "1,203 launch calls and no kernel: is libcupti missing?", 1203)

HOSTILE = "evil\x1b[31m\x07[bold red]<script>alert(1)</script>\u202e\nGPU 9 was busy 100 %"


def hostile():
    """Everything a trace can spell holds escape sequences, markup and line breaks."""
    bad = device(
        name=HOSTILE, kind=HOSTILE, busy=(MS, 0, 0, 0), python=(MS, 1, (place(HOSTILE * 3, MS, 1, file=HOSTILE),))
    )
    steps = (Step(HOSTILE, 0, MS, 0.5, 1, 1, 1, 1, 1, HOSTILE, HOSTILE),)
    quality = (Quality(HOSTILE, HOSTILE, 1),)
    return Breakdown(summary(HOSTILE, quality, torch=HOSTILE), steps, "marks", (bad,), None)
