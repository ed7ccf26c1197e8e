"""GPT-2 small in plain PyTorch on the fused attention, in the manner of nanoGPT: no cache, one file."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

VOCABULARY = 50304
"""GPT-2's 50257 rounded up to a multiple of 64, which suits matrix products."""

TEMPERATURE = 0.8
CHOICES = 200


class Block(nn.Module):
    """Causal self-attention and two linear layers, each normalized before and added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.projections = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors [N, L, W] to the same shape."""
        parts = self.projections(self.attention_norm(vectors)).unflatten(-1, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        vectors = vectors + self.out(mixed.transpose(1, 2).flatten(2))
        return vectors + self.feed_forward(vectors)


class Gpt(nn.Module):
    """Tokens [N, L] to the logits of the next token at each place [N, L, V]."""

    def __init__(self, vocabulary: int, context: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        nn.init.normal_(self.token.weight, std=0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits from the embedding's own weights."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        vectors = self.blocks(self.token(tokens) + self.position(positions))
        return functional.linear(self.norm(vectors), self.token.weight)

    def generate(self, tokens: Tensor, count: int) -> Tensor:
        """`count` more tokens [N, L + count], each drawn from the likeliest; everything before is computed again."""
        for _ in range(count):
            logits = self(tokens)[:, -1].float() / TEMPERATURE
            best, choices = logits.topk(min(CHOICES, logits.shape[-1]))
            drawn = torch.multinomial(best.softmax(dim=-1), 1)
            tokens = torch.cat([tokens, choices.gather(1, drawn)], dim=1)
        return tokens


def build(setting: Setting) -> Workload:
    """64 tokens; evaluation writes 32 more. Tiny: two layers of 64 units, 8 more."""
    vocabulary, context, width, layers, heads, more = (
        (1000, 128, 64, 2, 4, 8) if setting.tiny else (VOCABULARY, 1024, 768, 12, 12, 32)
    )
    model = Gpt(vocabulary, context, width, layers, heads).to(setting.device, setting.dtype)
    tokens = torch.randint(vocabulary, (setting.batch_size, 65), device=setting.device)
    before, after = tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()
    if not setting.training:
        model.eval()
        return Workload(inference_step(setting, lambda: model.generate(before, more)), setting.batch_size, (model,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)
    step = training_step(setting, optimizer, lambda: functional.cross_entropy(model(before).flatten(0, 1), after))
    return Workload(step, setting.batch_size, (model,))
