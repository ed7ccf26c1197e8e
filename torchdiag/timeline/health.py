"""The trace's health: what is missing, faulty or distorted in it, told before anybody believes its numbers."""

from torchdiag.timeline import health_device, health_host
from torchdiag.timeline.activity import Activities
from torchdiag.timeline.result import Step
from torchdiag.trace.columns import Trace
from torchdiag.trace.quality import Quality


def health(trace: Trace, activities: Activities, steps: tuple[Step, ...], *, overruns: int = 0) -> list[Quality]:
    """Quality notes, gravest first; a healthy trace has none but facts about how it was recorded.

    `overruns` is the number of activities whose faulty duration was cut. Codes: `gpu-not-recorded`, `host-only`,
    `graph-replay-without-kernels`, `graph-replay-incomplete`, `launches-without-work`, `unlinked-gpu-work`,
    `kernel-overruns-successor`, `correlation-zero`, `several-ranks`, `clock-outliers`, `duplicate-events`,
    `partial-steps`, `profiler-overhead`, `stacks-slow-the-host`, `no-stacks`, `no-shapes`.
    """
    notes = (
        health_device.not_recorded(trace, activities),
        health_device.replays_without_kernels(trace, activities),
        health_device.incomplete_replays(trace, activities),
        health_device.launches_without_work(trace, activities, steps),
        health_device.unlinked(trace, activities),
        health_device.overrunning(overruns),
        health_device.correlation_zero(trace, activities),
        health_host.several_ranks(trace),
        health_host.clock_outliers(trace),
        health_host.duplicates(trace),
        health_host.partial_steps(steps),
        health_host.profiler_overhead(trace, steps),
        health_host.stack_inflation(trace),
        health_host.no_stacks(trace),
        health_host.no_shapes(trace),
    )
    return [note for note in notes if note is not None]
