"""What a recording has of what rules need."""

from torchdiag.findings.rule import Need
from torchdiag.timeline.facts.facts import Facts
from torchdiag.trace.vocabulary import Kind


def available(facts: Facts) -> frozenset[Need]:
    """The needs that the facts meet. The traces of other ranks are never among them."""
    trace = facts.trace
    met = {
        Need.DEVICE: bool(facts.partition.devices) and not facts.has_quality("gpu-not-recorded"),
        Need.STACKS: bool((trace.kind == Kind.PYTHON).any()) or bool(len(trace.args.call_stack)),
        Need.SHAPES: bool(len(trace.args.input_dims)),
        Need.MEMORY: bool(len(trace.args.total_allocated)),
        Need.STEPS: len(facts.steps) > 1,
        Need.RUN: facts.run is not None,
    }
    return frozenset(need for need, there in met.items() if there)
