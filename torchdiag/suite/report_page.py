"""What `suite report` says: the paper's figures, from our data."""

from collections.abc import Sequence

from torchdiag.report.figures import counted, duration, size
from torchdiag.suite import findings, pairs, shares
from torchdiag.suite.folder import SuiteFolder
from torchdiag.suite.outcome import Outcome
from torchdiag.suite.page import Column, Page, Table, left, percent, table
from torchdiag.suite.pairs import Pair, geometric_mean
from torchdiag.suite.shares import DomainShares, Measured
from torchdiag.suite.summary import problems, settings_of, verdict

MODES = {"train": "train", "eval": "inference", "": ""}
_NAMES = {
    "active": "active",
    "transfer": "transfer",
    "python": "Python",
    "idle": "idle",
    "operator": "operators",
    "runtime": "runtime",
    "dataloader": "loader",
    "uncovered": "uncovered",
}
_DEVICE_NOTE = (
    "Shares of the recorded steps, the mean over the models of a domain; each model counts once. busy is active and "
    "transfer together: the time in which the GPU did anything, its utilisation. Python is the time it waited for "
    "Python code, idle all other waiting."
)
_HOST_NOTE = (
    "No GPU was recorded, so these are shares of the main thread's time: in PyTorch operators, in calls of the "
    "runtime, in Python code, waiting for a data loader, and without any event. Each model counts once."
)
_MOST_MODELS_NAMED = 4


def page(folder: SuiteFolder, outcomes: Sequence[Outcome]) -> Page:
    """The whole report; what was not measured has no table."""
    models = shares.measured(outcomes)
    devices = dict.fromkeys(one.figures.device_name for one in outcomes if one.figures is not None)
    versions = dict.fromkeys(one.figures.torch for one in outcomes if one.figures is not None)
    sizes = dict.fromkeys(one.case.options.size for one in models if one.case.options.size)
    facts = (
        *(name for name in devices if name),
        *(f"torch {version}" for version in versions if version),
        *(f"{name} size" for name in sizes),
        f"{folder.plan.created[:10]}",
    )
    tables = [
        *_domain_tables(shares.domains(models)),
        *_findings_table(outcomes),
        *_model_tables(models),
        *_train_and_eval(pairs.train_and_eval(models)),
        *_compiled(pairs.eager_and_compiled(models)),
        *_devices(pairs.devices(models)),
        *_missing(outcomes),
    ]
    return Page(verdict(folder, outcomes), facts, tuple(tables), tuple(_notes(outcomes)))


def _domain_tables(domains: Sequence[DomainShares]) -> list[Table]:
    made: list[Table] = []
    for device, kind in dict.fromkeys((one.device, one.kind) for one in domains):
        of = [one for one in domains if (one.device, one.kind) == (device, kind)]
        parts = shares.DEVICE_PARTS if kind == "device" else shares.HOST_PARTS
        columns = [left("domain"), left("mode"), Column("models", spare=True), *_shares(parts)]
        columns += [Column("busy"), Column("paper's active", spare=True)] if kind == "device" else []
        columns += [Column("env")]
        rows: list[tuple[str, ...]] = []
        for one in of:
            row = [one.domain or "all", MODES.get(one.mode, one.mode), str(one.models)]
            row += [percent(one.parts[name]) for name in parts]
            if kind == "device":
                row += [percent(one.parts["active"] + one.parts["transfer"])]
                row += ["" if one.paper_active is None else f"{100 * one.paper_active:.0f} %"]
            rows.append((*row, percent(one.environment)))
        note = _DEVICE_NOTE if kind == "device" else _HOST_NOTE
        if any(one.environment is not None for one in of):
            note += " env is the part of a step in which the models' environments ran; it lies in the others."
        made.append(table(f"Where the time went, by domain, on {device}", columns, rows, note))
    return made


def _shares(parts: Sequence[str]) -> list[Column]:
    return [Column(_NAMES[name], spare=name in ("runtime", "dataloader")) for name in parts]


def _findings_table(outcomes: Sequence[Outcome]) -> list[Table]:
    found = findings.top(outcomes)
    if not found:
        return []
    asked = len({f"{one.case.subject} {one.case.mode}" for one in outcomes if one.findings is not None})
    columns = [
        left("finding"),
        Column("models"),
        Column("gain"),
        Column("largest", spare=True),
        Column("hidden", spare=True),
        left("which"),
    ]
    rows: list[tuple[str, ...]] = []
    for one in found:
        named = [*one.models, *one.latent][:_MOST_MODELS_NAMED]
        more = len(one.models) + len(one.latent) - len(named)
        which = ", ".join(named) + (f" and {more} more" if more else "")
        gains = (percent(one.gain), percent(one.largest)) if one.models else ("", "")
        rows.append((one.rule, str(len(one.models)), *gains, str(len(one.latent) or ""), which))
    note = (
        f"Of {counted(asked, 'diagnosis', 'diagnoses')}. models lose time by it; gain is the share of a step that "
        "mending it wins, in the geometric mean over them. hidden is where other work hides it."
    )
    return [table("What the diagnoses find", columns, rows, note)]


