"""What the PostgreSQL index holds of a text (H1)."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from holdfast.stores.postgres.words import MOST_BYTES, tokens_of
from holdfast.stores.query import LONGEST_WORD
from holdfast.stores.said import Said
from holdfast.stores.texts import fold


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_text_is_cut_into_the_words_of_its_folded_form(text: str) -> None:
    words = {word[:LONGEST_WORD] for word in re.findall("[a-z0-9]+", fold(text))}
    assert set(tokens_of(Said(text), ()).split()) == words


@given(st.text(st.characters(max_codepoint=127)), st.sampled_from(("é", "語", "ﷺ", "🙂")))
def test_a_plain_word_is_the_same_word_in_a_text_of_any_script(text: str, other: str) -> None:
    assert set(tokens_of(Said(text), ()).split()) <= set(tokens_of(Said(f"{text} {other}"), ()).split())


def test_a_long_text_gives_each_word_once() -> None:
    tokens = tokens_of(Said("the cat and the dog " * 1_000), ("tag",)).split()
    assert sorted(tokens) == ["and", "cat", "dog", "tag", "the"]


def test_more_words_than_a_row_takes_are_left_out_and_said_to_be() -> None:
    for text in (" ".join(map(str, range(200_000))), "ﷺ" * 60_000 + " ".join(map(str, range(200_000)))):
        tokens = tokens_of(Said(text), ()).split()
        assert sum(len(token.encode()) + 8 for token in tokens) < MOST_BYTES + 100
        assert tokens[-1].startswith("\1")
