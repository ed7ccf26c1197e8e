"""What generators and discriminators that turn one image into another are made of."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from torch import Tensor, nn


class ResidualTranslation(nn.Module):
    """Two 3 x 3 convolutions with instance norm beside the identity."""

    def __init__(self, channels: int, *, affine: bool, reflect: bool) -> None:
        super().__init__()
        mode = "reflect" if reflect else "zeros"
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, 1, 1, bias=not affine, padding_mode=mode),
            nn.InstanceNorm2d(channels, affine=affine),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=not affine, padding_mode=mode),
            nn.InstanceNorm2d(channels, affine=affine),
        )

    def forward(self, images: Tensor) -> Tensor:
        """[N, C, H, W] to the same shape."""
        return images + self.body(images)


def patch_discriminator(channels: int, width: int) -> nn.Sequential:
    """Images [N, channels, H, W] to a map of logits, one a patch of 70 x 70 (arXiv 1611.07004)."""
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True)]
    for before, after, stride in ((1, 2, 2), (2, 4, 2), (4, 8, 1)):
        layers += [
            nn.Conv2d(width * before, width * after, 4, stride, 1),
            nn.InstanceNorm2d(width * after),
            nn.LeakyReLU(0.2, inplace=True),
        ]
    return nn.Sequential(*layers, nn.Conv2d(width * 8, 1, 4, 1, 1))
