"""What every page on a terminal shares: the characters it may use, colours, bars and columns.

Nothing here reads markup: texts go into `rich.text.Text` values as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from torchdiag.report.figures import apportion
from torchdiag.report.plain_text import shorten

STYLES = {"active": "green", "transfer": "cyan", "python": "yellow", "idle": "bright_red", "loader": "magenta"}
"""Colour of each tone."""

_BLOCKS = {"active": "█", "transfer": "▓", "python": "▒", "idle": "░", "loader": "▞"}
_LETTERS = {"active": "#", "transfer": "=", "python": "+", "idle": ".", "loader": "%"}
_SPELLINGS = {"µ": "u", "…": "...", "·": "-"}


@dataclass(frozen=True, slots=True)
class Canvas:
    """A console and what it can show: `fills` holds the character of each tone, told apart without colour."""

    console: Console
    fills: dict[str, str]
    encoding: str

    @property
    def width(self) -> int:
        """Terminal cells in a line."""
        return self.console.width

    @property
    def ellipsis(self) -> str:
        """What stands for the middle of a shortened text."""
        return self.spell("…")

    def spell(self, text: str) -> str:
        """The text with what the encoding lacks spelled in ASCII."""
        if not _encodable(text, self.encoding):
            for character, spelling in _SPELLINGS.items():
                text = text.replace(character, spelling)
            text = text.encode(self.encoding, "backslashreplace").decode(self.encoding)
        return text

    def text(self, text: str, style: str = "") -> Text:
        """One styled piece of a line."""
        return Text(self.spell(text), style)

    def line(self, *pieces: Text) -> None:
        """Print one line as it is: it was made to fit."""
        line = Text.assemble(*pieces)
        line.rstrip()
        self.console.print(line, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)

    def paragraph(self, text: str, style: str = "", first: str = "", rest: str = "") -> None:
        """Print words wrapped to the width, the first line after `first`, the others after `rest`."""
        room = max(self.width - max(cell_len(first), cell_len(rest)), 20)
        for number, wrapped in enumerate(Text(self.spell(text)).wrap(self.console, room)):
            wrapped.rstrip()
            self.line(Text(rest if number else first), Text(wrapped.plain, style))

    def fit(self, text: str, width: int) -> str:
        """The text in at most `width` cells, shortened in the middle."""
        return shorten(self.spell(text), width, self.ellipsis)


def canvas(stream: IO[str], width: int | None = None) -> Canvas:
    """A canvas on a stream; the width is the terminal's unless given, and there is colour only where it is wanted."""
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    capable = _encodable("".join(_BLOCKS.values()) + "…µ", encoding)
    return Canvas(console, _BLOCKS if capable else _LETTERS, encoding)


def bar(canvas: Canvas, parts: Sequence[tuple[str, int]], width: int) -> Text:
    """A bar of `width` cells; a part (tone and amount) that is anything at all gets a cell at least."""
    amounts = [amount for _, amount in parts]
    cells = apportion(amounts, width)
    for index, amount in enumerate(amounts):
        widest = max(range(len(cells)), key=cells.__getitem__)
        if amount and not cells[index] and cells[widest] > 1:
            cells[index] += 1
            cells[widest] -= 1
    pieces = (Text(canvas.fills[tone] * length, STYLES[tone]) for (tone, _), length in zip(parts, cells, strict=True))
    return Text.assemble(*pieces)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text filled with spaces to `width` cells, on the left with `right`."""
    filling = " " * max(width - cell_len(text), 0)
    return filling + text if right else text + filling


def _encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
