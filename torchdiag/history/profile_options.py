"""What a user asks `torchdiag profile` for, as it is written into a run's result."""

from typing import Literal

import msgspec

TargetKind = Literal["model", "script", "module", "function"]
Dtype = Literal["fp32", "tf32", "bf16", "fp16", "amp"]


class ProfileOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides a run. `None` means: what suits the target and the device.

    `target` is what was typed: a model's name, the path of a script, a module's name (`-m`), or `pkg.module:function`;
    `script_args` follow a script or a module. `batch_size` may be `tune`. `compile` is a mode of `torch.compile`
    (`default`, `reduce-overhead`, `max-autotune`, ...). `steps` is the number of timed steps, `warmup` the number of
    steps before them for models and functions, `skip` the same for scripts; without it, steps are left out until their
    time is steady. `seconds` makes a script be measured by time windows of that length instead of steps. `finish` lets
    a script run to its end after the last pass. `light_steps` and `detailed_steps` are recorded by the profiler, fewer
    when a trace would pass `max_trace_mb` megabytes of JSON text. `functions` writes down which public functions of
    torch a step of an eager model calls.
    """

    target: str
    target_kind: TargetKind
    script_args: tuple[str, ...] = ()
    device: str = "auto"
    mode: Literal["train", "eval"] = "train"
    batch_size: int | Literal["tune"] | None = None
    dtype: Dtype = "fp32"
    compile: str | None = None
    channels_last: bool = False
    size: Literal["real", "tiny"] | None = None
    steps: int | None = None
    warmup: int | None = None
    skip: int | None = None
    light_steps: int = 5
    detailed_steps: int = 2
    seed: int = 0
    stack: bool = True
    memory: bool = False
    exceptions: bool = True
    functions: bool = False
    timeout_s: float | None = None
    finish: bool = False
    seconds: float | None = None
    max_trace_mb: int = 200
