"""The answer to a what-if, in words and as plain values."""

from typing import Any

from torchdiag.diagnosis.what_if import Answer
from torchdiag.report.figures import duration
from torchdiag.report.plain_text import plain


def sentence(answer: Answer) -> str:
    """`Without sync (3 a step), a step takes 1.37 ms instead of 1.94 ms: 571 µs less (29.4 %).`"""
    what = plain(" and ".join(answer.removed))
    before, after = duration(round(answer.step_ns)), duration(round(answer.without_ns))
    head = f"Without {what} ({answer.count_per_step:.3g} a step), a step takes {after}"
    won = answer.step_ns - answer.without_ns
    if won < 0.0005 * answer.step_ns:
        return f"{head}, as it does now: nothing is won."
    return f"{head} instead of {before}: {duration(round(won))} less ({100 * won / answer.step_ns:.1f} %)."


def to_dict(answer: Answer) -> dict[str, Any]:
    """The answer as plain values; times are nanoseconds of a step."""
    return {
        "schema": 1,
        "removed": list(answer.removed),
        "count_per_step": answer.count_per_step,
        "step_ns": round(answer.step_ns),
        "without_ns": round(answer.without_ns),
        "gain_ns_per_step": round(answer.step_ns - answer.without_ns),
    }
