"""Which texts of a dictionary hold a fragment, without decoding all of them."""

import re

import numpy as np
from numpy.typing import NDArray

from torchdiag.trace.columns import Strings


def holding(strings: Strings, fragment: str) -> NDArray[np.int64]:
    """int64: codes of the texts that hold `fragment` (not empty), ascending."""
    needle = fragment.encode()
    places = np.fromiter((hit.start() for hit in re.finditer(re.escape(needle), strings.blob.data)), np.int64)
    codes = np.searchsorted(strings.offsets, places, side="right") - 1
    # The texts lie one after the other, so a hit may straddle two of them.
    return np.array([code for code in sorted(set(codes.tolist())) if fragment in strings[code]], np.int64)
