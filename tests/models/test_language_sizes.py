"""The language and speech models have the sizes that their papers, libraries and model cards publish."""

import pytest

pytest.importorskip("torch")

from suite_models import real_parameters

BERT_BASE_LAYER = 4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768
BERT_HEAD = 768 * 768 + 768 + 2 * 768
POOLER = 768 * 768 + 768

TRANSFORMER_ENCODER_LAYER = 4 * (512 * 512 + 512) + 2 * 512 * 2048 + 2048 + 512 + 4 * 512
TRANSFORMER_DECODER_LAYER = 8 * (512 * 512 + 512) + 2 * 512 * 2048 + 2048 + 512 + 6 * 512

REFORMER_FEED_FORWARD = 2 * 256 + 2 * 256 * 512 + 512 + 256
REFORMER_LOCAL = 2 * 256 + 4 * 256 * 768
REFORMER_HASHED = 2 * 256 + 3 * 256 * 768

PUBLISHED = {
    "BERT_pytorch": 110_106_428,  # bert-base-uncased with both heads (BertForPreTraining)
    "fambench_xlmr": 559_890_432,  # xlm-roberta-large (XLMRobertaModel); fairseq's README says 560M
    "fastNLP_Bert": 102_267_648 - POOLER + 2 * 768 + 2,  # bert-base-chinese, its pooler replaced by start and end
    # albert-base-v2 (AlbertModel, 11,683,584), its pooler replaced by the head of 128 numbers and a bias a word
    "hf_Albert": 11_683_584 - POOLER + (768 * 128 + 128 + 2 * 128 + 30_000),
    "hf_Bart": 139_420_416,  # facebook/bart-base
    "hf_Bert": 109_514_298,  # bert-base-uncased (BertForMaskedLM)
    "hf_Bert_large": 335_174_458,  # bert-large-uncased (BertForMaskedLM)
    # google/bigbird-roberta-base, 50358 words and 4096 positions on BERT's layers
    "hf_BigBird": (50_358 + 4096 + 2) * 768 + 2 * 768 + 12 * BERT_BASE_LAYER + POOLER + BERT_HEAD + 50_358,
    "hf_DistilBert": 66_985_530,  # distilbert-base-uncased (DistilBertForMaskedLM)
    "hf_GPT2": 124_439_808,  # gpt2
    "hf_GPT2_large": 774_030_080,  # gpt2-large
    # allenai/longformer-base-4096: BERT's layers with a second query, key and value for global attention
    "hf_Longformer": (50_265 + 4098 + 1) * 768 + 2 * 768 + 12 * (BERT_BASE_LAYER + 3 * POOLER) + BERT_HEAD + 50_265,
    # By hand from arXiv 2001.04451 and the library's defaults; its masked head keeps two biases.
    "hf_Reformer": 320 * 256 + 64 * (64 + 192)
    + 3 * (REFORMER_LOCAL + REFORMER_HASHED + 2 * REFORMER_FEED_FORWARD)
    + 2 * 512 + 512 * 320 + 2 * 320,
    "hf_T5": 60_506_624,  # t5-small
    "hf_T5_base": 222_903_552,  # t5-base
    "hf_T5_large": 737_668_096,  # t5-large
    "hf_T5_generate": 60_506_624,
    "llama": 6_738_415_616 - 30 * 202_383_360,  # Llama 7B without 30 of its 32 layers
    "nanogpt": 124_439_808 + (50_304 - 50_257) * 768,  # gpt2 with padded words
    # By hand: 8 layers of attention (a quarter of the keys and values), 8 experts, a gate and two norms.
    "hf_Mixtral_small": 2 * 32_000 * 1024 + 1024
    + 8 * (2 * 1024 * 1024 + 2 * 1024 * 256 + 8 * 3 * 1024 * 3584 + 8 * 1024 + 2 * 1024),
    # By hand from the paper: 37000 shared word pieces and six layers each.
    "attention_is_all_you_need_pytorch": 37_000 * 512 + 6 * (TRANSFORMER_ENCODER_LAYER + TRANSFORMER_DECODER_LAYER),
    # The same layers, 4233 characters, and the way in from 320 bands.
    "speech_transformer": 4233 * 512 + (320 * 512 + 512 + 2 * 512)
    + 6 * (TRANSFORMER_ENCODER_LAYER + TRANSFORMER_DECODER_LAYER),
    "tacotron2": 28_193_153,  # NVIDIA's and torchaudio's, of 148 symbols
    # By hand: three LSTM layers of 768 units that are projected to 256, and the loss's scale and shift.
    "tts_angular": 3 * (4 * 768 * 256 + 2 * 4 * 768 + 768 * 256) + 4 * 768 * (40 + 256 + 256) + 2,
    "hf_Whisper": 37_760_640,  # openai/whisper-tiny
}  # fmt: skip

ROUNDED = {
    "BERT_pytorch": 110e6,  # arXiv 1810.04805, section 3
    "hf_Bert_large": 340e6,
    "attention_is_all_you_need_pytorch": 65e6,  # arXiv 1706.03762, table 3
    "fambench_xlmr": 550e6,  # arXiv 1911.02116, table 8
    "hf_Albert": 12e6,  # arXiv 1909.11942, table 1
    "hf_DistilBert": 66e6,  # arXiv 1910.01108, table 3
    "hf_T5_base": 220e6,  # arXiv 1910.10683, section 3.1.2
    "hf_T5_large": 770e6,
    "hf_Whisper": 39e6,  # arXiv 2212.04356, table 1
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_language_and_speech_models_have_their_published_sizes(name: str) -> None:
    assert real_parameters(name) == PUBLISHED[name]


@pytest.mark.parametrize("name", ROUNDED)
def test_language_and_speech_models_agree_with_their_papers_rounded_figures(name: str) -> None:
    assert real_parameters(name) == pytest.approx(ROUNDED[name], rel=0.07)
