"""Outcomes of a suite's runs written by hand, and folders that hold them."""

from typing import Any

import msgspec

from torchdiag.history.profile_options import ProfileOptions
from torchdiag.suite import folder as folders
from torchdiag.suite import outcome as outcomes
from torchdiag.suite.cases import Case
from torchdiag.suite.outcome import Counters, DeviceTime, Figures, HostTime, Outcome

MS = 1_000_000


def case(subject: str = "resnet18", mode: str = "train", process: int = 1, **options: Any) -> Case:
    options = {"device": "cuda", "size": "real", **options}
    made = ProfileOptions(target=subject, target_kind="model", mode=mode, **options)  # type: ignore[arg-type]
    words = [subject, mode, made.device, made.dtype, *([made.compile] if made.compile else [])]
    group = "-".join(words)
    domain = {"hf_Bert": "language", "soft_actor_critic": "reinforcement learning", "dlrm": "recommendation"}
    return Case(
        id=f"{group}-p{process}",
        group=group,
        subject=subject,
        domain=domain.get(subject, "vision"),
        task="",
        process=process,
        options=made,
    )


def figures(steps_ms: Any = (10, 10, 10), parts: tuple[int, ...] = (60, 10, 20, 10), **changes: Any) -> Figures:
    """Of a GPU, `parts` being active, transfer, Python and idle; of five parts: of the main thread."""
    samples = tuple(round(step * MS) for step in steps_ms)
    device = host = None
    if len(parts) == 4:
        active, transfer, python, idle = parts
        device = DeviceTime(
            window_ns=sum(parts), active_ns=active, transfer_ns=transfer, python_ns=python, idle_ns=idle
        )
    else:
        operator, runtime, python, dataloader, uncovered = parts
        host = HostTime(
            window_ns=sum(parts),
            operator_ns=operator,
            runtime_ns=runtime,
            python_ns=python,
            dataloader_ns=dataloader,
            uncovered_ns=uncovered,
        )
    made = Figures(
        device_name="A100",
        torch="2.9.0",
        batch_size=4,
        size="real",
        parameters=1000,
        step_ns=sorted(samples)[len(samples) // 2],
        samples_ns=samples,
        gpu_peak_allocated_bytes=1 << 20,
        device=device,
        host=host,
        counters=Counters(kernels=(10, 10), launches=(10, 10), operators=(40, 40)),
        operators={"aten::mm": 2},
        functions=("torch.matmul",),
    )
    return msgspec.structs.replace(made, **changes)


def outcome(of: Case | None = None, *, began: str = "2026-01-01T00:00:00+00:00", **changes: Any) -> Outcome:
    made = Outcome(case=of or case(), status="complete", began=began, wall_s=5.0, figures=figures())
    return msgspec.structs.replace(made, **changes)


def folder(path: Any, made: list[Outcome], *, suite: str = "mine") -> Any:
    held = folders.make(str(path), suite, "", [one.case for one in made])
    for one in made:
        outcomes.write(one, held.of(one.case))
    return held
