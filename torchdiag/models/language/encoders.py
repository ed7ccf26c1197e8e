"""Encoders of transformers: BERT and those after it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportPrivateImportUsage=false
# torch and transformers leave parts of their own signatures untyped.

from typing import Any

import torch
from torch.nn import functional

from torchdiag.errors import TorchdiagError
from torchdiag.models.language.library import (
    TINY_VOCABULARY,
    language_model,
    library,
    network,
    random_tokens,
    workload,
)
from torchdiag.models.stepping import gradientless_step
from torchdiag.models.workload import Setting, Workload

_TINY: dict[str, Any] = {
    "vocab_size": TINY_VOCABULARY,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 256,
}


def bert(setting: Setting) -> Workload:
    """BERT base with a masked-language-model head (arXiv 1810.04805), 512 tokens."""
    config = library.BertConfig(**_TINY) if setting.tiny else library.BertConfig()
    return language_model(setting, "BertForMaskedLM", config, 32 if setting.tiny else 512)


def bert_large(setting: Setting) -> Workload:
    """BERT large (arXiv 1810.04805), 512 tokens."""
    large = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
    config = library.BertConfig(**_TINY | {"num_hidden_layers": 4} if setting.tiny else large)
    return language_model(setting, "BertForMaskedLM", config, 32 if setting.tiny else 512)


def bert_reading(setting: Setting) -> Workload:
    """BERT base with the Chinese vocabulary of 21128, which points at an answer in a passage; 384 tokens in all."""
    length, config = 384, library.BertConfig(vocab_size=21128)
    if setting.tiny:
        length, config = 32, library.BertConfig(**_TINY)
    model = network(setting, "BertForQuestionAnswering", config)
    tokens = random_tokens(setting, config.vocab_size, length)
    start, end = (torch.randint(length, (setting.batch_size,), device=setting.device) for _ in range(2))

    def spans() -> object:
        out = model(input_ids=tokens)
        return torch.stack([out.start_logits, out.end_logits], dim=-1)

    return workload(
        setting,
        model,
        loss=lambda: model(input_ids=tokens, start_positions=start, end_positions=end).loss,
        forward=spans,
    )


def albert(setting: Setting) -> Workload:
    """ALBERT base (arXiv 1909.11942), whose layers share their weights; 512 tokens."""
    base = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
    config = library.AlbertConfig(**_TINY | {"embedding_size": 32} if setting.tiny else base)
    return language_model(setting, "AlbertForMaskedLM", config, 32 if setting.tiny else 512)


def distilbert(setting: Setting) -> Workload:
    """DistilBERT (arXiv 1910.01108), 512 tokens."""
    tiny = {"vocab_size": TINY_VOCABULARY, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 256}
    config = library.DistilBertConfig(**tiny if setting.tiny else {})
    return language_model(setting, "DistilBertForMaskedLM", config, 32 if setting.tiny else 512)


def bigbird(setting: Setting) -> Workload:
    """BigBird base (arXiv 2007.14062) with block-sparse attention, 1024 tokens in training, 4096 in evaluation."""
    if setting.autocast:
        raise TorchdiagError("hf_BigBird mixes precisions where autocast forbids it; use --dtype bf16 or fp32.")
    config = library.BigBirdConfig(attention_type="block_sparse")
    length = 1024 if setting.training else 4096
    if setting.tiny:
        # Blocks so small that 64 tokens still need the sparse pattern.
        sparse = {"block_size": 4, "num_random_blocks": 2, "max_position_embeddings": 64}
        config, length = library.BigBirdConfig(attention_type="block_sparse", **_TINY, **sparse), 64
    return language_model(setting, "BigBirdForMaskedLM", config, length, gradientless_step)


def longformer(setting: Setting) -> Workload:
    """Longformer base (arXiv 2004.05150), windows of 512; 1024 tokens in training, 4096 in evaluation."""
    config = library.LongformerConfig(
        vocab_size=50265, max_position_embeddings=4098, type_vocab_size=1, attention_window=512
    )
    length = 1024 if setting.training else 4096
    if setting.tiny:
        config, length = library.LongformerConfig(max_position_embeddings=66, attention_window=16, **_TINY), 64
    return language_model(setting, "LongformerForMaskedLM", config, length)


def reformer(setting: Setting) -> Workload:
    """Reformer (arXiv 2001.04451): local and hashed attention in turn, reversible layers; 4096 characters."""
    config, length = library.ReformerConfig(num_buckets=128), 4096
    if setting.tiny:
        length = 64
        config = library.ReformerConfig(
            attention_head_size=16,
            attn_layers=["local", "lsh"],
            axial_pos_embds_dim=(16, 48),
            axial_pos_shape=(8, 8),
            feed_forward_size=128,
            hidden_size=64,
            local_attn_chunk_length=16,
            lsh_attn_chunk_length=16,
            max_position_embeddings=64,
            num_attention_heads=4,
            num_buckets=4,
        )
    return language_model(setting, "ReformerForMaskedLM", config, length, gradientless_step)


def xlmr(setting: Setting) -> Workload:
    """XLM-R large (arXiv 1911.02116) as FAMBench runs it: 64 tokens, features only.

    Its loss takes the features for logits, so the 250002 words cost an embedding and no projection.
    """
    length = 64
    config = library.XLMRobertaConfig(
        vocab_size=250002,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        max_position_embeddings=514,
        type_vocab_size=1,
    )
    if setting.tiny:
        config, length = library.XLMRobertaConfig(max_position_embeddings=34, **_TINY), 32
    model = network(setting, "XLMRobertaModel", config)
    tokens = random_tokens(setting, config.vocab_size, length)
    labels = random_tokens(setting, config.hidden_size, length)
    return workload(
        setting,
        model,
        loss=lambda: functional.cross_entropy(
            model(input_ids=tokens).last_hidden_state.flatten(0, 1), labels.flatten()
        ),
        forward=lambda: model(input_ids=tokens).last_hidden_state,
    )
