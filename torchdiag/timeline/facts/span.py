"""How long the steady steps take, on the host or on the devices."""

from torchdiag.timeline.distinct import distinct
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.steady import steady


def span_ns(facts: Facts) -> int:
    """Nanoseconds of all steady steps: of their marks, or of the work that they launched, whichever takes longer.

    A host that nothing holds up runs ahead: the marks of its steps are short, and the devices take longer.
    """
    times, ran = facts.get(steady), facts.get(kernels)
    longest = times.total_ns
    for device in distinct(ran.device).tolist():
        mine = ran.device == device
        longest = max(longest, int(ran.end_ns[mine].max() - ran.start_ns[mine].min()))
    return longest
