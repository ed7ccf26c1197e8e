"""Several traces as one table, a row as soon as it is known."""

import os
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from torchdiag.report.breakdown_words import CAUSES, causes_by_time, device_name, host_parts, without_gpu
from torchdiag.report.figures import apportion, duration, rough_percent
from torchdiag.report.plain_text import plain
from torchdiag.report.terminal import STYLES, Canvas, pad
from torchdiag.timeline.result import Breakdown, DeviceBreakdown, HostBreakdown

_SHARES = ("active", "transfer", "python", "idle")
_DEVICE_WIDTH = 6
_TIME_WIDTH = 7
_GAP = "  "
_LEAST_CAUSE_WIDTH = 13
_LEAST_PLACE_WIDTH = 20


class BreakdownTable:
    """A table of as many rows as `paths` have devices; its columns fit the canvas before the first row is known.

    Where the names are too long to stand in a column of their own, each stands on a line of its own above its row.
    """

    def __init__(self, paths: Sequence[str], canvas: Canvas) -> None:
        self._canvas = canvas
        self._folder = _common_folder(paths)
        self._figure_widths = [_DEVICE_WIDTH, _TIME_WIDTH, *(max(len(name), 5) for name in _SHARES)]
        longest = max(cell_len(canvas.spell(self._name(path))) for path in paths)
        room = canvas.width - sum(self._figure_widths) - len(_GAP) * (len(self._figure_widths) + 1)
        self._stacked = longest + _LEAST_CAUSE_WIDTH > room
        self._file_width = len(_GAP) if self._stacked else max(longest, len("file"))
        self._cause_width = max(room - self._file_width, _LEAST_CAUSE_WIDTH)

    def header(self) -> None:
        """Print the folder the files share and the column names."""
        canvas = self._canvas
        if self._folder:
            canvas.line(canvas.text(canvas.fit(f"in {plain(self._folder)}", canvas.width), "dim"))
        names = ["device", "window", *_SHARES]
        figures = [pad(name, width, right=True) for name, width in zip(names, self._figure_widths, strict=True)]
        file = pad("" if self._stacked else "file", self._file_width)
        canvas.line(Text(_GAP.join([file, *figures, "top cause"]), "bold"))

    def row(self, path: str, breakdown: Breakdown) -> None:
        """Print one line a device, the file named in the first."""
        file = self._start(path)
        if not breakdown.devices:
            self._message(file, without_gpu(breakdown)[1] + _host(breakdown.host), "dim")
        for device in breakdown.devices:
            self._canvas.line(Text(file), *self._device(device))
            file = " " * self._file_width

    def error(self, path: str, message: str) -> None:
        """Print the line of a file that gave no breakdown."""
        # The row names the file already.
        reason = message.partition(f"{path}: ")[2] or message.replace(path, "it")
        self._message(self._start(path), f"failed: {plain(reason)}", "red")

    def _start(self, path: str) -> str:
        """The name as it starts a row, printed above the row where names are long."""
        name = self._canvas.fit(self._name(path), self._canvas.width if self._stacked else self._file_width)
        if not self._stacked:
            return pad(name, self._file_width)
        self._canvas.line(Text(name))
        return " " * self._file_width

    def _message(self, file: str, message: str, style: str) -> None:
        room = max(self._canvas.width - self._file_width - len(_GAP), _LEAST_CAUSE_WIDTH)
        for wrapped in Text(self._canvas.spell(message)).wrap(self._canvas.console, room):
            wrapped.rstrip()
            self._canvas.line(Text(file + _GAP), Text(wrapped.plain, style))
            file = " " * self._file_width

    def _device(self, device: DeviceBreakdown) -> Iterator[Text]:
        canvas = self._canvas
        headline = device.headline
        amounts = (headline.active, headline.transfer, headline.python_overhead, headline.idle)
        cells = [device_name(device), canvas.spell(duration(device.window.length_ns))]
        shares = [_whole_percent(share, amount) for share, amount in zip(apportion(amounts, 100), amounts, strict=True)]
        styles = ["", "", *(STYLES[name] for name in _SHARES)]
        for cell, width, style in zip([*cells, *shares], self._figure_widths, styles, strict=True):
            yield Text(_GAP + pad(cell, width, right=True), style)
        yield Text(_GAP + canvas.fit(self._top_cause(device), self._cause_width))

    def _top_cause(self, device: DeviceBreakdown) -> str:
        causes = causes_by_time(device)
        if not causes:
            return ""
        label = CAUSES[causes[0]][0]
        places = next(cause.places for cause in device.causes if cause.cause is causes[0])
        if not places or self._cause_width < len(label) + _LEAST_PLACE_WIDTH:
            return label
        return f"{label} ({plain(places[0].label)})"

    def _name(self, path: str) -> str:
        return plain(os.path.relpath(path, self._folder) if self._folder else path)


def _host(host: HostBreakdown | None) -> str:
    """What the main thread did, where that is all there is."""
    if host is None or not host.window.length_ns:
        return ""
    length = host.window.length_ns
    parts = [f"{rough_percent(spent, length)} {where}" for spent, where in host_parts(host)[:2] if spent]
    return f"; main thread, {duration(length)}: {', '.join(parts)}"


def _common_folder(paths: Sequence[str]) -> str:
    """The folder all paths lie in, where naming it once makes the names shorter; else empty."""
    folders = [os.path.dirname(path) for path in paths]  # noqa: PTH120 - a Path would drop a leading ./
    if len(paths) < 2 or not all(folders):
        return ""
    try:
        return os.path.commonpath(folders)
    except ValueError:
        return ""


def _whole_percent(share: int, amount: int) -> str:
    return "<1 %" if amount and not share else f"{share} %"
