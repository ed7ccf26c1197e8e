"""The speech models of the catalogue."""

from torchdiag.models.entry import Entry

ENTRIES = (
    Entry(
        "speech_transformer",
        "speech",
        "recognition",
        "speech.recognizer:build",
        {"train": 32, "eval": 1},
        a100_eval_batch=1,
    ),
    Entry("tacotron2", "speech", "synthesis", "speech.tacotron2:build", {"train": 64, "eval": 64}, a100_eval_batch=128),
    Entry(
        "tts_angular",
        "speech",
        "synthesis",
        "speech.speaker_encoder:build",
        {"train": 64, "eval": 64},
        tiny_batch=4,
        a100_eval_batch=512,
    ),
    Entry(
        "hf_Whisper",
        "speech",
        "recognition",
        "speech.whisper:build",
        {"train": 16, "eval": 64},
        requires=("torch", "transformers"),
        later=True,
    ),
)
