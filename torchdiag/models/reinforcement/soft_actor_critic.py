"""Soft actor-critic (arXiv 1801.01290, with the learned temperature of 1812.05905) on a pendulum.

One training step takes one action in the environment, marked `environment` in a trace, and then updates the critics,
the actor and the temperature from a batch of the replay memory, which lives on the device.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import copy
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.reinforcement.environment import environment
from torchdiag.models.reinforcement.squashed_gaussian import sample
from torchdiag.models.workload import Setting, Workload

OBSERVATION, ACTION = 3, 1
DISCOUNT, AVERAGING = 0.99, 0.005


class Pendulum:
    """A pendulum under torque: angle from upright in radians, speed in radians a second, steps of 50 ms."""

    def __init__(self) -> None:
        self.angle, self.speed = math.pi, 0.0

    def observe(self) -> list[float]:
        """Cosine and sine of the angle, and the speed."""
        return [math.cos(self.angle), math.sin(self.angle), self.speed]

    def act(self, torque: float) -> float:
        """Apply a torque of -2 to 2 for one step; returns the reward."""
        torque = min(max(torque, -2.0), 2.0)
        wrapped = (self.angle + math.pi) % (2 * math.pi) - math.pi
        reward = -(wrapped**2 + 0.1 * self.speed**2 + 0.001 * torque**2)
        self.speed = min(max(self.speed + 0.05 * (15 * math.sin(self.angle) + 3 * torque), -8.0), 8.0)
        self.angle += 0.05 * self.speed
        return reward


def _perceptron(inputs: int, width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)
    )


class Actor(nn.Module):
    """Observations [N, 3] to actions [N, 1] in -1..1 and their log-probabilities [N, 1]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = _perceptron(OBSERVATION, width, 2 * ACTION)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """A sample by the reparametrisation trick, squashed by tanh."""
        mean, spread = self.body(observation).chunk(2, dim=-1)
        return sample(mean, spread.clamp(-10, 2))


class Critic(nn.Module):
    """Two independent estimates [N, 1] of the value of observations with actions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = _perceptron(OBSERVATION + ACTION, width, 1)
        self.second = _perceptron(OBSERVATION + ACTION, width, 1)

    def forward(self, observation: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Both estimates."""
        both = torch.cat([observation, action], dim=-1)
        return self.first(both), self.second(both)


def build(setting: Setting) -> Workload:
    """Hidden layers of 256 units, batches of 256; tiny: 32 units. Evaluation acts without learning."""
    width = 32 if setting.tiny else 256
    actor = Actor(width).to(setting.device, setting.dtype)
    critic = Critic(width).to(setting.device, setting.dtype)
    pendulum = Pendulum()

    def interact() -> None:
        with torch.no_grad():
            observation = torch.tensor([pendulum.observe()], device=setting.device, dtype=setting.dtype)
            action, _ = actor(observation)
        torque = 2 * float(action)
        with environment():
            pendulum.act(torque)

    if not setting.training:
        return Workload(interact, 1, (actor,))

    learn = _learner(setting, actor, critic)

    def step() -> Tensor:
        interact()
        return learn()

    return Workload(step, setting.batch_size, (actor, critic))


class _Memory:
    """Random transitions on the device, of which each update takes a random batch."""

    def __init__(self, setting: Setting, capacity: int = 10_000) -> None:
        def random(width: int) -> Tensor:
            return torch.randn(capacity, width, device=setting.device, dtype=setting.dtype)

        self.observation, self.following = random(OBSERVATION), random(OBSERVATION)
        self.action, self.reward = random(ACTION).tanh(), -random(1).square()

    def sample(self, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        rows = torch.randint(len(self.reward), (count,), device=self.reward.device)
        return self.observation[rows], self.action[rows], self.reward[rows], self.following[rows]


def _learner(setting: Setting, actor: Actor, critic: Critic) -> Callable[[], Tensor]:
    target = copy.deepcopy(critic).requires_grad_(False)
    temperature = torch.zeros(1, device=setting.device, dtype=setting.dtype, requires_grad=True)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=3e-4)
    temperature_optimizer = torch.optim.Adam([temperature], lr=3e-4)
    memory = _Memory(setting)

    def learn() -> Tensor:
        observation, action, reward, following = memory.sample(setting.batch_size)
        with setting.autocast_context():
            with torch.no_grad():
                next_action, next_log_probability = actor(following)
                next_value = torch.minimum(*target(following, next_action))
                wanted = reward + DISCOUNT * (next_value - temperature.exp() * next_log_probability)
            first, second = critic(observation, action)
            critic_loss = functional.mse_loss(first, wanted) + functional.mse_loss(second, wanted)
        critic_optimizer.zero_grad(set_to_none=True)
        critic_loss.backward()
        critic_optimizer.step()

        with setting.autocast_context():
            new_action, log_probability = actor(observation)
            value = torch.minimum(*critic(observation, new_action))
            actor_loss = (temperature.exp().detach() * log_probability - value).mean()
        actor_optimizer.zero_grad(set_to_none=True)
        actor_loss.backward()
        actor_optimizer.step()

        temperature_loss = -(temperature.exp() * (log_probability.detach() - ACTION)).mean()
        temperature_optimizer.zero_grad(set_to_none=True)
        temperature_loss.backward()
        temperature_optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), critic.parameters(), strict=True):
                slow.lerp_(fast, AVERAGING)
        return critic_loss

    return learn
