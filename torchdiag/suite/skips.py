"""Why a run of a suite is not made at all."""

from importlib.util import find_spec

from torchdiag.models import catalogue
from torchdiag.suite.cases import Case


def reason(case: Case) -> tuple[str, str] | None:
    """The kind (`unknown-model`, `package`) and a sentence; None for a run that can be tried."""
    if case.options.target_kind != "model":
        return None
    entry = catalogue.MODELS.get(case.options.target)
    if entry is None:
        return "unknown-model", f"{case.subject} is not in this torchdiag."
    missing = entry.missing_packages()
    # Without torch nothing runs, which is told once.
    if not missing or find_spec("torch") is None:
        return None
    return "package", f"{entry.name} needs {', '.join(missing)}: run `{entry.install_line()}`."
