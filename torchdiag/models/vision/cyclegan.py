"""CycleGAN (arXiv 1703.10593): two generators that undo one another, each against a discriminator of patches."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step
from torchdiag.models.vision.translation_parts import ResidualTranslation, patch_discriminator
from torchdiag.models.workload import Setting, Workload

CYCLE, IDENTITY = 10.0, 5.0
"""Weights of coming back to the start, and of leaving alone what is of the target's kind already."""


def generator(width: int, blocks: int) -> nn.Sequential:
    """Images [N, 3, H, W] to images: down twice, residual blocks, up twice."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 7, padding=3, padding_mode="reflect"),
        nn.InstanceNorm2d(width),
        nn.ReLU(inplace=True),
    ]
    for before in (width, width * 2):
        layers += [nn.Conv2d(before, before * 2, 3, 2, 1), nn.InstanceNorm2d(before * 2), nn.ReLU(inplace=True)]
    layers += [ResidualTranslation(width * 4, affine=False, reflect=True) for _ in range(blocks)]
    for before in (width * 4, width * 2):
        layers += [
            nn.ConvTranspose2d(before, before // 2, 3, 2, 1, output_padding=1),
            nn.InstanceNorm2d(before // 2),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers, nn.Conv2d(width, 3, 7, padding=3, padding_mode="reflect"), nn.Tanh())


def _against(logits: Tensor, real: bool) -> Tensor:
    return functional.mse_loss(logits, torch.ones_like(logits) if real else torch.zeros_like(logits))


def build(setting: Setting) -> Workload:
    """A step trains both generators, then both discriminators; evaluation turns images of one kind into the other."""
    width, blocks, pixels = (4, 1, 32) if setting.tiny else (64, 9, 256)
    to_b, to_a = (generator(width, blocks).to(setting.device, setting.dtype) for _ in range(2))
    shape = (setting.batch_size, 3, pixels, pixels)
    kind_a = torch.rand(shape, device=setting.device, dtype=setting.dtype) * 2 - 1
    if not setting.training:
        to_b.eval()
        return Workload(inference_step(setting, lambda: to_b(kind_a)), setting.batch_size, (to_b,))
    kind_b = torch.rand(shape, device=setting.device, dtype=setting.dtype) * 2 - 1
    judge_a, judge_b = (patch_discriminator(3, width).to(setting.device, setting.dtype) for _ in range(2))
    generating = torch.optim.Adam(chain(to_a.parameters(), to_b.parameters()), lr=2e-4, betas=(0.5, 0.999))
    judging = torch.optim.Adam(chain(judge_a.parameters(), judge_b.parameters()), lr=2e-4, betas=(0.5, 0.999))

    def step() -> Tensor:
        for judge in (judge_a, judge_b):
            judge.requires_grad_(False)
        generating.zero_grad(set_to_none=True)
        with setting.autocast_context():
            fake_b, fake_a = to_b(kind_a), to_a(kind_b)
            loss = _against(judge_b(fake_b), True) + _against(judge_a(fake_a), True)
            loss = loss + CYCLE * ((to_a(fake_b) - kind_a).abs().mean() + (to_b(fake_a) - kind_b).abs().mean())
            loss = loss + IDENTITY * ((to_a(kind_a) - kind_a).abs().mean() + (to_b(kind_b) - kind_b).abs().mean())
        loss.backward()
        generating.step()
        for judge in (judge_a, judge_b):
            judge.requires_grad_(True)
        judging.zero_grad(set_to_none=True)
        for judge, real, fake in ((judge_a, kind_a, fake_a), (judge_b, kind_b, fake_b)):
            with setting.autocast_context():
                judged = (_against(judge(real), True) + _against(judge(fake.detach()), False)) / 2
            judged.backward()
        judging.step()
        return loss

    return Workload(step, setting.batch_size, (to_b, to_a, judge_a, judge_b))
