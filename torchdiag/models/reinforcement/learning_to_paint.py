"""Learning to paint (arXiv 1903.04411): a model-based DDPG painter, rewarded by a Wasserstein judge.

One training step lets a batch of painters make one move, marked `environment` in a trace where the strokes are drawn,
and then updates judge, critic and painter from remembered canvases. Everything stays on the device.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import copy
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.reinforcement.environment import environment
from torchdiag.models.reinforcement.painter_networks import Judge, Renderer, ResNet18, gradient_penalty
from torchdiag.models.workload import Setting, Workload

_Network = TypeVar("_Network", bound=nn.Module)

STROKES, NUMBERS = 5, 13
EPISODE = 40
DISCOUNT, AVERAGING, NOISE, PENALTY = 0.95**STROKES, 1e-3, 0.05, 10.0


@dataclass(frozen=True, slots=True)
class Canvases:
    """Pictures in the making and what they are to become [N, 3, P, P], 0 to 1; moves made so far, a share [N]."""

    painted: Tensor
    target: Tensor
    progress: Tensor


class Studio:
    """The environment: what five strokes make of a canvas, and how well that is received."""

    def __init__(self, renderer: Renderer, judge: Judge, pixels: int, device: torch.device) -> None:
        self.renderer, self.judge = renderer, judge
        places = torch.linspace(-1, 1, pixels, device=device)
        self.places = torch.stack(torch.meshgrid(places, places, indexing="ij"))

    def observe(self, canvases: Canvases) -> Tensor:
        """What a painter sees [N, 9, P, P]: canvas, target, progress, and where each pixel is."""
        painted = canvases.painted
        count, _, height, width = painted.shape
        progress = canvases.progress.to(painted.dtype).view(-1, 1, 1, 1).expand(-1, 1, height, width)
        places = self.places.to(painted.dtype).expand(count, -1, -1, -1)
        return torch.cat([painted, canvases.target, progress, places], dim=1)

    def paint(self, canvases: Canvases, moves: Tensor) -> Canvases:
        """Draw five strokes [N, 65], one over the other: ten numbers of shape and three of colour each."""
        painted, strokes = canvases.painted, moves.view(-1, NUMBERS)
        paint = self.renderer(strokes[:, :10]).view(len(moves), STROKES, 1, *painted.shape[2:]).to(painted.dtype)
        colours = strokes[:, 10:].view(len(moves), STROKES, 3, 1, 1).to(painted.dtype)
        for stroke in range(STROKES):
            painted = torch.lerp(painted, colours[:, stroke].expand_as(painted), paint[:, stroke])
        return Canvases(painted, canvases.target, canvases.progress + 1 / EPISODE)

    def reward(self, before: Canvases, after: Canvases) -> Tensor:
        """How much better the judge likes it [N, 1]."""
        return self._score(after) - self._score(before)

    def _score(self, canvases: Canvases) -> Tensor:
        return self.judge(torch.cat([canvases.painted, canvases.target], dim=1))


class Painters:
    """A batch of painters with everything they learn, and one move of theirs as a step."""

    def __init__(self, setting: Setting) -> None:
        pixels, width = (32, 8) if setting.tiny else (128, 64)
        renderer = Renderer(4, (32, 64)) if setting.tiny else Renderer(16, (512, 1024, 2048))
        self.setting = setting
        self.actor = self._placed(ResNet18(9, width, STROKES * NUMBERS, batch_norm=True))
        self.critic = self._placed(ResNet18(12, width, 1, batch_norm=False))
        self.judge = self._placed(Judge(4 if setting.tiny else 16))
        self.renderer = self._placed(renderer).requires_grad_(False)
        self.slow_judge = copy.deepcopy(self.judge).requires_grad_(False)
        self.studio = Studio(self.renderer, self.slow_judge, pixels, setting.device)
        self.canvases = self._random_canvases(pixels)
        self.remembered = self._random_canvases(pixels)

    def _placed(self, module: _Network) -> _Network:
        return module.to(self.setting.device, self.setting.dtype).train(self.setting.training)

    def _random_canvases(self, pixels: int) -> Canvases:
        shape = (self.setting.batch_size, 3, pixels, pixels)
        painted, target = (torch.rand(shape, device=self.setting.device, dtype=self.setting.dtype) for _ in range(2))
        return Canvases(painted, target, torch.zeros(shape[0], device=self.setting.device))

    def move(self) -> Tensor:
        """Make one move, with noise while learning; returns the rewards [N, 1]."""
        with torch.no_grad(), self.setting.autocast_context():
            moves = self.policy(self.actor, self.canvases)
            if self.setting.training:
                moves = (moves + NOISE * torch.randn_like(moves)).clamp(0, 1)
            with environment():
                after = self.studio.paint(self.canvases, moves)
                reward = self.studio.reward(self.canvases, after)
        # Nobody waits for an episode's end: a canvas is never blank again, and progress starts over.
        self.remembered, self.canvases = (
            self.canvases,
            Canvases(after.painted, after.target, after.progress % 1),
        )
        return reward

    def policy(self, actor: ResNet18, canvases: Canvases) -> Tensor:
        """The moves [N, 65], 0 to 1, that an actor makes."""
        return actor(self.studio.observe(canvases)).sigmoid()


def _value(painters: Painters, critic: ResNet18, before: Canvases, moves: Tensor) -> Tensor:
    """What the moves are worth [N, 1]: their own reward, and the critic's opinion of the canvases they lead to."""
    after = painters.studio.paint(before, moves)
    seen = torch.cat([after.painted, painters.studio.observe(before)], dim=1)
    return critic(seen) + painters.studio.reward(before, after)


