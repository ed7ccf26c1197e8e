"""StarGAN (arXiv 1711.09020): one generator for all changes of attributes, against a critic that names them too."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step
from torchdiag.models.vision.translation_parts import ResidualTranslation
from torchdiag.models.workload import Setting, Workload

ATTRIBUTES = 5
CLASSIFY, RECONSTRUCT, PENALTY = 1.0, 10.0, 10.0
"""Weights of the losses beside the critic's own."""


class Generator(nn.Module):
    """Images [N, 3, H, W] and wanted attributes [N, 5] to images."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3 + ATTRIBUTES
        for after, kernel, stride, padding in ((width, 7, 1, 3), (width * 2, 4, 2, 1), (width * 4, 4, 2, 1)):
            layers += [
                nn.Conv2d(channels, after, kernel, stride, padding, bias=False),
                nn.InstanceNorm2d(after, affine=True),
                nn.ReLU(inplace=True),
            ]
            channels = after
        layers += [ResidualTranslation(channels, affine=True, reflect=False) for _ in range(blocks)]
        for _ in range(2):
            layers += [
                nn.ConvTranspose2d(channels, channels // 2, 4, 2, 1, bias=False),
                nn.InstanceNorm2d(channels // 2, affine=True),
                nn.ReLU(inplace=True),
            ]
            channels //= 2
        self.body = nn.Sequential(*layers, nn.Conv2d(channels, 3, 7, 1, 3, bias=False), nn.Tanh())

    def forward(self, images: Tensor, attributes: Tensor) -> Tensor:
        """The attributes become planes beside the colours."""
        planes = attributes[:, :, None, None].expand(-1, -1, *images.shape[-2:])
        return self.body(torch.cat([images, planes], dim=1))


class Critic(nn.Module):
    """Images to a map of scores, and to logits of their attributes."""

    def __init__(self, width: int, depth: int, pixels: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels, after = 3, width
        for _ in range(depth):
            layers += [nn.Conv2d(channels, after, 4, 2, 1), nn.LeakyReLU(0.01)]
            channels, after = after, after * 2
        self.body = nn.Sequential(*layers)
        self.score = nn.Conv2d(channels, 1, 3, 1, 1, bias=False)
        self.names = nn.Conv2d(channels, ATTRIBUTES, pixels >> depth, bias=False)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """[N, 3, H, W] to scores [N, 1, h, w] and logits [N, 5]."""
        features = self.body(images)
        return self.score(features), self.names(features).flatten(1)


def gradient_penalty(critic: Critic, real: Tensor, fake: Tensor) -> Tensor:
    """How far the norm of the critic's gradient is from one between real and made images (arXiv 1704.00028)."""
    share = torch.rand(len(real), 1, 1, 1, device=real.device, dtype=real.dtype)
    between = (share * real + (1 - share) * fake).requires_grad_()
    score, _ = critic(between)
    gradient: Tensor = torch.autograd.grad(score.sum(), between, create_graph=True)[0]
    return (gradient.flatten(1).square().sum(dim=1).sqrt() - 1).square().mean()


def build(setting: Setting) -> Workload:
    """A step trains the critic, then the generator; evaluation changes the attributes of images."""
    width, blocks, depth, pixels = (4, 1, 3, 16) if setting.tiny else (64, 6, 6, 128)
    generator = Generator(width, blocks).to(setting.device, setting.dtype)
    images = torch.rand(setting.batch_size, 3, pixels, pixels, device=setting.device, dtype=setting.dtype) * 2 - 1
    wanted, present = (
        torch.randint(2, (setting.batch_size, ATTRIBUTES), device=setting.device).to(setting.dtype) for _ in range(2)
    )
    if not setting.training:
        generator.eval()
        return Workload(inference_step(setting, lambda: generator(images, wanted)), setting.batch_size, (generator,))
    critic = Critic(width, depth, pixels).to(setting.device, setting.dtype)
    generating = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.5, 0.999))
    criticising = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.5, 0.999))

    def named(logits: Tensor, attributes: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(logits, attributes, reduction="sum") / len(logits)

    def step() -> Tensor:
        criticising.zero_grad(set_to_none=True)
        with setting.autocast_context():
            score, names = critic(images)
            fake = generator(images, wanted).detach()
            loss = critic(fake)[0].mean() - score.mean() + CLASSIFY * named(names, present)
            loss = loss + PENALTY * gradient_penalty(critic, images, fake)
        loss.backward()
        criticising.step()
        generating.zero_grad(set_to_none=True)
        with setting.autocast_context():
            fake = generator(images, wanted)
            score, names = critic(fake)
            back = generator(fake, present)
            loss = CLASSIFY * named(names, wanted) - score.mean() + RECONSTRUCT * (images - back).abs().mean()
        loss.backward()
        generating.step()
        return loss

    return Workload(step, setting.batch_size, (generator, critic))
