from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from torchdiag.report.plain_text import plain, shorten


def test_what_is_no_visible_character_becomes_an_escape():
    assert plain("a\x1b[31mred") == "a\\x1b[31mred"
    assert plain("two\nlines\tand\rmore") == "two\\x0alines\\x09and\\x0dmore"
    assert plain("\x9b31m") == "\\x9b31m"  # the one-byte CSI
    assert plain("\u202eevil\u2066") == "\\u202eevil\\u2066"
    assert plain("\u2028\u200b") == "\\u2028\\u200b"
    assert plain("\udc80") == "\\udc80"


def test_text_of_any_language_stays():
    assert plain("Größe 漢字 [bold]") == "Größe 漢字 [bold]"


@given(st.text())
def test_plain_text_is_printable(text):
    assert all(character.isprintable() for character in plain(text))


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=0x9FFF, exclude_categories=("C", "M")), max_size=60),
    st.integers(1, 80),
)
def test_shortened_text_fits(text, width):
    short = shorten(text, width)
    assert cell_len(short) <= width
    if cell_len(text) <= width:
        assert short == text


def test_the_middle_is_left_out():
    short = shorten("/very/long/path/to/dataset.py:88 __getitem__", 31)
    assert short.startswith("/very/") and short.endswith(":88 __getitem__") and "…" in short
