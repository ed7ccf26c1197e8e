"""Whether a trace is of training."""

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named
from torchdiag.trace.vocabulary import Kind

MARKS = ("autograd::engine::evaluate_function", "Optimizer.step#")
"""Events of a backward pass or of an optimizer start like this."""


def training(facts: Facts) -> bool:
    """Whether a backward pass runs or an optimizer steps anywhere in the trace."""
    return any(
        len(named(facts.trace, kind, lambda name: name.startswith(MARKS))) for kind in (Kind.OPERATOR, Kind.ANNOTATION)
    )
