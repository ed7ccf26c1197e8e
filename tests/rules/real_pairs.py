"""Programs with a bug on the processor, each with its fix, measured and recorded with torch itself.

Times are CPU times of the thread, which other programs of the machine do not lengthen; of several recordings the one
that was disturbed least is taken.
"""

import copy
import gc
import importlib
import io
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import mean, median

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from torchdiag.diagnosis.gains import Charge, Weighed, weigh
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.load import load

Step = Callable[[], object]
STEPS = 16
SESSIONS = 2
REPEATS = 30


@dataclass(frozen=True)
class RealPair:
    """A step with a bug, `slow`, and one without.

    `stacks`: whether it takes Python stacks to see it; `periodic`: whether all steps are needed to see it. `recorded`
    steps are recorded at a time, `repeats` measured.
    """

    rule: str
    slow: Step
    fixed: Step
    stacks: bool = False
    periodic: bool = False
    recorded: int = STEPS
    repeats: int = REPEATS


@dataclass(frozen=True)
class Outcome:
    """Shares (0..1) of the slow step: what the fix won, and what was predicted from a recording of the slow one."""

    measured: float
    low: float
    predicted: float
    high: float
    title: str


def won(pair: RealPair) -> float:
    """The share of the CPU time of a slow step that the fix wins; the two are measured in turn."""
    taken: tuple[list[int], list[int]] = ([], [])
    for number in range(pair.repeats + 3):
        for which, step in enumerate((pair.slow, pair.fixed)):
            start = time.thread_time_ns()
            step()
            if number >= 3:
                taken[which].append(time.thread_time_ns() - start)
    slow, fixed = (mean(times) if pair.periodic else median(times) for times in taken)
    return 1 - fixed / slow


def record(pair: RealPair, file: Path) -> Facts:
    """Slow steps, from a profiler that records little, or stacks as well; the least disturbed unless all are needed."""
    config = torch._C._profiler._ExperimentalConfig(record_python_gc_info=True)
    best: Facts | None = None
    gc.collect()
    gc.freeze()  # what was there before is not the program's
    for _ in range(SESSIONS):
        with profile(activities=[ProfilerActivity.CPU], with_stack=pair.stacks, experimental_config=config) as session:
            for number in range(pair.recorded):
                with record_function(f"ProfilerStep#{number}"):
                    pair.slow()
        session.export_chrome_trace(str(file))
        facts = Facts.of(load(file))
        if not pair.periodic:
            fastest = min(facts.steps[2:], key=lambda one: one.end_ns - one.start_ns)
            facts = Facts(facts.trace, facts.partition, (fastest,), "marks")
        if best is None or facts.get(steady).step_ns < best.get(steady).step_ns:
            best = facts
    assert best is not None
    return best


def outcome(pair: RealPair, folder: Path) -> Outcome | None:
    """What the rule predicts and what the fix wins; None where the rule says nothing."""
    rule = importlib.import_module(f"torchdiag.rules.{pair.rule.replace('-', '_')}").RULE
    facts = record(pair, folder / "trace.json")
    weighed: list[Weighed] = weigh(facts, [Charge(rule, suspect) for suspect in rule.check(facts)])
    measured = won(pair)
    gains = [one.gain for one in weighed if one.gain is not None]
    if not gains:
        return None
    step_ns = facts.get(steady).step_ns
    low, expected, high = (sum(getattr(gain, f"{name}_ns") for gain in gains) for name in ("low", "expected", "high"))
    return Outcome(measured, low / step_ns, expected / step_ns, high / step_ns, weighed[0].charge.suspect.title)


def compiled(*, of_many_sizes: bool) -> Step:
    """Products of matrices, and a function compiled for one size at a time, called with one size or with another each.

    The compiler is imported by the first step.
    """
    big = torch.randn(600, 600)
    weight = torch.randn(8, 8)
    sizes = count(2)
    known: list[Callable[[torch.Tensor], torch.Tensor]] = []

    def step() -> None:
        if not known:
            dynamo = importlib.import_module("torch._dynamo")
            dynamo.config.cache_size_limit = dynamo.config.accumulated_cache_size_limit = 1_000
            known.append(torch.compile(lambda x: torch.relu(x @ weight), backend="eager", dynamic=False))
        for _ in range(12):
            torch.mm(big, big)
        known[0](torch.ones(next(sizes) if of_many_sizes else 5, 8))

    return step


