"""The sentence a diagnosis begins with claims no more than its figures."""

from reference import reader
from written import call, kernel, mark, operator, parsed

from torchdiag.diagnosis.diagnose import diagnose
from torchdiag.timeline.facts.facts import Facts

US = 1_000


def sentence(busy_us: int, *, marked: bool) -> str:
    """Of four stretches of 1000 us, in each of which the device is busy from 100 us on, and then waits."""
    events = []
    for number in range(4):
        at = number * 1000 * US
        if marked:
            events.append(mark(number, at, 1000 * US))
        events += [
            operator(at, 90 * US),
            call(at + 50 * US, 10 * US, number + 1),
            kernel(at + 100 * US, busy_us * US, number + 1, name=f"gemm_{number}"),
        ]
    found = diagnose(Facts.of(reader.trace_of(parsed(events), {})), [])
    assert found.summary.bound_by == "gpu"
    return found.summary.sentence


def test_only_a_busy_device_is_said_to_need_faster_kernels() -> None:
    assert "only faster or fewer kernels" in sentence(899, marked=False)
    waiting = sentence(800, marked=True)
    assert "only faster" not in waiting
    assert "The GPU works 80 % of a step of 1 ms; if it never waited, a step would take 800 us (1.2x)." in waiting


def test_what_has_no_steps_is_called_what_was_recorded() -> None:
    assert "of the recorded" in sentence(899, marked=False)
