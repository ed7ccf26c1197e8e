"""A small rebuild of DALL-E 2 (arXiv 2204.06125): CLIP, a prior from texts to images' vectors, two U-Nets in a cascade.

While it makes images, only the U-Net that is at work lies on the device, as in the open programs of that time: the
copies to the host and back are part of the step. One step of denoising each, as in the original suite.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.attention import causal, sinusoids
from torchdiag.models.vision.clip import Clip, ClipShape, tower
from torchdiag.models.vision.diffusion_unet import STEPS, Unet, UnetShape
from torchdiag.models.workload import Setting, Workload

TEXT_LENGTH = 256
"""Words in a text; CLIP reads the first 77."""

TINY_CLIP = ClipShape(words=100, length=8, text_width=16, image_width=16, layers=1, head_width=8, patch=8, pixels=16,
                      joint=16)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the parts are made of, and the edges of the images that the U-Nets make, in pixels."""

    clip: ClipShape
    prior_layers: int
    unets: tuple[UnetShape, UnetShape]
    edges: tuple[int, int]


def _sizes(*, tiny: bool) -> Sizes:
    if tiny:
        unets = (UnetShape(8, (1, 2), 16, words=16), UnetShape(8, (1, 2, 2), 16, larger=True))
        return Sizes(TINY_CLIP, 1, unets, (8, 16))
    unets = (UnetShape(128, (1, 2, 4, 8), 512, words=512), UnetShape(16, (1, 2, 4, 8, 16), 512, larger=True))
    return Sizes(ClipShape(), 6, unets, (128, 256))


class Prior(nn.Module):
    """From a text's words and vector, a time and a noisy vector to the vector of an image that would fit."""

    def __init__(self, clip: ClipShape, layers: int) -> None:
        super().__init__()
        self.asked = nn.Parameter(torch.randn(clip.joint) * 0.02)
        self.register_buffer("times", sinusoids(STEPS, clip.joint), persistent=False)
        self.layers = tower(clip.joint, layers, clip.head_width)
        self.out = nn.Linear(clip.joint, clip.joint, bias=False)

    def forward(self, words: Tensor, text: Tensor, times: Tensor, noisy: Tensor) -> Tensor:
        """Words [N, L, W], text [N, W], times [N], noisy [N, W] to [N, W]; the last place, which sees all, answers."""
        table = self.times
        assert isinstance(table, Tensor)
        asked = self.asked.expand_as(noisy)
        ends = torch.stack([text, table[times].to(noisy.dtype), noisy, asked], dim=1)
        vectors = torch.cat([words, ends], dim=1)
        hidden = ~causal(vectors.shape[1], vectors.device)
        for layer in self.layers:
            vectors = layer(vectors, src_mask=hidden)
        return self.out(vectors[:, -1])


def blurred(clean: Tensor, noise: Tensor, times: Tensor) -> Tensor:
    """What is left of it at times [N] of `STEPS`, on the cosine schedule of arXiv 2102.09672."""
    angle = (times.to(clean.dtype) / STEPS * math.pi / 2).view(-1, *(1,) * (clean.dim() - 1))
    return angle.cos() * clean + angle.sin() * noise


@contextmanager
def alone_on_device(unet: nn.Module, unets: Sequence[nn.Module], device: torch.device) -> Generator[None]:
    """All of them go to the host and this one back; at the end all return."""
    for each in unets:
        each.to("cpu")
    unet.to(device)
    try:
        yield
    finally:
        for each in unets:
            each.to(device)


def build(setting: Setting) -> Workload:
    """A step trains the prior and both U-Nets on images and texts; evaluation makes images for texts."""
    sizes = _sizes(tiny=setting.tiny)
    clip = Clip(sizes.clip).to(setting.device, setting.dtype).eval().requires_grad_(False)
    prior = Prior(sizes.clip, sizes.prior_layers).to(setting.device, setting.dtype).train(setting.training)
    unets = [Unet(shape).to(setting.device, setting.dtype).train(setting.training) for shape in sizes.unets]
    length = sizes.clip.length if setting.tiny else TEXT_LENGTH
    texts = torch.randint(sizes.clip.words, (setting.batch_size, length), device=setting.device)
    modules = (clip, prior, *unets)
    if not setting.training:
        return Workload(_making(setting, sizes, modules, texts), setting.batch_size, modules)
    edge = sizes.edges[-1]
    images = torch.randn(setting.batch_size, 3, edge, edge, device=setting.device, dtype=setting.dtype)
    return Workload(_learning(setting, sizes, modules, (texts, images)), setting.batch_size, modules)


_Parts = tuple[Clip, Prior, *tuple[Unet, ...]]


def _making(setting: Setting, sizes: Sizes, parts: _Parts, texts: Tensor) -> Callable[[], object]:
    clip, prior, *unets = parts
    latest = torch.full((setting.batch_size,), STEPS - 1, device=setting.device)

    def noise(*shape: int) -> Tensor:
        return torch.randn(setting.batch_size, *shape, device=setting.device, dtype=setting.dtype)

    def step() -> Tensor:
        # Not inference mode, which would spoil the parameters that are moved within.
        with torch.no_grad(), setting.autocast_context():
            text, words = clip.texts(texts)
            vector = prior(words, text, latest, noise(sizes.clip.joint))
            made: Tensor | None = None
            for unet, edge in zip(unets, sizes.edges, strict=True):
                noisy = noise(3, edge, edge)
                with alone_on_device(unet, unets, setting.device):
                    made = (noisy - unet(noisy, latest, vector, words, made)).clamp(-1, 1)
            assert made is not None
            return made

    return step


def _learning(setting: Setting, sizes: Sizes, parts: _Parts, examples: tuple[Tensor, Tensor]) -> Callable[[], Tensor]:
    clip, prior, *unets = parts
    texts, images = examples
    optimizers = [torch.optim.Adam(part.parameters(), lr=1e-4) for part in (prior, *unets)]

    def prior_loss() -> Tensor:
        with torch.no_grad():
            (text, words), vector = clip.texts(texts), clip.images(images)
        times = torch.randint(STEPS, (setting.batch_size,), device=setting.device)
        found = prior(words, text, times, blurred(vector, torch.randn_like(vector), times))
        return functional.mse_loss(found, vector)

    def unet_loss(number: int) -> Tensor:
        with torch.no_grad():
            (_, words), vector = clip.texts(texts), clip.images(images)
        edges = [(edge, edge) for edge in sizes.edges]
        clean = functional.interpolate(images, edges[number], mode="bilinear")
        smaller = functional.interpolate(images, edges[0], mode="bilinear") if number else None
        times = torch.randint(STEPS, (setting.batch_size,), device=setting.device)
        noise = torch.randn_like(clean)
        found = unets[number](blurred(clean, noise, times), times, vector, words, smaller)
        return functional.mse_loss(found, noise)

    losses: list[Callable[[], Tensor]] = [prior_loss, lambda: unet_loss(0), lambda: unet_loss(1)]

    def step() -> Tensor:
        loss = torch.zeros((), device=setting.device)
        for optimizer, loss_of in zip(optimizers, losses, strict=True):
            optimizer.zero_grad(set_to_none=True)
            with setting.autocast_context():
                loss = loss_of()
            loss.backward()
            optimizer.step()
        return loss

    return step
