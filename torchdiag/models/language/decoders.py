"""Decoders of transformers, which predict the next token: GPT-2, Llama, a mixture of experts."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportPrivateImportUsage=false
# torch and transformers leave parts of their own signatures untyped.

from torchdiag.models.language.library import TINY_VOCABULARY, language_model, library
from torchdiag.models.workload import Setting, Workload


def _gpt2(setting: Setting, width: int, layers: int, heads: int) -> Workload:
    if setting.tiny:
        config = library.GPT2Config(
            vocab_size=TINY_VOCABULARY,
            n_positions=64,
            n_embd=64,
            n_layer=layers // 6,
            n_head=4,
            bos_token_id=0,
            eos_token_id=0,
        )
        return language_model(setting, "GPT2LMHeadModel", config, 32)
    config = library.GPT2Config(n_embd=width, n_layer=layers, n_head=heads)
    return language_model(setting, "GPT2LMHeadModel", config, 512 if setting.training else 1024)


def gpt2(setting: Setting) -> Workload:
    """GPT-2 small, 512 tokens in training, 1024 in evaluation."""
    return _gpt2(setting, 768, 12, 12)


def gpt2_large(setting: Setting) -> Workload:
    """GPT-2 large, 512 tokens in training, 1024 in evaluation."""
    return _gpt2(setting, 1280, 36, 20)


def llama(setting: Setting) -> Workload:
    """Two of the 32 layers of Llama 7B (arXiv 2302.13971), with its embedding and its head; 512 tokens."""
    if setting.tiny:
        config = library.LlamaConfig(
            vocab_size=TINY_VOCABULARY,
            hidden_size=64,
            intermediate_size=172,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=64,
        )
        return language_model(setting, "LlamaForCausalLM", config, 32)
    return language_model(setting, "LlamaForCausalLM", library.LlamaConfig(num_hidden_layers=2), 512)


def mixtral(setting: Setting) -> Workload:
    """Mixtral (arXiv 2401.04088) at a quarter of its width and 8 of its layers: 8 experts, of which 2 see a token."""
    config = library.MixtralConfig(
        hidden_size=1024,
        intermediate_size=3584,
        num_hidden_layers=8,
        num_attention_heads=16,
        num_key_value_heads=4,
        num_local_experts=8,
        num_experts_per_tok=2,
    )
    if setting.tiny:
        config = library.MixtralConfig(
            vocab_size=TINY_VOCABULARY,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_local_experts=8,
            num_experts_per_tok=2,
        )
    return language_model(setting, "MixtralForCausalLM", config, 32 if setting.tiny else 512)
