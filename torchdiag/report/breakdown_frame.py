"""The breakdown as a pandas data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdiag.report.breakdown_rows import COLUMNS, rows
from torchdiag.timeline.result import Breakdown

if TYPE_CHECKING:
    import pandas as pd


def to_frame(breakdown: Breakdown) -> pd.DataFrame:
    """One row a device; the columns of `--csv` without `error`, nanoseconds as `Int64` (missing is `<NA>`)."""
    import pandas as pd  # noqa: PLC0415 - most of a second, and only a frame needs it

    columns = [name for name in COLUMNS if name != "error"]
    frame = pd.DataFrame(rows(breakdown), columns=columns)
    whole = {name: "Int64" for name in columns if name.endswith("_ns") or name in {"device", "steps"}}
    return frame.astype(whole)
