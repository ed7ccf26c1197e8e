"""torchdiag says why a PyTorch model is slow, from a profiler trace.

`torchdiag.breakdown("trace.json.gz")` says where every nanosecond of GPU time went, `torchdiag.diagnose` which bugs
that shows; `torchdiag.profile()` measures the steps of a program from inside, and `torchdiag.step()` tells
`torchdiag profile` where they are. Importing this package loads nothing else: what is used is imported when it is first
asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchdiag.api import Breakdown, breakdown, diagnose, load
    from torchdiag.capture.steps import step
    from torchdiag.errors import TorchdiagError
    from torchdiag.findings.finding import Diagnosis
    from torchdiag.profiling import profile
    from torchdiag.trace.columns import Trace

    __version__: str

__all__ = [
    "Breakdown",
    "Diagnosis",
    "TorchdiagError",
    "Trace",
    "__version__",
    "breakdown",
    "diagnose",
    "load",
    "profile",
    "step",
]

_HOMES = {
    "Breakdown": "torchdiag.api",
    "Diagnosis": "torchdiag.findings.finding",
    "TorchdiagError": "torchdiag.errors",
    "Trace": "torchdiag.trace.columns",
    "breakdown": "torchdiag.api",
    "diagnose": "torchdiag.api",
    "load": "torchdiag.api",
    "profile": "torchdiag.profiling",
    "step": "torchdiag.capture.steps",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("torchdiag")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'torchdiag' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
