"""Sanitizing of text before it is drawn."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.io.text import escape_controls, sanitize, sanitize_line, split_escapes

ANY = st.text(st.characters(codec=None) | st.sampled_from("\x1b\x9b\x07\r\t[]m;\u202e\u200d\u0301\ud800"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://harbor\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\after", "after"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x1b[?1049h\x1b[2J\x1b(B", ""),
        ("a\x07b\x00c\x7f", "a^Gb^@c^?"),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("a\tb", "a   b"),
        ("\u202eevil\u202c \ufefftext", "evil text"),
        ("👩\u200d👧 ❤\ufe0f", "👩👧 ❤"),
        ("e\u0301\u0301\u0301\u0301\u0301!", "e\u0301\u0301!"),
        ("lone \ud83d surrogate", "lone \ufffd surrogate"),
        ("שלום [bold]as it is[/]", "שלום [bold]as it is[/]"),
    ],
)
def test_sanitize_removes_or_shows_control_characters(text: str, shown: str) -> None:
    assert sanitize(text) == shown


def test_escape_controls_drops_nothing() -> None:
    assert escape_controls("rm -rf /\x1b[2K\recho hello") == "rm -rf /^[[2K^Mecho hello"
    assert escape_controls("a\u202eb\u200bc\u2028d\U000e0041") == r"a\u202eb\u200bc\u2028d\U000e0041"
    assert escape_controls("one\r\ntwo") == "one^M\ntwo"
    assert escape_controls("e" + "\u0301" * 4) == "e\u0301\u0301" + r"\u0301\u0301"
    assert list(split_escapes("a\u202e \\u202e")) == [("a", False), ("\\u202e", True), (" \\u202e", False)]


@given(ANY)
def test_sanitized_text_has_no_control_characters(text: str) -> None:
    for shown in (sanitize(text), escape_controls(text)):
        assert not {unicodedata.category(letter) for letter in shown.replace("\n", "")} & {"Cc", "Cs"}
        shown.encode()
    assert "\n" not in sanitize_line(text)
