"""What all tests share: the folder `tests/` on the import path (by being here) and how long hypothesis may search."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Commands run by tests take the torchdiag that is installed, not the checkout they may stand in.
os.environ["PYTHONSAFEPATH"] = "1"

settings.register_profile("usual", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("usual"), max_examples=3000)
settings.load_profile(os.environ.get("TORCHDIAG_HYPOTHESIS", "usual"))


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Keeps the garbage collector from walking over millions of parsed values again and again."""
    gc.disable()
    yield
    gc.enable()
