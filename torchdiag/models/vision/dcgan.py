"""DCGAN (arXiv 1511.06434): a transposed-convolution generator against a convolutional discriminator."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step
from torchdiag.models.workload import Setting, Workload

LATENT = 100


class Generator(nn.Sequential):
    """Latent [N, 100, 1, 1] to images [N, 3, 64, 64]."""

    def __init__(self, width: int) -> None:
        channels = [LATENT, width * 8, width * 4, width * 2, width]
        layers: list[nn.Module] = []
        for depth, (before, after) in enumerate(pairwise(channels)):
            stride, padding = (1, 0) if depth == 0 else (2, 1)
            layers += [
                nn.ConvTranspose2d(before, after, 4, stride, padding, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(inplace=True),
            ]
        super().__init__(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())


class Discriminator(nn.Sequential):
    """Images [N, 3, 64, 64] to logits [N, 1, 1, 1]."""

    def __init__(self, width: int) -> None:
        layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        for factor in (1, 2, 4):
            layers += [
                nn.Conv2d(width * factor, width * factor * 2, 4, 2, 1, bias=False),
                nn.BatchNorm2d(width * factor * 2),
                nn.LeakyReLU(0.2, inplace=True),
            ]
        super().__init__(*layers, nn.Conv2d(width * 8, 1, 4, 1, 0, bias=False))


def build(setting: Setting) -> Workload:
    """A step trains the discriminator on real and generated images, then the generator; evaluation generates."""
    width = 8 if setting.tiny else 64
    generator = Generator(width).to(setting.device, setting.dtype)
    discriminator = Discriminator(width).to(setting.device, setting.dtype)
    latent = torch.randn(setting.batch_size, LATENT, 1, 1, device=setting.device, dtype=setting.dtype)
    if not setting.training:
        generator.eval()
        return Workload(inference_step(setting, lambda: generator(latent)), setting.batch_size, (generator,))

    images = torch.randn(setting.batch_size, 3, 64, 64, device=setting.device, dtype=setting.dtype)
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))

    def loss(logits: Tensor, real: bool) -> Tensor:
        target = torch.ones_like(logits) if real else torch.zeros_like(logits)
        return functional.binary_cross_entropy_with_logits(logits, target)

    def step() -> Tensor:
        discriminator_optimizer.zero_grad(set_to_none=True)
        with setting.autocast_context():
            fake = generator(latent)
            discriminator_loss = loss(discriminator(images), True) + loss(discriminator(fake.detach()), False)
        discriminator_loss.backward()
        discriminator_optimizer.step()
        generator_optimizer.zero_grad(set_to_none=True)
        with setting.autocast_context():
            generator_loss = loss(discriminator(fake), True)
        generator_loss.backward()
        generator_optimizer.step()
        return generator_loss

    return Workload(step, setting.batch_size, (generator, discriminator))
