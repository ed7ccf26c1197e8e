"""What the steps are bound by, and the sentence a tired engineer can act on."""

import re

import numpy as np

from torchdiag.findings.amounts import time_text
from torchdiag.findings.finding import Bound, Finding, Summary
from torchdiag.timeline import host_only
from torchdiag.timeline.device_states import sweep
from torchdiag.timeline.facts.cold_start import cold_start
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.idle import gpu_busy, idle, idle_by_device
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.result import Cause, Window
from torchdiag.trace.vocabulary import Call, Kind

BUSY = 0.9
"""A device that works this share of a step is what bounds it."""
MUCH_LOADING = 0.3
MUCH_DATA, MUCH_IDLE = 0.15, 0.25
"""A step is bound by the loader, or by the host, where the device waits this share of it for them."""
UNKNOWN_SHARE = 0.3
"""With this share of a step unknown (replays of graphs whose kernels are missing) nothing can be told."""
CLAUSE = re.compile(r"; |\. ")
WORDS: dict[Bound, str] = {
    "gpu": "Bound by the GPU's own work",
    "host": "Bound by the host, which issues work slower than the GPU does it",
    "data": "Bound by the input pipeline",
    "transfer": "Bound by copies between host and GPU",
    "communication": "Bound by communication between GPUs",
    "warm-up": "This is a cold start: what was recorded happens once, and says nothing about a warm step",
    "cannot-tell": "This trace cannot tell what the steps are bound by",
}


def summary(facts: Facts, findings: tuple[Finding, ...]) -> Summary:
    """The figures of a steady step, and the sentence."""
    times = facts.get(steady)
    found, trace = facts.get(kernels), facts.trace
    syncs = times.rows(facts, np.flatnonzero(trace.call == Call.SYNC))
    bound, ceiling = bound_by(facts), ceiling_ns(facts)
    busy = facts.get(gpu_busy)
    return Summary(
        bound_by=bound,
        step_ns=times.step_ns,
        gpu_busy=busy,
        kernels_per_step=int(np.count_nonzero(trace.kind[found.row] == Kind.KERNEL)) / len(times),
        syncs_per_step=len(syncs) / len(times),
        ceiling_step_ns=ceiling,
        steps=0 if times.whole else len(times),
        sentence=_sentence(facts, bound, busy, ceiling, findings),
    )


def bound_by(facts: Facts) -> Bound:
    """What the steady steps are bound by: the greatest of the device's own states and the causes of its idle time."""
    if facts.has_quality("gpu-not-recorded"):
        return "cannot-tell"
    beginning = facts.get(cold_start)
    if beginning.cold or beginning.mostly:
        return "warm-up"
    return _bound_of_device(facts) if facts.partition.devices else _bound_of_host(facts)


def _bound_of_device(facts: Facts) -> Bound:
    idleness, total = facts.get(idle), facts.get(steady).total_ns
    if idleness.total_ns(Cause.UNKNOWN) > UNKNOWN_SHARE * total:
        return "cannot-tell"
    shares = device_shares(facts)
    own: dict[Bound, float] = {
        "gpu": shares["compute"] + shares["memory"],
        "transfer": shares["transfer"],
        "communication": shares["communication"],
    }
    most = max(own, key=lambda name: own[name])
    if sum(own.values()) >= BUSY:
        return most
    data = idleness.total_ns(Cause.DATALOADER) / total
    told = idleness.total_ns() / total - data - idleness.total_ns(Cause.UNATTRIBUTED, Cause.QUEUED) / total
    untold = 1 - sum(own.values()) - data - told
    if untold > max(data, told, own[most]):
        return "cannot-tell"
    if data > MUCH_DATA:
        return "data"
    return "host" if told > own[most] or (told > MUCH_IDLE and most != "communication") else most


def device_shares(facts: Facts) -> dict[str, float]:
    """Share of the steady steps that the devices spend in each state, a mean over them."""
    times = facts.get(steady)
    shares: dict[str, float] = dict.fromkeys(("compute", "communication", "memory", "transfer"), 0.0)
    devices = facts.partition.devices
    for device in devices:
        for start, end in zip(times.begun_ns.tolist(), times.over_ns.tolist(), strict=True):
            states, _ = sweep(device.activities, Window(start, end, "selection"))
            for name in shares:
                shares[name] += getattr(states, name) / times.total_ns / len(devices)
    return shares


def ceiling_ns(facts: Facts) -> float | None:
    """The time of a step in which the busiest device never waits; None without a device."""
    times, idle_ns = facts.get(steady), facts.get(idle_by_device)
    return (times.total_ns - min(idle_ns)) / len(times) if idle_ns else None


def _bound_of_host(facts: Facts) -> Bound:
    if not np.any(facts.trace.kind != Kind.OTHER):
        return "cannot-tell"
    found = host_only.host_breakdown(facts.trace, facts.partition.selected, facts.partition.driver, 1)
    return "data" if found.dataloader_ns > MUCH_LOADING * found.window.length_ns else "host"


def _sentence(
    facts: Facts, bound: Bound, busy: float | None, ceiling: float | None, findings: tuple[Finding, ...]
) -> str:
    times = facts.get(steady)
    step = times.step_ns
    of, again = ("the recorded", "this") if times.whole else ("a step of", "a step")
    what = WORDS[bound]
    if bound == "host" and busy is None:
        what = "No device took part: the step is CPU work"
    parts = [f"{what}."]
    if busy is not None and ceiling is not None and bound not in ("warm-up", "cannot-tell"):
        told = f"The GPU works {100 * busy:.0f} % of {of} {time_text(step)}"
        if bound == "gpu" and busy >= BUSY:
            parts.append(f"{told}; only faster or fewer kernels make it shorter.")
        elif ceiling > 0:
            faster = f"{time_text(ceiling)} ({step / ceiling:.2g}x)"
            parts.append(f"{told}; if it never waited, {again} would take {faster}.")
    first = next((finding for finding in findings if finding.verdict == "exposed"), None)
    if first is not None and first.gain is not None:
        parts.append(f"First: {_advice(first.fix)} (about {time_text(first.gain.expected_ns)} a step).")
    elif bound == "warm-up":
        parts.append("Record again with warm-up steps: schedule(wait=1, warmup=2, active=3).")
    elif bound != "cannot-tell":
        parts.append("No bug was found that costs time now.")
    return " ".join(parts)


def _advice(fix: str) -> str:
    """The first clause of a fix."""
    return CLAUSE.split(fix, maxsplit=1)[0].rstrip(".")
