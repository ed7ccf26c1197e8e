"""What torch says of itself and its device, told by a process of its own, so that a crash of it is just an answer.

`python -m torchdiag.capture.torch_probe` prints one JSON object, a `TorchFacts`, as its last line.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import msgspec

_KERNEL_CATEGORIES = ('"kernel"', '"Kernel"')


class TorchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out.

    `cuda` and `hip` are the versions torch was built for. `devices` are the accelerators' names, `trouble` is what
    torch said when asked for them. `kernels` counts the kernels in a trace of a few multiplications on the first
    accelerator, None where there is none; `launches` the calls that launched some. `trace_trouble` is what the
    profiler said.
    """

    version: str
    cuda: str | None = None
    hip: str | None = None
    kind: str = "cpu"
    devices: tuple[str, ...] = ()
    trouble: str = ""
    operators: int = 0
    kernels: int | None = None
    launches: int | None = None
    trace_trouble: str = ""


def main() -> None:
    """Find out and print."""
    import torch  # noqa: PLC0415 - this module is also read for its answer's type

    kind, devices, trouble = _devices(torch)
    operators, kernels, launches, trace_trouble = _trace(torch, kind if devices else "cpu")
    facts = TorchFacts(
        version=str(torch.__version__),
        cuda=torch.version.cuda,
        hip=getattr(torch.version, "hip", None),
        kind=kind,
        devices=devices,
        trouble=trouble,
        operators=operators,
        kernels=kernels if devices else None,
        launches=launches if devices else None,
        trace_trouble=trace_trouble,
    )
    sys.stdout.write("\n" + msgspec.json.encode(facts).decode() + "\n")


def _devices(torch: Any) -> tuple[str, tuple[str, ...], str]:
    """The kind of the accelerator, the names of its devices, and what torch complained of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for kind in ("cuda", "xpu"):
                module = getattr(torch, kind, None)
                if module is not None and module.is_available():
                    return kind, tuple(str(module.get_device_name(n)) for n in range(module.device_count())), ""
            if torch.backends.mps.is_available():
                return "mps", ("Apple GPU",), ""
            if torch.version.cuda is not None:
                torch.cuda.init()
        except Exception as error:
            return "cpu", (), _sentence(str(error))
    return "cpu", (), _sentence(str(caught[0].message)) if caught else ""


def _trace(torch: Any, kind: str) -> tuple[int, int, int, str]:
    """Operators, kernels and launch calls in a trace of a few multiplications, and what went wrong."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    accelerator = getattr(torch.profiler.ProfilerActivity, kind.upper(), None)
    if kind != "cpu" and accelerator is not None:
        activities.append(accelerator)
    try:
        with tempfile.TemporaryDirectory(prefix="torchdiag-") as folder:
            path = Path(folder) / "trace.json"

            def save(profiler: Any) -> None:
                profiler.export_chrome_trace(str(path))

            schedule = torch.profiler.schedule(wait=0, warmup=1, active=1)
            matrix = torch.ones(64, 64, device=kind)
            with torch.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=save) as profiler:
                for _ in range(2):
                    for _ in range(4):
                        matrix = torch.mm(matrix, matrix).sigmoid()
                    if kind != "cpu":
                        getattr(torch, kind).synchronize()
                    profiler.step()
            text = path.read_text(errors="replace")
    except Exception as error:
        return 0, 0, 0, _sentence(f"{type(error).__name__}: {error}")
    launches = sum(text.count(f'"{name}"') for name in ("cudaLaunchKernel", "hipLaunchKernel", "cuLaunchKernel"))
    launches += text.count('"cudaLaunchKernelExC"') + text.count('"hipExtModuleLaunchKernel"')
    kernels = sum(text.count(f'"cat": {category}') for category in _KERNEL_CATEGORIES)
    return text.count('"cat": "cpu_op"'), kernels, launches, ""


def _sentence(text: str) -> str:
    return " ".join(text.split())[:400]


if __name__ == "__main__":
    main()
