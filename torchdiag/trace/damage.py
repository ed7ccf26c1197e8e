"""What the native reader says about damaged text, in words for a person."""

from torchdiag.trace.quality import QualityLog

_SENTENCES: dict[str, tuple[str, str]] = {
    # code: what one of them is, what several are
    "truncated-json": ("the text ends before the trace does", "the text ends before the trace does"),
    "dropped-event": ("1 event was damaged beyond use and left out", "{} events were damaged beyond use and left out"),
    "damaged-header": (
        "the text before the events is damaged; reading went on at the first event",
        "the text before the events is damaged in {} places; reading went on at the first event",
    ),
    "damaged-metadata": (
        "the text after the events is damaged; a top-level key may be missing",
        "the text after the events is damaged in {} places; top-level keys may be missing",
    ),
    "stray-text": ("there is stray text between two events", "there is stray text between events in {} places"),
    "trailing-garbage": ("something that is no JSON follows the trace", "text that is no JSON follows {} traces"),
    "several-documents": (
        "another trace follows in the same file",
        "{} more traces follow in the same file",
    ),
    "bad-escape": (
        "1 string holds backslashes that are not escaped (a Windows path?); they were read as backslashes",
        "{} strings hold backslashes that are not escaped (Windows paths?); they were read as backslashes",
    ),
    "unescaped-quote": (
        "1 string holds quotes that are not escaped; where it ends was guessed",
        "{} strings hold quotes that are not escaped; where they end was guessed",
    ),
    "control-character": (
        "1 string holds raw control characters, which JSON does not allow",
        "{} strings hold raw control characters, which JSON does not allow",
    ),
    "bad-utf8": (
        "1 string is not valid UTF-8; its bad bytes were replaced",
        "{} strings are not valid UTF-8; their bad bytes were replaced",
    ),
    "bare-word": (
        "1 value is a word such as NaN, Infinity or N/A, which JSON does not have; it was read as missing",
        "{} values are words such as NaN, Infinity or N/A, which JSON does not have; they were read as missing",
    ),
    "bad-number": (
        "1 number is not written as JSON writes numbers",
        "{} numbers are not written as JSON writes numbers",
    ),
    "trailing-comma": ("1 comma has nothing after it", "{} commas have nothing after them"),
    "missing-comma": ("1 comma is missing", "{} commas are missing"),
    "missing-quote": ("1 quote is missing", "{} quotes are missing"),
    "missing-bracket": ("1 event lacks a closing bracket", "{} events lack closing brackets"),
    "deep-nesting": (
        "1 value is nested too deeply to be kept",
        "{} values are nested too deeply to be kept",
    ),
    "string-number": (
        "1 time or duration is written as a string; it was read as the number",
        "{} times and durations are written as strings; they were read as numbers",
    ),
    "integer-overflow": (
        "1 number does not fit into 64 bits; it was read as missing",
        "{} numbers do not fit into 64 bits; they were read as missing",
    ),
    "duplicate-key": (
        "1 key is repeated within its object; the last one counts",
        "{} keys are repeated within their objects; the last one counts",
    ),
}


def tell(quality: QualityLog, code: str, count: int, first_offset: int) -> None:
    """Note `count` cases of the damage that the native reader calls `code`."""
    one, several = _SENTENCES[code]
    quality.add(code, one if count == 1 else several.format(f"{count:,}"), count, first_offset)
