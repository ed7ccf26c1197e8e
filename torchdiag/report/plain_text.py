"""Text out of a trace made safe to show.

A trace comes from anywhere. A kernel's name may hold an escape sequence that repaints the terminal, a line break that
forges a line of the report, or a mark that makes the text after it run from right to left.
"""


def plain(text: str) -> str:
    r"""The text with everything that is no visible character written as an escape (`\x1b`, `\u202e`)."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def shorten(text: str, width: int, ellipsis: str = "…") -> str:
    """The text in at most `width` terminal cells, the middle left out where it is longer.

    The end is kept a little longer than the start: it holds the file's name, the line and the function.
    """
    from rich.cells import cell_len, chop_cells  # noqa: PLC0415 - JSON is written without it

    if cell_len(text) <= width:
        return text
    room = width - cell_len(ellipsis)
    if room <= 0:
        return ellipsis[:width]
    head_room = room * 2 // 5
    head = chop_cells(text, head_room)[0] if head_room else ""
    tail_room = room - cell_len(head)
    tail = chop_cells(text[::-1], tail_room)[0][::-1] if tail_room else ""
    return f"{head}{ellipsis}{tail}"


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