class _Learner:
    def __init__(self, painters: Painters) -> None:
        self.painters = painters
        self.slow_actor = copy.deepcopy(painters.actor).requires_grad_(False)
        self.slow_critic = copy.deepcopy(painters.critic).requires_grad_(False)
        self.actor_optimizer = torch.optim.Adam(painters.actor.parameters(), lr=1e-3)
        self.critic_optimizer = torch.optim.Adam(painters.critic.parameters(), lr=3e-4)
        self.judge_optimizer = torch.optim.Adam(painters.judge.parameters(), lr=3e-4, betas=(0.5, 0.999))

    def learn(self) -> Tensor:
        """One update of each; returns the critic's loss."""
        before = self.painters.remembered
        with torch.no_grad(), self.painters.setting.autocast_context():
            moves = self.painters.policy(self.slow_actor, before)
            after = self.painters.studio.paint(before, moves)
        self._judge_step(after)
        loss = self._critic_step(before, moves, after)
        self._actor_step(before)
        self._follow()
        return loss

    def _judge_step(self, after: Canvases) -> None:
        real = torch.cat([after.target, after.target], dim=1)
        fake = torch.cat([after.painted, after.target], dim=1)
        judge = self.painters.judge
        with self.painters.setting.autocast_context():
            loss = judge(fake).mean() - judge(real).mean() + PENALTY * gradient_penalty(judge, real, fake)
        self.judge_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.judge_optimizer.step()

    def _critic_step(self, before: Canvases, moves: Tensor, after: Canvases) -> Tensor:
        painters = self.painters
        with painters.setting.autocast_context():
            with torch.no_grad():
                following = painters.policy(self.slow_actor, after)
                wanted = painters.studio.reward(before, after)
                wanted = wanted + DISCOUNT * _value(painters, self.slow_critic, after, following)
            loss = functional.mse_loss(_value(painters, painters.critic, before, moves), wanted)
        self.critic_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.critic_optimizer.step()
        return loss

    def _actor_step(self, before: Canvases) -> None:
        painters = self.painters
        with painters.setting.autocast_context():
            loss = -_value(painters, painters.critic, before, painters.policy(painters.actor, before)).mean()
        self.actor_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.actor_optimizer.step()

    def _follow(self) -> None:
        painters = self.painters
        pairs = (
            (self.slow_actor, painters.actor),
            (self.slow_critic, painters.critic),
            (painters.slow_judge, painters.judge),
        )
        with torch.no_grad():
            for slow, fast in pairs:
                for late, early in zip(slow.parameters(), fast.parameters(), strict=True):
                    late.lerp_(early, AVERAGING)


def build(setting: Setting) -> Workload:
    """128x128 canvases at the paper's widths; tiny: 32x32 at an eighth of them. Evaluation only paints."""
    painters = Painters(setting)
    if not setting.training:
        modules = (painters.actor, painters.renderer, painters.slow_judge)
        return Workload(painters.move, setting.batch_size, modules)
    learner = _Learner(painters)

    def step() -> Tensor:
        painters.move()
        return learner.learn()

    return Workload(step, setting.batch_size, (painters.actor, painters.critic, painters.judge, painters.renderer))
