"""Building the suite's models for tests: tiny on one thread, or at real size on the meta device."""

import pytest

from torchdiag.models.catalogue import MODELS
from torchdiag.models.workload import Setting

try:
    import torch
except ModuleNotFoundError:
    torch = None
else:
    # Threads of models as tiny as these only wait for each other.
    torch.set_num_threads(1)


def needs(name: str) -> None:
    """Skip the test where a package of the model is missing, and say what installs it."""
    if line := MODELS[name].install_line():
        pytest.skip(line)


def real_parameters(name: str) -> int:
    needs(name)
    assert torch is not None
    entry = MODELS[name]
    with torch.device("meta"):
        workload = entry.build(Setting(entry.modes[0], torch.device("meta"), torch.float32, 1, "real"))
    return sum(
        parameter.numel()
        for parameter in {parameter for module in workload.modules for parameter in module.parameters()}
    )
