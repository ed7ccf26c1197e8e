"""Where the time of a suite's runs went, as shares (0..1): of each model, and of each domain the mean over its models.

A model counts once in its domain whatever its step time, as in the paper's figures.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from torchdiag.suite.cases import Case
from torchdiag.suite.outcome import DeviceTime, HostTime, Outcome

Kind = Literal["device", "host", "none"]
"""Whose time is known: a device's, the main thread's where no device was recorded, nobody's."""

DEVICE_PARTS: Final = ("active", "transfer", "python", "idle")
HOST_PARTS: Final = ("operator", "runtime", "python", "dataloader", "uncovered")

DOMAINS: Final = ("vision", "language", "speech", "recommendation", "reinforcement learning", "other")
"""In the order in which they are shown; others follow."""

PAPER_ACTIVE: Final = {
    ("vision", "train"): 0.53,
    ("vision", "eval"): 0.63,
    ("language", "train"): 0.85,
    ("language", "eval"): 0.65,
    ("reinforcement learning", "train"): 0.10,
    ("reinforcement learning", "eval"): 0.19,
}
"""What the TorchBench paper (arXiv 2304.14226) reports as the active share of an A100, by domain and mode."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One model in one setting: the runs of all its processes together.

    `parts` are shares that sum to 1, of `DEVICE_PARTS` with `kind` device, of `HOST_PARTS` with host; empty where no
    trace was recorded. `environment` is the share of a step in which an environment ran, None where there is none.
    `step_ns` is the median over the steps of all processes.
    """

    case: Case
    kind: Kind
    parts: dict[str, float]
    step_ns: int
    batch_size: int | None
    samples_per_s: float | None
    peak_bytes: int | None
    environment: float | None
    processes: int

    @property
    def busy(self) -> float | None:
        """The share of time in which the device did anything; None where none was recorded."""
        return self.parts["active"] + self.parts["transfer"] if self.kind == "device" else None


@dataclass(frozen=True, slots=True)
class DomainShares:
    """The mean over the models of a domain in one mode; an empty `domain` stands for all."""

    domain: str
    mode: str
    device: str
    kind: Kind
    models: int
    parts: dict[str, float]
    environment: float | None
    paper_active: float | None


def measured(outcomes: Iterable[Outcome]) -> list[Measured]:
    """The models that were measured, in the order of the plan, each setting once."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.measured:
            groups.setdefault(outcome.case.group, []).append(outcome)
    return [_measured(group) for group in groups.values()]


def _measured(group: Sequence[Outcome]) -> Measured:
    figures = [outcome.figures for outcome in group if outcome.figures is not None]
    samples = sorted(step for one in figures for step in one.samples_ns)
    middle = len(samples) // 2
    step_ns = samples[middle] if len(samples) % 2 else (samples[middle - 1] + samples[middle]) // 2
    devices = [one.device for one in figures if one.device is not None]
    hosts = [one.host for one in figures if one.host is not None]
    kind: Kind = "device" if devices else "host" if hosts else "none"
    peaks = [one.gpu_peak_allocated_bytes or one.peak_rss_bytes for one in figures]
    environments = [one for one in figures if one.environment_ns is not None and one.steps_ns]
    batch = figures[0].batch_size
    return Measured(
        case=group[0].case,
        kind=kind,
        parts=_parts(devices, DEVICE_PARTS) if devices else _parts(hosts, HOST_PARTS),
        step_ns=step_ns,
        batch_size=batch,
        samples_per_s=batch * 1e9 / step_ns if batch and step_ns else None,
        peak_bytes=max((peak for peak in peaks if peak is not None), default=None),
        environment=sum(one.environment_ns or 0 for one in environments) / sum(one.steps_ns for one in environments)
        if environments
        else None,
        processes=len(group),
    )


def _parts(times: Sequence[DeviceTime] | Sequence[HostTime], names: Sequence[str]) -> dict[str, float]:
    window = sum(one.window_ns for one in times)
    return {name: sum(getattr(one, f"{name}_ns") for one in times) / window for name in names} if window else {}


def domains(models: Sequence[Measured]) -> list[DomainShares]:
    """Each domain in each mode on each device, then all of them together. Only eager runs in their first precision."""
    chosen = plain(models)
    found: list[DomainShares] = []
    settings: list[tuple[str, Kind]] = [(one.case.options.device, one.kind) for one in chosen]
    for device, kind in dict.fromkeys(settings):
        if kind == "none":  # Nothing is known of where its time went.
            continue
        here = [one for one in chosen if (one.case.options.device, one.kind) == (device, kind) and one.parts]
        present = {one.case.domain for one in here}
        names = [*(name for name in DOMAINS if name in present), *sorted(present - set(DOMAINS))]
        for domain in [*names, *([""] if len(names) > 1 else [])]:
            for mode in ("train", "eval", ""):
                of = [one for one in here if domain in ("", one.case.domain) and one.case.mode == mode]
                if of:
                    found.append(_mean(domain, mode, device, kind, of))
    return found


def _mean(domain: str, mode: str, device: str, kind: Kind, models: Sequence[Measured]) -> DomainShares:
    environments = [one.environment for one in models if one.environment is not None]
    return DomainShares(
        domain=domain,
        mode=mode,
        device=device,
        kind=kind,
        models=len(models),
        parts={name: sum(one.parts[name] for one in models) / len(models) for name in models[0].parts},
        environment=sum(environments) / len(environments) if environments else None,
        paper_active=PAPER_ACTIVE.get((domain, mode)) if kind == "device" else None,
    )


def plain(models: Sequence[Measured]) -> list[Measured]:
    """Of the settings of one model in one mode on one device the first: eager where that was measured."""
    first: dict[tuple[str, str, str], Measured] = {}
    for one in sorted(models, key=lambda one: one.case.options.compile is not None):
        first.setdefault((one.case.subject, one.case.mode, one.case.options.device), one)
    return [one for one in models if one in first.values()]
