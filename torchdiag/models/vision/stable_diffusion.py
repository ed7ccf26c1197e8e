"""The U-Net of Stable Diffusion (arXiv 2112.10752) of diffusers: noise in a latent image, told a text."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# pyright: reportMissingImports=false
# diffusers is optional, and torch leaves parts of its own signatures untyped.

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

STEPS = 1000
"""Degrees of noise that the network is taught."""

WORDS = 77


def build(setting: Setting) -> Workload:
    """Version 1's network on latent images of 64 x 64, those of images of 512 x 512 (16 x 16 in the tiny size)."""
    width, edge = (32, 16) if setting.tiny else (768, 64)
    sizes: dict[str, Any] = {"sample_size": edge, "cross_attention_dim": width}
    if setting.tiny:
        sizes |= {"block_out_channels": (8, 8, 16, 16), "layers_per_block": 1, "norm_num_groups": 4}
        sizes |= {"attention_head_dim": 2}
    library: Any = import_module("diffusers")
    model = library.UNet2DConditionModel(**sizes)
    # Its own method warns of types that it has no weights in.
    nn.Module.to(model, setting.device, setting.dtype).train(setting.training)
    noisy = torch.randn(setting.batch_size, 4, edge, edge, device=setting.device, dtype=setting.dtype)
    words = torch.randn(setting.batch_size, WORDS, width, device=setting.device, dtype=setting.dtype)
    times = torch.randint(STEPS, (setting.batch_size,), device=setting.device)
    if not setting.training:
        forward = inference_step(setting, lambda: model(noisy, times, words).sample)
        return Workload(forward, setting.batch_size, (model,))
    noise = torch.randn_like(noisy)

    def loss() -> Tensor:
        return functional.mse_loss(model(noisy, times, words).sample, noise)

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model,))
