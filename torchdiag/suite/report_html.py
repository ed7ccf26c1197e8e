"""The report of a suite as one HTML file that needs nothing else: plots above the tables."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportMissingImports=false
# plotly and jinja2 come with an extra, and plotly has no types.

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, Final

from torchdiag.errors import TorchdiagError
from torchdiag.suite import shares
from torchdiag.suite.folder import SuiteFolder
from torchdiag.suite.outcome import Outcome
from torchdiag.suite.page import Page
from torchdiag.suite.shares import DomainShares, Measured

# Okabe and Ito's colours, told apart by everyone, as in the terminal's bars.
_COLOURS: Final = {
    "active": "#009e73",
    "operator": "#009e73",
    "transfer": "#56b4e9",
    "runtime": "#56b4e9",
    "python": "#e69f00",
    "dataloader": "#cc79a7",
    "idle": "#d55e00",
    "uncovered": "#d55e00",
}
_NAMES: Final = {"python": "Python", "operator": "operators", "dataloader": "data loader"}
_MODES: Final = {"train": "training", "eval": "inference", "": "programs"}

_TEMPLATE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ page.answer }}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.3em}h2{font-size:1.1em;margin:2em 0 .4em}
.faint{color:#666}.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.92em;font-variant-numeric:tabular-nums}
th{font-weight:500;color:#666;border-bottom:1px solid #bbb}
th,td{text-align:right;padding:.2em .8em;white-space:nowrap}
.left{text-align:left}td.left:last-child{white-space:normal;min-width:14em}
tr:nth-child(even) td{background:#f6f6f6}
</style></head><body>
<h1>{{ page.answer }}</h1>
<p class="faint">{{ page.facts | join(" · ") }}</p>
{% for plot in plots %}<div class="plot">{{ plot | safe }}</div>
{% endfor %}
{% for table in page.tables %}
<h2>{{ table.title }}</h2>
<div class="scroll"><table><tr>
{% for column in table.columns %}<th{% if not column.right %} class="left"{% endif %}>{{ column.name }}</th>
{% endfor %}</tr>
{% for row in table.rows %}<tr>{% for cell in row %}
<td{% if not table.columns[loop.index0].right %} class="left"{% endif %}>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</table></div>
{% if table.note %}<p class="faint">{{ table.note }}</p>{% endif %}
{% endfor %}
{% if page.notes %}<ul>{% for note in page.notes %}<li>{{ note }}</li>{% endfor %}</ul>{% endif %}
</body></html>
"""


def to_html(folder: SuiteFolder, outcomes: Sequence[Outcome], page: Page) -> str:
    """The file's text.

    Raises:
        TorchdiagError: plotly or jinja2 is not installed.
    """
    try:
        import jinja2  # noqa: PLC0415 - of the extra `report`
        import plotly.graph_objects as graphs  # noqa: PLC0415
    except ImportError as error:
        raise TorchdiagError(
            f"--html needs {error.name or 'plotly'}, which is not installed: run `pip install 'torchdiag[report]'`"
        ) from error
    models = shares.measured(outcomes)
    figures = [
        *_domains(graphs, shares.domains(models)),
        *_shares(graphs, models),
        *_bars(graphs, models, "Time of a step", "milliseconds", _step_ms),
        *_bars(graphs, models, "Peak memory", "gigabytes", _peak_gb),
    ]
    plots = [
        figure.to_html(full_html=False, include_plotlyjs=number == 0, config={"displaylogo": False})
        for number, figure in enumerate(figures)
    ]
    environment = jinja2.Environment(autoescape=True, trim_blocks=True)
    return environment.from_string(_TEMPLATE).render(page=page, plots=plots, folder=folder)


def _domains(graphs: Any, domains: Sequence[DomainShares]) -> list[Any]:
    made: list[Any] = []
    for device in dict.fromkeys(one.device for one in domains):
        of = [one for one in domains if one.device == device]
        names = [[escape(one.domain or "all") for one in of], [_MODES.get(one.mode, one.mode) for one in of]]
        bars = [_bar(graphs, names, part, [one.parts.get(part, 0) for one in of]) for part in of[0].parts]
        paper = [one.paper_active for one in of]
        if any(share is not None for share in paper):
            marks = {"mode": "markers", "name": "the paper's active", "marker": {"symbol": "diamond", "color": "#222"}}
            bars.append(graphs.Scatter(x=names, y=paper, **marks))
        made.append(_stacked(graphs, bars, f"By domain, on {escape(device)}"))
    return made


def _shares(graphs: Any, models: Sequence[Measured]) -> list[Any]:
    """A figure for each device and mode: a bar a model."""
    made: list[Any] = []
    eager = shares.plain(models)
    for device, kind, mode in dict.fromkeys(map(_setting, eager)):
        of = [one for one in eager if _setting(one) == (device, kind, mode) and one.parts]
        if not of:
            continue
        first = next(iter(of[0].parts))
        of.sort(key=lambda one: -one.parts[first])
        names = [escape(one.case.subject) for one in of]
        bars = [_bar(graphs, names, part, [one.parts[part] for one in of]) for part in of[0].parts]
        made.append(_stacked(graphs, bars, f"By model, {_MODES.get(mode, mode)}, on {escape(device)}"))
    return made


def _setting(one: Measured) -> tuple[str, str, str]:
    return one.case.options.device, one.kind, one.case.mode


def _bar(graphs: Any, names: Any, part: str, values: list[float]) -> Any:
    return graphs.Bar(
        x=names, y=values, name=_NAMES.get(part, part), marker_color=_COLOURS[part], hovertemplate="%{x}: %{y:.1%}"
    )


def _stacked(graphs: Any, bars: list[Any], title: str) -> Any:
    figure = graphs.Figure(bars)
    figure.update_layout(
        barmode="stack", title=title, template="plotly_white", yaxis={"tickformat": ".0%", "range": [0, 1]}
    )
    return figure


def _step_ms(one: Measured) -> float:
    return one.step_ns / 1e6


def _peak_gb(one: Measured) -> float:
    return (one.peak_bytes or 0) / 1e9


def _bars(
    graphs: Any, models: Sequence[Measured], title: str, unit: str, value: Callable[[Measured], float]
) -> list[Any]:
    eager = shares.plain(models)
    if not eager:
        return []
    bars: list[Any] = []
    for device, kind, mode in dict.fromkeys(map(_setting, eager)):
        of = [one for one in eager if _setting(one) == (device, kind, mode)]
        name = f"{_MODES.get(mode, mode)}, {escape(device)}"
        bars.append(graphs.Bar(x=[escape(one.case.subject) for one in of], y=[value(one) for one in of], name=name))
    figure = graphs.Figure(bars)
    figure.update_layout(barmode="group", title=title, template="plotly_white", yaxis={"title": unit, "type": "log"})
    return [figure]
