"""Hostile text is harmless before it is drawn."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.terminal.clean import clean, one_line, shown_as_is

ANY = st.text(st.characters(codec=None) | st.sampled_from("\x1b\x9b\x07\r\t[]m;\u202e\u200d\u0301\ud800"))


@pytest.mark.parametrize(
    ("said", "shown"),
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
def test_what_a_terminal_would_obey_is_dropped_or_made_visible(said: str, shown: str) -> None:
    assert clean(said) == shown


def test_nothing_is_dropped_from_what_a_person_is_asked_to_allow() -> None:
    assert shown_as_is("rm -rf /\x1b[2K\recho hello") == "rm -rf /^[[2K\necho hello"


@given(ANY)
def test_no_text_at_all_can_steer_the_screen(text: str) -> None:
    for shown in (clean(text), shown_as_is(text)):
        assert not {unicodedata.category(letter) for letter in shown.replace("\n", "")} & {"Cc", "Cs"}
        shown.encode()
    assert "\n" not in one_line(text)
