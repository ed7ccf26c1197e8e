"""BERT (arXiv 1810.04805) in plain PyTorch, trained on both of its tasks: masked words and the next sentence."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.attention import EncoderLayer, LayerShape
from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

MASK = 0
MASKED_SHARE = 0.15
NOT_MASKED = -100


class Bert(nn.Module):
    """Tokens and segments [N, L] to the logits of words [N, L, V] and of "the second follows the first" [N, 2]."""

    def __init__(self, vocabulary: int, length: int, shape: LayerShape, layers: int) -> None:
        super().__init__()
        width = shape.width
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.segment = nn.Embedding(2, width)
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(shape.dropout)
        self.layers = nn.ModuleList(EncoderLayer(shape) for _ in range(layers))
        self.pool = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.follows = nn.Linear(width, 2)
        self.word = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.word_bias = nn.Parameter(torch.zeros(vocabulary))
        for table in (self.token, self.position, self.segment):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: Tensor, segments: Tensor) -> tuple[Tensor, Tensor]:
        """Both logits; those of words come from the embedding's own weights."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        vectors = self.token(tokens) + self.position(positions) + self.segment(segments)
        vectors = self.dropout(self.norm(vectors))
        for layer in self.layers:
            vectors = layer(vectors)
        words = functional.linear(self.word(vectors), self.token.weight, self.word_bias)
        return words, self.follows(self.pool(vectors[:, 0]))


def build(setting: Setting) -> Workload:
    """BERT base on pairs of 128 tokens; tiny: two layers of 64 units, 32 tokens."""
    if setting.tiny:
        vocabulary, length, layers = 1000, 32, 2
        model = Bert(vocabulary, 64, LayerShape(64, 4, 256, activation="gelu"), layers)
    else:
        vocabulary, length, layers = 30522, 128, 12
        model = Bert(vocabulary, 512, LayerShape(768, 12, 3072, activation="gelu"), layers)
    model = model.to(setting.device, setting.dtype).train(setting.training)
    words = torch.randint(1, vocabulary, (setting.batch_size, length), device=setting.device)
    masked = torch.rand(words.shape, device=setting.device) < MASKED_SHARE
    tokens = words.masked_fill(masked, MASK)
    segments = (torch.arange(length, device=setting.device) >= length // 2).long().expand_as(words)
    if not setting.training:
        return Workload(inference_step(setting, lambda: model(tokens, segments)), setting.batch_size, (model,))
    hidden_words = words.masked_fill(~masked, NOT_MASKED)
    follows = torch.randint(2, (setting.batch_size,), device=setting.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)

    def loss() -> Tensor:
        word_logits, follows_logits = model(tokens, segments)
        word_loss = functional.cross_entropy(word_logits.flatten(0, 1), hidden_words.flatten(), ignore_index=NOT_MASKED)
        return word_loss + functional.cross_entropy(follows_logits, follows)

    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model,))
