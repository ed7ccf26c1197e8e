"""DrQ (arXiv 2004.13649): soft actor-critic from pixels, each image shifted at random.

One training step takes one action in the environment, marked `environment` in a trace, and then updates critics, actor
and temperature from a batch of the replay memory, which lives on the device.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.reinforcement.environment import environment
from torchdiag.models.reinforcement.squashed_gaussian import sample
from torchdiag.models.workload import Setting, Workload

ACTIONS = 6
FRAMES = 3
PADDING = 4
DISCOUNT, AVERAGING, START_TEMPERATURE = 0.99, 0.01, 0.1


@dataclass(frozen=True, slots=True)
class Sizes:
    """Edge of the images in pixels, width of the hidden layers, samples an update, transitions remembered."""

    pixels: int = 84
    hidden: int = 1024
    update: int = 512
    memory: int = 2048


class Disc:
    """A disc that six engines push about a picture, drawn in three colours; the last three frames are seen."""

    def __init__(self, pixels: int) -> None:
        self.place, self.speed = np.array([0.5, 0.5]), np.zeros(2)
        self.grid = np.stack(np.meshgrid(*[np.linspace(0, 1, pixels)] * 2, indexing="ij"))
        directions = np.arange(ACTIONS) * (2 * np.pi / ACTIONS)
        self.directions = np.stack([np.cos(directions), np.sin(directions)], axis=1)
        self.frames = np.zeros((FRAMES, 3, pixels, pixels), dtype=np.uint8)

    def observe(self) -> NDArray[np.uint8]:
        """The last frames, [9, pixels, pixels]."""
        return self.frames.reshape(-1, *self.frames.shape[2:])

    def act(self, thrust: NDArray[np.float32]) -> float:
        """Push by six thrusts of -1 to 1; returns the reward, which is the nearness to the middle."""
        self.speed = 0.9 * self.speed + 0.01 * thrust @ self.directions
        self.place = np.clip(self.place + self.speed, 0, 1)
        distance = np.hypot(*(self.grid - self.place[:, None, None]))
        frame = np.stack([distance < 0.1, distance < 0.2, distance > 0.5]).astype(np.uint8) * 255
        self.frames = np.concatenate([self.frames[1:], frame[None]])
        return 1 - float(np.hypot(*(self.place - 0.5)))


class Encoder(nn.Module):
    """Images [N, 9, P, P], 0 to 255, to features [N, 50]: four convolutions, a projection, a norm."""

    def __init__(self, pixels: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3 * FRAMES, 32, 3, stride=2), nn.ReLU()]
        for _ in range(3):
            layers += [nn.Conv2d(32, 32, 3), nn.ReLU()]
        self.convolutions = nn.Sequential(*layers)
        edge = (pixels - 3) // 2 + 1 - 6
        self.project = nn.Sequential(nn.Linear(32 * edge * edge, 50), nn.LayerNorm(50), nn.Tanh())

    def forward(self, images: Tensor, learn_convolutions: bool = True) -> Tensor:
        """The features. The actor leaves the convolutions, which it shares, to the critic."""
        features = self.convolutions(images / 255).flatten(1)
        return self.project(features if learn_convolutions else features.detach())


def _perceptron(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )


class Actor(nn.Module):
    """Images to actions [N, 6] in -1..1 and their log-probabilities [N, 1]; its convolutions are the critic's."""

    def __init__(self, sizes: Sizes, critic: "Critic") -> None:
        super().__init__()
        self.encoder = Encoder(sizes.pixels)
        self.encoder.convolutions = critic.encoder.convolutions
        self.body = _perceptron(50, sizes.hidden, 2 * ACTIONS)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """A sample of the policy."""
        mean, spread = self.body(self.encoder(images, learn_convolutions=False)).chunk(2, dim=-1)
        return sample(mean, -10 + 6 * (spread.tanh() + 1))


class Critic(nn.Module):
    """Two estimates [N, 1] of the value of images with actions."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.encoder = Encoder(sizes.pixels)
        self.first = _perceptron(50 + ACTIONS, sizes.hidden, 1)
        self.second = _perceptron(50 + ACTIONS, sizes.hidden, 1)

    def forward(self, images: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Both estimates."""
        both = torch.cat([self.encoder(images), actions], dim=-1)
        return self.first(both), self.second(both)


