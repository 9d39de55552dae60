"""replace_surrogates: lone surrogates are replaced, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.summaries import replace_surrogates

ANY = st.text(st.characters(exclude_categories=()))


@given(ANY)
def test_replace_surrogates_result_can_be_encoded(text: str) -> None:
    assert len(replace_surrogates(text).encode().decode()) == len(text), "one character per surrogate"


@given(ANY)
def test_replace_surrogates_changes_nothing_else(text: str) -> None:
    for before, after in zip(text, replace_surrogates(text), strict=True):
        assert after == ("?" if "\ud800" <= before <= "\udfff" else before)


@pytest.mark.parametrize("text", ["", "plain", "港口 👩‍👩‍👧‍👦 é", "\x00\ufffe"])
def test_replace_surrogates_valid_text_is_returned_unchanged(text: str) -> None:
    assert replace_surrogates(text) is text
