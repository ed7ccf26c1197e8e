"""Which suites and models there are, as a page and as JSON."""

from typing import Any

from torchdiag.errors import TorchdiagError
from torchdiag.models import catalogue
from torchdiag.models.entry import Entry
from torchdiag.report.figures import counted
from torchdiag.suite import shipped
from torchdiag.suite.page import Column, Page, left, table
from torchdiag.suite.suite_file import Suite


def page(domain: str | None) -> Page:
    """The suites, and the models, of one domain where one is given."""
    suites, models = _suites(domain), _models(domain)
    tables = [
        table(
            "Suites",
            [left("suite"), Column("models"), left("what is in it")],
            [(suite.name, str(len(suite.models)), suite.description) for suite in suites],
        ),
        table(
            "Models",
            [left("model"), left("domain"), left("task", spare=True), left("modes"), left("needs")],
            [(entry.name, entry.domain, entry.task, ", ".join(entry.modes), entry.install_line()) for entry in models],
        ),
    ]
    return Page(f"{counted(len(suites), 'suite')}, {counted(len(models), 'model')}", (), tuple(tables))


def document(domain: str | None) -> dict[str, Any]:
    """The same for programs. `in_torchdiag` is False for a model that a suite names and this torchdiag lacks."""
    return {
        "schema": 1,
        "suites": [
            {
                "name": suite.name,
                "description": suite.description,
                "path": str(suite.path),
                "models": [{"name": name, "in_torchdiag": name in catalogue.MODELS} for name in suite.models],
            }
            for suite in _suites(domain)
        ],
        "models": [
            {
                "name": entry.name,
                "domain": entry.domain,
                "task": entry.task,
                "batch": dict(entry.batch),
                "tiny_batch": entry.tiny_batch,
                "missing_packages": entry.missing_packages(),
            }
            for entry in _models(domain)
        ],
    }


def domain_of(text: str) -> str:
    """The domain that a text means: its name or the start of it, or its initials (`rl`).

    Raises:
        TorchdiagError: it means none.
    """
    known = dict.fromkeys(entry.domain for entry in catalogue.MODELS.values())
    wanted = text.strip().lower()
    for domain in known:
        initials = "".join(word[0] for word in domain.split())
        if wanted and (domain.lower().startswith(wanted) or (" " in domain and wanted == initials)):
            return domain
    raise TorchdiagError(f"there is no domain {text!r}: there are {', '.join(known)}")


def _models(domain: str | None) -> list[Entry]:
    return [entry for entry in catalogue.MODELS.values() if domain is None or entry.domain == domain]


def _suites(domain: str | None) -> list[Suite]:
    """Those that hold a model of the domain."""
    suites = shipped.all_shipped()
    if domain is None:
        return suites
    named = {entry.name for entry in _models(domain)}
    return [suite for suite in suites if named & set(suite.models)]
