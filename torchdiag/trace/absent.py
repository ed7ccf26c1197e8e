"""What stands for "nothing" in a column."""

import numpy as np

MISSING = int(np.iinfo(np.int64).min)
"""Stands for "no value" in an int64 column."""

NO_TEXT = -1
"""Stands for "no text" in a column of dictionary codes."""
