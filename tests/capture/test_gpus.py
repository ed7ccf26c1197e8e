"""What is made of the answers of NVIDIA's tool, here played by a script; torch's side by an object of its shape."""

import importlib.util
import os
from types import SimpleNamespace

import pytest

from torchdiag.capture import gpus

FIRST, SECOND = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
TOOL = f"""#!/bin/sh
case "$1" in
  --query-gpu=*)
    echo "GPU-{FIRST}, 570.1, 1980, [N/A], 2619, 700.00, 35"
    echo "GPU-{SECOND}, 570.1, 345, 1980, 2619, 700.00, 31" ;;
  *) echo "GPU-{FIRST}, 77, python, 512"; echo "GPU-{FIRST}, {os.getpid()}, python, 900" ;;
esac
"""


@pytest.fixture
def tool(tmp_path, monkeypatch):
    def install(text):
        path = tmp_path / "nvidia-smi"
        path.write_text(text)
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        gpus.processes.cache_clear()

    yield install
    gpus.processes.cache_clear()


def test_the_driver_and_the_others_on_a_gpu(tool):
    tool(TOOL)
    assert gpus.driver() == "570.1"
    assert gpus.processes() == ((FIRST, "77 python 512"),)


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 9\n", "#!/bin/sh\necho 'No devices were found'\n"])
def test_a_tool_that_fails_tells_nothing(tool, text):
    tool(text)
    assert gpus.driver() is None
    assert not gpus.processes()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_gpus_are_matched_by_identity_since_torch_may_number_them_otherwise(tool, monkeypatch):
    import torch  # noqa: PLC0415

    tool(TOOL)
    seen = [
        SimpleNamespace(uuid=uuid, name=name, total_memory=80 << 30, major=9, minor=0, multi_processor_count=132)
        for uuid, name in ((SECOND, "b"), (FIRST, "a"))
    ]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: seen[index])
    first, second = gpus.describe()
    assert (first.name, first.sm_clock_mhz, first.max_sm_clock_mhz, first.other_processes) == ("b", 345, 1980, ())
    assert (second.name, second.sm_clock_mhz, second.max_sm_clock_mhz) == ("a", 1980, None)
    assert second.other_processes == ("77 python 512",)
    assert (second.power_limit_w, second.temperature_c, second.compute_capability) == (700.0, 35, "9.0")