class Wrapper:
    """Looks attributes up in a model, and says which model has none."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model

    def __getattr__(self, name: str) -> object:
        raise AttributeError(f"no {name} in {self.model}")


def real_pairs() -> list[RealPair]:
    """All of them. What a step does beside the bug takes about as long as the bug."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    left, right = torch.randn(160, 160), torch.randn(160, 160)

    def work(times: int) -> None:
        for _ in range(times):
            torch.mm(left, right)

    parameters = [torch.nn.Parameter(torch.randn(16, 16)) for _ in range(60)]
    for parameter in parameters:
        parameter.grad = torch.randn(16, 16)
    gradient = torch.randn(16, 16)
    averages = [parameter.detach().clone() for parameter in parameters]
    few = parameters[:34]
    one_by_one, fused = torch.optim.AdamW(few, foreach=False), torch.optim.AdamW(few, fused=True)
    idle = torch.optim.SGD(parameters)
    rows, weights = torch.randn(80, 64), torch.randn(80, 64)
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()) for _ in range(30)))
    kept = list(model.parameters())
    wrapper = Wrapper(model)
    mean, std = torch.zeros(8, 4), torch.ones(8, 4)
    settings = {f"layer {number}": {"rate": [0.1, 0.2], "sizes": [3, number]} for number in range(60)}
    logger = logging.getLogger("torchdiag.tests.real_pairs")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.handlers = [logging.StreamHandler(io.StringIO())]

    def average() -> None:
        work(2)
        with torch.no_grad():
            for mine, theirs in zip(averages, parameters, strict=True):
                mine.mul_(0.99).add_(theirs, alpha=0.01)

    def average_at_once() -> None:
        work(2)
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, 0.01)

    def loop() -> torch.Tensor:
        work(4)
        out = torch.empty_like(rows)
        for number in range(len(rows)):
            out[number] = rows[number] * weights[number]
        return out

    def collecting(*, automatic: bool) -> Step:
        def step() -> None:
            (gc.enable if automatic else gc.disable)()
            work(4)
            kept_alive = [[number] for number in range(20_000)]
            gc.enable()
            del kept_alive

        return step

    def distribution(*, validate: bool) -> Step:  # told, since torch.compile switches off what is done by itself
        def step() -> None:
            work(2)
            for _ in range(6):
                torch.distributions.Normal(mean, std, validate_args=validate).log_prob(mean)

        return step

    def filled(*, to_none: bool) -> Step:
        def step() -> None:
            work(1)
            for parameter in parameters:
                parameter.grad = gradient
            idle.zero_grad(set_to_none=to_none)

        return step

    def copied_deeply() -> None:
        work(8)
        copy.deepcopy(settings)

    def walked() -> None:
        work(4)
        model.train()
        [parameter for _, parameter in model.named_parameters()]

    def logged() -> None:
        work(4)
        for number in range(40):
            logger.info("step %d: %s %s", number, mean.shape, settings["layer 1"])

    return [
        RealPair("optimizer-for-loop", lambda: (work(4), one_by_one.step()), lambda: (work(4), fused.step())),
        RealPair("ema-for-loop", average, average_at_once),
        RealPair("python-loop-small-ops", loop, lambda: (work(4), rows * weights)),
        RealPair("redundant-validation", distribution(validate=True), distribution(validate=False)),
        RealPair("zero-grad-memset", filled(to_none=False), filled(to_none=True)),
        RealPair(
            "python-gc-pause", collecting(automatic=True), collecting(automatic=False), stacks=True, periodic=True
        ),
        RealPair(
            "deepcopy-in-loop",
            copied_deeply,
            lambda: (work(8), dict(settings)),
            stacks=True,
        ),
        RealPair(
            "module-tree-walk",
            walked,
            lambda: (work(4), kept),
            stacks=True,
        ),
        RealPair(
            "recompile-steady-state",
            compiled(of_many_sizes=True),
            compiled(of_many_sizes=False),
            periodic=True,
            recorded=5,
            repeats=6,
        ),
        RealPair("warning-logging-hot-path", logged, lambda: work(4), stacks=True),
        RealPair("attr-miss-exception", lambda: (work(8), hasattr(wrapper, "x")), lambda: work(8), stacks=True),
    ]
