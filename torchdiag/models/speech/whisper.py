"""Whisper tiny (arXiv 2212.04356) of transformers: 30 s of sound to text."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportPrivateImportUsage=false
# torch and transformers leave parts of their own signatures untyped.

import torch

from torchdiag.models.language.library import TINY_VOCABULARY, library, network, random_tokens, workload
from torchdiag.models.workload import Setting, Workload


def build(setting: Setting) -> Workload:
    """80 bands by 3000 frames, 128 tokens; evaluation computes the logits of given ones. Tiny: 64 frames, 8 tokens."""
    config, frames, length = library.WhisperConfig(), 3000, 128
    if setting.tiny:
        frames, length = 64, 8
        config = library.WhisperConfig(
            vocab_size=TINY_VOCABULARY,
            d_model=64,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=128,
            decoder_ffn_dim=128,
            max_source_positions=frames // 2,
            decoder_start_token_id=1,
            pad_token_id=0,
            bos_token_id=0,
            eos_token_id=0,
        )
    model = network(setting, "WhisperForConditionalGeneration", config)
    shape = (setting.batch_size, config.num_mel_bins, frames)
    sound = torch.randn(shape, device=setting.device, dtype=setting.dtype)
    tokens = random_tokens(setting, config.vocab_size, length)
    return workload(
        setting,
        model,
        loss=lambda: model(input_features=sound, labels=tokens).loss,
        forward=lambda: model(input_features=sound, decoder_input_ids=tokens).logits,
    )
