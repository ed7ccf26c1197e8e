"""What is to be said about the figures of a run: how far the profiler distorts them, and what was not recorded."""

from typing import Final

from torchdiag.history.run_result import RecorderResult, RunResult
from torchdiag.timeline.result import Breakdown
from torchdiag.trace.quality import Quality

INFLATED: Final = 1.3
"""Steps that took this many times as long under the profiler distort what is told about Python."""


def notes(result: RunResult, found: Breakdown) -> tuple[Quality, ...]:
    """Quality notes about a run whose breakdown is `found`, gravest first."""
    told = [*_inflation(result, found)]
    if result.recorder is not None:
        told += _recorder(result.recorder)
    return tuple(told)


def python_bounds(result: RunResult, share: float) -> tuple[float, float] | None:
    """The least and the greatest share (0..1) that Python had of a step without the profiler.

    `share` is the one it had in the light pass. There a step took L nanoseconds, P = L * `share` of them in Python,
    without the profiler T. The host spent the L - T that came on top in Python or elsewhere, so that of the T Python
    had at least P - (L - T), and at most P. None where either pass is missing.
    """
    light, timed = result.find("light"), result.find("timed")
    if light is None or timed is None or not light.median_ns or not timed.median_ns:
        return None
    python_ns = light.median_ns * share
    extra_ns = max(light.median_ns - timed.median_ns, 0)
    return max(python_ns - extra_ns, 0) / timed.median_ns, min(python_ns / timed.median_ns, 1.0)


def _inflation(result: RunResult, found: Breakdown) -> list[Quality]:
    light, detailed = result.inflation("light"), result.inflation("detailed")
    told: list[Quality] = []
    if light is not None and light > INFLATED:
        slower = f"Steps took {light:.2f} times as long while the profiler recorded them"
        for name, share in _python_shares(found):
            bounds = python_bounds(result, share)
            if bounds is None:
                continue
            low, high = (f"{100 * bound:.1f}" for bound in bounds)
            told.append(
                Quality(
                    "python-inflated",
                    f"{slower}, so the Python share{name} ({100 * share:.1f} %) is inflated: without the profiler it "
                    f"is between {low} and {high} %.",
                )
            )
        if not told:
            told.append(Quality("profiler-inflation", f"{slower}: what is told about the host is inflated."))
    elif detailed is not None and detailed > INFLATED:
        told.append(
            Quality(
                "detail-inflated",
                f"Steps took {detailed:.2f} times as long while stacks were recorded; the figures are those of the "
                f"light recording{'' if light is None else f' ({light:.2f} times)'}, which has none.",
            )
        )
    return told


def _python_shares(found: Breakdown) -> list[tuple[str, float]]:
    """What Python had of each device's time, or of the main thread's."""
    several = len(found.devices) > 1
    shares = [
        (f" of device {device.id}" if several else "", device.headline.python_overhead / device.window.length_ns)
        for device in found.devices
        if device.window.length_ns
    ]
    host = found.host
    if not shares and host is not None and host.window.length_ns:
        shares.append(("", host.python_ns / host.window.length_ns))
    return shares


def _recorder(recorder: RecorderResult) -> list[Quality]:
    told: list[Quality] = []
    if recorder.exceptions is None:
        told.append(_missing("exceptions-not-recorded", "Python exceptions", recorder.exceptions_missing))
    if recorder.throws is None:
        told.append(_missing("throws-not-recorded", "C++ exceptions", recorder.throws_missing))
    if recorder.interrupted:
        told.append(
            Quality(
                "exceptions-interrupted",
                "Other code replaced the recorder of exceptions on the way; their counts are too low.",
            )
        )
    if recorder.untracked:
        told.append(
            Quality(
                "exceptions-untracked",
                f"{recorder.untracked:,} exceptions came from more places than are told apart; they are in no line.",
                recorder.untracked,
            )
        )
    if recorder.throws_dropped:
        told.append(
            Quality(
                "throws-dropped",
                f"{recorder.throws_dropped:,} C++ exceptions found the recorder's buffer full; they are in no line.",
                recorder.throws_dropped,
            )
        )
    return told


def _missing(code: str, what: str, reason: str) -> Quality:
    return Quality(code, f"{what} were not recorded{f': {reason}' if reason else '.'}")