def _model_tables(models: Sequence[Measured]) -> list[Table]:
    made: list[Table] = []
    for kind in dict.fromkeys(one.kind for one in models):
        of = [one for one in models if one.kind == kind]
        parts = {"device": shares.DEVICE_PARTS, "host": shares.HOST_PARTS, "none": ()}[kind]
        columns = [left("model"), left("mode"), left("setting"), Column("batch", spare=True), Column("step")]
        columns += [Column("samples/s", spare=True), Column("peak memory", spare=True)]
        columns += _shares(parts)
        columns += [Column("busy", spare=True)] if kind == "device" else []
        columns += [Column("env", spare=True)] if any(one.environment is not None for one in of) else []
        settings = settings_of([one.case for one in of], by_process=False)
        rows = [_model_row(one, setting, parts, columns) for one, setting in zip(of, settings, strict=True)]
        note = "step is the median of all steps of all processes, without a profiler."
        title = {"device": "By model", "host": "By model, on the CPU", "none": "By model, without a trace"}[kind]
        made.append(table(title, columns, rows, note))
    return made


def _model_row(one: Measured, setting: str, parts: Sequence[str], columns: Sequence[Column]) -> tuple[str, ...]:
    cells = {
        "model": one.case.subject,
        "mode": MODES.get(one.case.mode, one.case.mode),
        "setting": setting,
        "batch": "" if one.batch_size is None else str(one.batch_size),
        "step": duration(one.step_ns),
        "samples/s": "" if one.samples_per_s is None else f"{one.samples_per_s:,.1f}",
        "peak memory": "" if one.peak_bytes is None else size(one.peak_bytes),
        "busy": percent(one.busy),
        "env": percent(one.environment),
        **{_NAMES[name]: percent(one.parts.get(name)) for name in parts},
    }
    return tuple(cells[column.name] for column in columns)


def _train_and_eval(found: Sequence[Pair]) -> list[Table]:
    if not found:
        return []
    gpu = any(pair.first.kind == "device" for pair in found)
    share = "active" if gpu else "operator"
    columns = [left("model"), Column("train"), Column("inference"), Column("ratio")]
    columns += [Column(f"{_NAMES[share]}, train"), Column(f"{_NAMES[share]}, inference")]
    rows = [
        (
            pair.first.case.subject,
            duration(pair.first.step_ns),
            duration(pair.second.step_ns),
            f"{1 / pair.ratio:.2f}",
            percent(pair.first.parts.get(share)),
            percent(pair.second.parts.get(share)),
        )
        for pair in found
    ]
    note = "ratio is training over inference; the two have batch sizes of their own, so it is no cost a sample."
    return [table("Training against inference", columns, rows, note)]


def _compiled(found: dict[str, list[Pair]]) -> list[Table]:
    made: list[Table] = []
    for mode, those in found.items():
        if not those:
            continue
        columns = [left("model"), left("mode"), Column("eager"), Column("compiled"), Column("speed-up")]
        columns += [Column("memory, eager", spare=True), Column("memory, compiled", spare=True)]
        rows = [
            (
                pair.first.case.subject,
                MODES.get(pair.first.case.mode, ""),
                duration(pair.first.step_ns),
                duration(pair.second.step_ns),
                f"{1 / pair.ratio:.2f}",
                "" if pair.first.peak_bytes is None else size(pair.first.peak_bytes),
                "" if pair.second.peak_bytes is None else size(pair.second.peak_bytes),
            )
            for pair in those
        ]
        mean = geometric_mean([1 / pair.ratio for pair in those])
        made.append(
            table(f"Eager against compiled ({mode})", columns, rows, f"Geometric mean of the speed-ups: {mean:.2f}.")
        )
    return made


def _devices(found: dict[tuple[str, str], list[Pair]]) -> list[Table]:
    made: list[Table] = []
    for (first, second), those in found.items():
        columns = [left("model"), left("mode"), Column(first), Column(second), Column(f"{first} / {second}")]
        rows = [
            (
                pair.first.case.subject,
                MODES.get(pair.first.case.mode, ""),
                duration(pair.first.step_ns),
                duration(pair.second.step_ns),
                f"{1 / pair.ratio:.2f}",
            )
            for pair in those
        ]
        mean = geometric_mean([1 / pair.ratio for pair in those])
        note = f"Geometric mean of {first} over {second}: {mean:.2f}. Only models of the same size are paired."
        made.append(table(f"{first} against {second}", columns, rows, note))
    return made


def _missing(outcomes: Sequence[Outcome]) -> list[Table]:
    """What was not measured whole, and why."""
    gone = [one for one in outcomes if one.status != "complete"]
    if not gone:
        return []
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in gone:
        name = f"{one.case.subject} {one.case.mode}".strip()
        reasons.setdefault((one.status, one.message), []).append(name)
    rows = [(", ".join(dict.fromkeys(names)), status, message) for (status, message), names in reasons.items()]
    return [table("Not measured whole", [left("what"), left("status"), left("why")], rows)]


def _notes(outcomes: Sequence[Outcome]) -> list[str]:
    notes: list[str] = []
    if any(one.findings is None and one.status == "complete" for one in outcomes):
        notes.append("Some runs were not diagnosed; `torchdiag diagnose` reads their folders.")
    notes += problems(outcomes)
    noted: dict[str, list[str]] = {}
    for one in outcomes:
        if one.figures is not None and one.figures.model_note:
            noted.setdefault(one.figures.model_note, []).append(one.case.subject)
    notes += [f"{', '.join(dict.fromkeys(subjects))}: {note}." for note, subjects in noted.items()]
    if any(one.jobs > 1 and one.case.options.device == "cpu" and one.figures is not None for one in outcomes):
        notes.append("Several runs shared the CPU, so their times include each other's disturbance.")
    return notes
