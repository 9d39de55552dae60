"""Tokens of the PostgreSQL full-text index (H1)."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from holdfast.stores.postgres.fts_tokens import MAX_TOKEN_BYTES, index_tokens
from holdfast.stores.search import MAX_WORD_LENGTH, SearchDocument, normalize


@given(st.text(st.characters(max_codepoint=127)))
def test_index_tokens_ascii_text_gives_normalized_words(text: str) -> None:
    words = {word[:MAX_WORD_LENGTH] for word in re.findall("[a-z0-9]+", normalize(text))}
    assert set(index_tokens(SearchDocument(text), ()).split()) == words


@given(st.text(st.characters(max_codepoint=127)), st.sampled_from(("é", "語", "ﷺ", "🙂")))
def test_index_tokens_ascii_words_are_same_in_mixed_text(text: str, other: str) -> None:
    assert set(index_tokens(SearchDocument(text), ()).split()) <= set(
        index_tokens(SearchDocument(f"{text} {other}"), ()).split()
    )


def test_index_tokens_long_text_has_no_duplicates() -> None:
    tokens = index_tokens(SearchDocument("the cat and the dog " * 1_000), ("tag",)).split()
    assert sorted(tokens) == ["and", "cat", "dog", "tag", "the"]


def test_index_tokens_too_many_words_are_truncated_and_tagged() -> None:
    for text in (" ".join(map(str, range(200_000))), "ﷺ" * 60_000 + " ".join(map(str, range(200_000)))):
        tokens = index_tokens(SearchDocument(text), ()).split()
        assert sum(len(token.encode()) + 8 for token in tokens) < MAX_TOKEN_BYTES + 100
        assert tokens[-1].startswith("\1")
