"""Segment Anything (arXiv 2304.02643) of transformers: an image and a point to masks."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

from typing import Any, cast

import torch
import transformers

from torchdiag.models.stepping import inference_step
from torchdiag.models.workload import Setting, Workload


def build(setting: Setting) -> Workload:
    """ViT-B on images of 1024 x 1024 (64 x 64 in the tiny size), one point each."""
    library = cast(Any, transformers)
    pixels = 64 if setting.tiny else 1024
    if setting.tiny:
        vision = library.SamVisionConfig(
            hidden_size=16,
            output_channels=16,
            num_pos_feats=8,
            num_hidden_layers=3,
            num_attention_heads=2,
            image_size=pixels,
            window_size=2,
            global_attn_indexes=[2],
            mlp_dim=32,
        )
        prompt = library.SamPromptEncoderConfig(hidden_size=16, image_size=pixels)
        decoder = library.SamMaskDecoderConfig(
            hidden_size=16, mlp_dim=32, num_attention_heads=2, iou_head_hidden_dim=16
        )
        config = library.SamConfig(
            vision_config=vision.to_dict(),
            prompt_encoder_config=prompt.to_dict(),
            mask_decoder_config=decoder.to_dict(),
        )
    else:
        config = library.SamConfig()
    model = library.SamModel(config).to(setting.device, setting.dtype).eval()
    images = torch.randn(setting.batch_size, 3, pixels, pixels, device=setting.device, dtype=setting.dtype)
    points = torch.rand(setting.batch_size, 1, 1, 2, device=setting.device, dtype=setting.dtype) * pixels
    step = inference_step(setting, lambda: model(pixel_values=images, input_points=points).pred_masks)
    return Workload(step, setting.batch_size, (model,))
