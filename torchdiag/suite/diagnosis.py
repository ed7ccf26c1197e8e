"""What `torchdiag diagnose` says of a run, in the form that a suite keeps."""

from pathlib import Path
from typing import Any

from torchdiag import api
from torchdiag.suite.outcome import Found


def diagnosed(folder: Path) -> tuple[Found, ...] | None:
    """The findings of a run's folder; None where this torchdiag has no rules."""
    diagnose: Any = getattr(api, "diagnose", None)
    if diagnose is None:
        return None
    return tuple(
        Found(
            rule=str(finding.rule),
            verdict=str(finding.verdict),
            gain_share=finding.gain_share,
            title=str(getattr(finding, "title", "")),
        )
        for finding in diagnose(folder).findings
    )
