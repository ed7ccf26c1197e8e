"""U-Net (arXiv 1505.04597) for segmentation: cross-entropy and the Dice overlap of two classes."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

CLASSES = 2


class TwoConvolutions(nn.Sequential):
    """Two 3 x 3 convolutions, each with its norm."""

    def __init__(self, before: int, after: int, between: int | None = None) -> None:
        between = between or after
        super().__init__(
            nn.Conv2d(before, between, 3, padding=1, bias=False),
            nn.BatchNorm2d(between),
            nn.ReLU(inplace=True),
            nn.Conv2d(between, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    """Four levels down and up; the way up enlarges bilinearly, so that it needs no parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        down = [width, width * 2, width * 4, width * 8, width * 8]
        self.first = TwoConvolutions(3, down[0])
        self.down = nn.ModuleList(TwoConvolutions(down[i], down[i + 1]) for i in range(4))
        up = [width * 8, width * 4, width * 2, width, width]
        self.up = nn.ModuleList(
            TwoConvolutions(up[i] + down[3 - i], up[i + 1], (up[i] + down[3 - i]) // 2) for i in range(4)
        )
        self.last = nn.Conv2d(width, CLASSES, 1)

    def forward(self, images: Tensor) -> Tensor:
        """[N, 3, H, W] to logits [N, 2, H, W]."""
        levels = [self.first(images)]
        for level in self.down:
            levels.append(level(functional.max_pool2d(levels[-1], 2)))
        current = levels.pop()
        for level in self.up:
            beside = levels.pop()
            larger = functional.interpolate(current, size=beside.shape[-2:], mode="bilinear", align_corners=True)
            current = level(torch.cat([beside, larger], dim=1))
        return self.last(current)


def dice_loss(probability: Tensor, truth: Tensor) -> Tensor:
    """One minus the mean Dice overlap of [N, C, H, W] probabilities with one-hot masks of the same shape."""
    over = (0, 2, 3)
    overlap = 2 * (probability * truth).sum(over)
    return 1 - ((overlap + 1e-6) / (probability.sum(over) + truth.sum(over) + 1e-6)).mean()


def build(setting: Setting) -> Workload:
    """A step on images of 640 x 959 (32 x 47 in the tiny size)."""
    width, size = (4, (32, 47)) if setting.tiny else (64, (640, 959))
    model = UNet(width).to(setting.device, setting.dtype)
    images = torch.randn(setting.batch_size, 3, *size, device=setting.device, dtype=setting.dtype)
    model.train(setting.training)
    if not setting.training:
        forward = inference_step(setting, lambda: model(images).argmax(dim=1))
        return Workload(forward, setting.batch_size, (model,))
    masks = torch.randint(CLASSES, (setting.batch_size, *size), device=setting.device)

    def loss() -> Tensor:
        logits = model(images)
        truth = functional.one_hot(masks, CLASSES).permute(0, 3, 1, 2).to(logits.dtype)
        return functional.cross_entropy(logits, masks) + dice_loss(logits.softmax(dim=1), truth)

    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, weight_decay=1e-8, momentum=0.9)
    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model,))
