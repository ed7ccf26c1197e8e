"""On which line of a TOML text each value begins: what `tomllib` does not tell, and a mistake's message needs."""

from typing import Final

Key = tuple[str | int, ...]

_SPACE: Final = " \t\r\n"


def lines(text: str) -> dict[Key, int]:
    """The line (from 1) of each key and list element, by its path: `("run", 2, "model")`.

    The text must be valid TOML, which `tomllib.loads` finds out; of anything else the answer means nothing.
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.found


class _Scanner:
    """Walks over valid TOML once, keeping nothing but where keys and elements are."""

    def __init__(self, text: str) -> None:
        self._text = text + "\n"
        self._at = 0
        self._line = 1
        self._counts: dict[Key, int] = {}
        self.found: dict[Key, int] = {}

    def document(self) -> None:
        """Walk over the whole text."""
        table: Key = ()
        while self._skip():
            if self._peek("[["):
                table = self._header(2)
            elif self._peek("["):
                table = self._header(1)
            else:
                self._pair(table)

    def _header(self, brackets: int) -> Key:
        line = self._line
        self._move(brackets)
        path = self._resolved(self._key(), whole=brackets == 1)
        self._skip()
        self._move(brackets)
        if brackets == 2:
            number = self._counts.get(path, 0)
            self._counts[path] = number + 1
            self.found.setdefault(path, line)
            path = (*path, number)
        self.found.setdefault(path, line)
        return path

    def _resolved(self, key: Key, *, whole: bool) -> Key:
        """The key of a header as a path: a list of tables that it goes through means its last one."""
        path: Key = ()
        for place, part in enumerate(key):
            path = (*path, part)
            if path in self._counts and (whole or place < len(key) - 1):
                path = (*path, self._counts[path] - 1)
        return path

    def _pair(self, table: Key) -> None:
        line = self._line
        path = table
        for part in self._key():
            path = (*path, part)
            self.found.setdefault(path, line)
        self._skip()
        self._move(1)
        self._skip()
        self._value(path)

    def _key(self) -> Key:
        parts: list[str] = []
        while True:
            self._skip()
            if self._text[self._at] in "\"'":
                begin = self._at
                self._string()
                parts.append(self._text[begin + 1 : self._at - 1])
            else:
                begin = self._at
                while self._text[self._at] not in " \t.=]":
                    self._move(1)
                parts.append(self._text[begin : self._at])
            self._skip()
            if not self._peek("."):
                return tuple(parts)
            self._move(1)

    def _value(self, path: Key) -> None:
        character = self._text[self._at]
        if character in "\"'":
            self._string()
        elif character == "[":
            self._list(path)
        elif character == "{":
            self._table(path)
        else:
            while self._text[self._at] not in ",]}#\n":
                self._move(1)

    def _list(self, path: Key) -> None:
        self._move(1)
        number = 0
        while self._skip() and not self._peek("]"):
            self.found.setdefault((*path, number), self._line)
            self._value((*path, number))
            number += 1
            self._comma()
        self._move(1)

    def _table(self, path: Key) -> None:
        self._move(1)
        while self._skip() and not self._peek("}"):
            self._pair(path)
            self._comma()
        self._move(1)

    def _comma(self) -> None:
        self._skip()
        if self._peek(","):
            self._move(1)

    def _string(self) -> None:
        quote = self._text[self._at]
        end = quote * 3 if self._peek(quote * 3) else quote
        self._move(len(end))
        while not self._peek(end):
            self._move(2 if quote == '"' and self._peek("\\") else 1)
        self._move(len(end))
        # Up to two quotes more may stand before the three that end a text of several lines.
        while len(end) == 3 and self._peek(quote):
            self._move(1)

    def _skip(self) -> bool:
        """Move over spaces, line ends and comments; whether anything is left."""
        while self._at < len(self._text):
            if self._text[self._at] == "#":
                while self._text[self._at] != "\n":
                    self._move(1)
            elif self._text[self._at] in _SPACE:
                self._move(1)
            else:
                return True
        return False

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _move(self, count: int) -> None:
        self._line += self._text.count("\n", self._at, self._at + count)
        self._at += count
