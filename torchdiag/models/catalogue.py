"""Which models there are, without importing any of them: each domain declares its own."""

import difflib

from torchdiag.errors import TorchdiagError
from torchdiag.models.entry import Entry
from torchdiag.models.language.entries import ENTRIES as _LANGUAGE
from torchdiag.models.other.entries import ENTRIES as _OTHER
from torchdiag.models.recommendation.entries import ENTRIES as _RECOMMENDATION
from torchdiag.models.reinforcement.entries import ENTRIES as _REINFORCEMENT
from torchdiag.models.speech.entries import ENTRIES as _SPEECH
from torchdiag.models.vision.entries import ENTRIES as _VISION

_DOMAINS = (_VISION, _LANGUAGE, _SPEECH, _RECOMMENDATION, _REINFORCEMENT, _OTHER)

MODELS: dict[str, Entry] = {entry.name: entry for entries in _DOMAINS for entry in entries}


def find(name: str) -> Entry:
    """The entry of that name; letter case does not matter.

    Raises:
        TorchdiagError: no model is called so; the message names the nearest.
    """
    by_lower = {known.lower(): known for known in MODELS}
    if name.lower() in by_lower:
        return MODELS[by_lower[name.lower()]]
    near = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(by_lower[match] for match in near)}?" if near else ""
    raise TorchdiagError(f"There is no model called {name!r}.{hint} `torchdiag profile --list` names them all.")