def shifted(images: Tensor) -> Tensor:
    """Each image [N, C, P, P] moved by up to 4 pixels either way, its border repeated."""
    count, _, height, width = images.shape
    padded = functional.pad(images, [PADDING] * 4, mode="replicate")
    offsets = torch.randint(2 * PADDING + 1, (2, count, 1), device=images.device)
    rows = (offsets[0] + torch.arange(height, device=images.device)).unsqueeze(2)
    columns = (offsets[1] + torch.arange(width, device=images.device)).unsqueeze(1)
    which = torch.arange(count, device=images.device).view(-1, 1, 1)
    return padded.permute(0, 2, 3, 1)[which, rows, columns].permute(0, 3, 1, 2)


class _Memory:
    """Random transitions on the device; images are bytes there."""

    def __init__(self, setting: Setting, sizes: Sizes) -> None:
        shape = (sizes.memory, 3 * FRAMES, sizes.pixels, sizes.pixels)
        self.setting, self.count = setting, sizes.update
        self.images = torch.randint(256, shape, dtype=torch.uint8, device=setting.device)
        self.actions = torch.rand(sizes.memory, ACTIONS, device=setting.device, dtype=setting.dtype) * 2 - 1
        self.rewards = torch.rand(sizes.memory, 1, device=setting.device, dtype=setting.dtype)

    def draw(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Images, actions, rewards, and the images after: those remembered next."""
        rows = torch.randint(len(self.images) - 1, (self.count,), device=self.images.device)
        before, after = (self.images[which].to(self.setting.dtype) for which in (rows, rows + 1))
        return before, self.actions[rows], self.rewards[rows], after


def build(setting: Setting) -> Workload:
    """84x84 images, 1024 hidden units, updates of 512; tiny: 32x32, 32 units, updates of 8. Evaluation only acts."""
    sizes = Sizes(32, 32, 8, 64) if setting.tiny else Sizes()
    critic = Critic(sizes).to(setting.device, setting.dtype)
    actor = Actor(sizes, critic).to(setting.device, setting.dtype)
    disc = Disc(sizes.pixels)

    def interact() -> None:
        with torch.no_grad():
            images = torch.from_numpy(disc.observe()).to(setting.device).to(setting.dtype).unsqueeze(0)
            action, _ = actor(images)
        thrust = action[0].float().cpu().numpy()
        with environment():
            disc.act(thrust)

    if not setting.training:
        return Workload(interact, 1, (actor,))
    learn = _learner(setting, sizes, actor, critic)

    def step() -> Tensor:
        interact()
        return learn()

    return Workload(step, 1, (actor, critic))


def _learner(setting: Setting, sizes: Sizes, actor: Actor, critic: Critic) -> Callable[[], Tensor]:
    target = copy.deepcopy(critic).requires_grad_(False)
    temperature = torch.full((1,), START_TEMPERATURE, device=setting.device).log().requires_grad_(True)
    own = [*actor.encoder.project.parameters(), *actor.body.parameters()]
    actor_optimizer = torch.optim.Adam(own, lr=1e-3)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
    temperature_optimizer = torch.optim.Adam([temperature], lr=1e-3)
    memory = _Memory(setting, sizes)

    def value_after(images: Tensor, reward: Tensor) -> Tensor:
        action, log_probability = actor(images)
        value = torch.minimum(*target(images, action)) - temperature.exp() * log_probability
        return reward + DISCOUNT * value

    def critic_step(before: Tensor, action: Tensor, reward: Tensor, after: Tensor) -> Tensor:
        with setting.autocast_context():
            with torch.no_grad():
                wanted = (value_after(shifted(after), reward) + value_after(shifted(after), reward)) / 2
            estimates = [*critic(shifted(before), action), *critic(shifted(before), action)]
            loss = torch.stack(
                [functional.mse_loss(estimate, wanted.to(estimate.dtype)) for estimate in estimates]
            ).sum()
        critic_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        critic_optimizer.step()
        return loss

    def actor_step(before: Tensor) -> None:
        with setting.autocast_context():
            images = shifted(before)
            action, log_probability = actor(images)
            loss = (temperature.exp().detach() * log_probability - torch.minimum(*critic(images, action))).mean()
        actor_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        actor_optimizer.step()
        temperature_loss = -(temperature.exp() * (log_probability.detach() - ACTIONS)).mean()
        temperature_optimizer.zero_grad(set_to_none=True)
        temperature_loss.backward()
        temperature_optimizer.step()

    def learn() -> Tensor:
        before, action, reward, after = memory.draw()
        loss = critic_step(before, action, reward, after)
        actor_step(before)
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), critic.parameters(), strict=True):
                slow.lerp_(fast, AVERAGING)
        return loss

    return learn
