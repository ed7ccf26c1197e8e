"""Programs for the simulated machine, and what comes of simulating one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from simulator.kineto_form import Recording, text_of, trace_of
from simulator.simulated_machine import Costs, Machine, Run, Span
from simulator.torch_calls import ADD, FILL, Session, Torch
from simulator.training_parts import loop

RECORDING = Recording()
COSTS = Costs()

Body = Callable[[Torch, int], Run]


@dataclass(frozen=True)
class Program:
    """A script and the machine it runs on. `make()` gives one step's body, fresh for every simulation."""

    name: str
    make: Callable[[], Body]
    recording: Recording = RECORDING
    costs: Costs = COSTS
    queue_depth: int = 1024
    launch_blocking: bool = False
    steps: int = 6


@dataclass(frozen=True)
class Pair:
    """The same script with a bug and without it. `rule` is the bug's id in the catalogue, `why` what the fix wins."""

    rule: str
    slow: Program
    fixed: Program
    why: str


@dataclass(frozen=True)
class Simulated:
    """A trace and the truth about it.

    A step is over when its mark has ended and the device has done what was launched under the mark; `step_ns` is the
    time from the end of one step to the end of the next, for the first one from the start of its mark. They sum up to
    the time from the first mark to the end of all work. `mark_ns` are the marks' own lengths.
    """

    trace: dict[str, Any]
    step_ns: list[int]
    mark_ns: list[int]
    busy_ns: int = field(repr=False)
    """How long the device had something to do, from the first mark on."""

    @property
    def steady_ns(self) -> float:
        """The mean of all steps but the first, which is a warm-up."""
        return fmean(self.step_ns[1:])

    def text(self) -> str:
        return text_of(self.trace)

    def write(self, path: Path) -> None:
        path.write_text(self.text())


def simulate(program: Program, steps: int | None = None, seed: int = 0) -> Simulated:
    """Run a program for some steps (its own number without); the same seed gives the same trace."""
    machine = Machine(
        seed=seed, costs=program.costs, queue_depth=program.queue_depth, launch_blocking=program.launch_blocking
    )
    machine.loaded |= {ADD.name, FILL.name}  # by whatever made the parameters
    session = Session(machine)
    main = machine.thread(machine.pid)
    machine.start(main, loop(Torch(session, main), steps or program.steps, program.make()))
    machine.run()
    marks = session.marks
    for number, (start, end) in enumerate(marks):
        args = {"External id": 1_000_000 + number, "Record function id": 0}
        machine.spans.append(Span("user_annotation", f"ProfilerStep#{number}", machine.pid, start, end, args))
    done, step_ns = marks[0][0], []
    for start, end in marks:
        last = max((work.end_ns for work in machine.works if start <= work.call.start_ns < end), default=0)
        over = max(done, end, last)
        step_ns.append(over - done)
        done = over
    trace = trace_of(machine, session.flows, program.recording, end_ns=main.now)
    return Simulated(trace, step_ns, [end - start for start, end in marks], busy_ns(machine))


def busy_ns(machine: Machine) -> int:
    """The union of all device work."""
    total = reached = 0
    for work in sorted(machine.works, key=lambda work: work.start_ns):
        total += max(0, work.end_ns - max(reached, work.start_ns))
        reached = max(reached, work.end_ns)
    return total
