"""A training script with places where a bug, or its fix, can be put."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from simulator.kineto_form import Recording
from simulator.simulated_machine import Run
from simulator.simulated_program import Body, Pair, Program
from simulator.torch_calls import Session, Tensor, Torch
from simulator.training_parts import AdamW, Loader, Net

NET = Net()

Hook = Callable[[Torch, int], Run]


def nothing(t: Torch, step: int) -> Run:
    """Where a script does nothing special."""
    yield from ()


@dataclass(frozen=True)
class Script:
    """One step: take a batch, move it, forward, loss, backward, optimizer, bookkeeping.

    `per_layer` runs after each layer of the forward pass, the other places are named after what is around them.
    `net_of_step(step)` is
    the network where its input changes from step to step. `move()` makes the way a batch gets to the device, where that
    is not one copy. `bookkeeping_us` is plain Python at the end of each step: meters, a progress bar, the schedule.
    """

    net: Net = NET
    net_of_step: Callable[[int], Net] | None = None
    loader: Callable[[], Loader] = Loader
    batch: Tensor | None = None
    pinned: bool = True
    non_blocking: bool = True
    optimizer: AdamW | None = None
    bookkeeping_us: float = 60
    prepare: Callable[[Session], None] = lambda session: None
    move: Callable[[], Hook] | None = None
    before_forward: Hook = nothing
    per_layer: Hook | None = None
    before_backward: Hook = nothing
    after_backward: Hook = nothing
    after_step: Hook = nothing

    def make(self) -> Body:
        loader, optimizer = self.loader(), self.optimizer or AdamW(self.net.parameters)
        move = None if self.move is None else self.move()

        def body(t: Torch, step: int) -> Run:
            if not step:
                self.prepare(t.session)
            net = self.net if self.net_of_step is None else self.net_of_step(step)
            batch = self.batch or net.input
            yield from loader.next(t.at(104))
            if move is None:
                yield from t.at(105).to_device(batch, pinned=self.pinned, non_blocking=self.non_blocking)
            else:
                yield from move(t.at(105), step)
            with t.at(106).frame("train.py(52): train_step"):
                yield from self.before_forward(t.at(53), step)
                yield from net.forward(t.at(55), self.per_layer)
                yield from net.loss(t.at(57))
                yield from self.before_backward(t.at(58), step)
                yield from t.at(60).backward()
                yield from self.after_backward(t.at(61), step)
                yield from optimizer.step(t.at(63))
                yield from optimizer.zero_grad(t.at(64))
            yield from self.after_step(t.at(108), step)
            with t.at(110).frame("train.py(77): update_meters"):
                t.think(self.bookkeeping_us)

        return body


@dataclass(frozen=True)
class Inference:
    """A step is some iterations of a forward pass, `per_iteration(t, number)` before each, without gradients."""

    net: Net = NET
    iterations: int = 10
    per_iteration: Hook = nothing
    per_layer: Hook | None = None
    python_us: float = 20

    def make(self) -> Body:
        def body(t: Torch, step: int) -> Run:
            t.session.grad_enabled = False
            with t.at(106).frame("sample.py(40): sample"):
                for number in range(self.iterations):
                    yield from self.per_iteration(t.at(44), number)
                    yield from self.net.forward(t.at(46), self.per_layer)
                    t.at(47).think(self.python_us)

        return body


def pair(rule: str, slow: Script | Inference, why: str, *, options: dict[str, Any] | None = None, **fix: Any) -> Pair:
    """A script with the bug `rule`, and the same script with the fields `fix` replaced, on the same machine."""
    settings = options or {}
    return Pair(
        rule,
        Program(f"{rule} slow", slow.make, **settings),
        Program(f"{rule} fixed", replace(slow, **fix).make, **settings),
        why,
    )


NO_STACK = Recording(with_stack=False)
