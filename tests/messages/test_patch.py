"""Edits of raw objects by path: what they name changes, all else stays as it came."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.messages import HIDDEN, Drop, Edit, Replace, rebase
from holdfast.messages.patch import is_removed, merge, patch

BLOCKS = {
    "role": "user",
    "content": [{"text": "a", "mark": 1}, {"text": "b"}, {"text": "c", "deep": {"x": [1, 2]}}],
    "n": None,
}


def test_replace_changes_one_value_and_keeps_the_order_of_keys() -> None:
    patched = patch(BLOCKS, [Replace(("content", 0, "text"), "new")])
    assert json.dumps(patched) == json.dumps(BLOCKS).replace('"a"', '"new"')


def test_paths_name_the_object_as_it_came_in_whatever_order_edits_stand() -> None:
    edits: list[Edit] = [Drop(("content", 0)), Replace(("content", 2, "text"), "new"), Drop(("content", 1))]
    assert patch(BLOCKS, edits)["content"] == [{"text": "new", "deep": {"x": [1, 2]}}]


def test_what_is_not_edited_is_shared_and_the_original_never_changes() -> None:
    before = copy.deepcopy(BLOCKS)
    patched = patch(BLOCKS, [Replace(("content", 2, "deep", "x", 0), 9), Drop(("content", 1))])
    assert before == BLOCKS and patched["content"][0] is BLOCKS["content"][0]
    assert patched["content"][1]["deep"] == {"x": [9, 2]}


def test_value_that_was_put_in_is_never_changed_by_an_edit_inside_it() -> None:
    value = {"text": "x", "more": [1]}
    assert patch({"a": 1}, [Replace(("a",), value), Drop(("a", "more"))]) == {"a": {"text": "x"}}
    assert value == {"text": "x", "more": [1]}


@pytest.mark.parametrize(
    "lost", [Replace(("content", 9, "text"), ""), Drop(("gone",)), Replace(("role", "x"), 1), Drop(("n", "y"))]
)
def test_edit_whose_place_is_gone_changes_nothing(lost: Edit) -> None:
    assert patch(BLOCKS, [lost]) == BLOCKS


def test_of_two_edits_for_one_place_the_later_counts() -> None:
    place = ("content", 0, "text")
    assert merge([Replace(place, "x")], [Replace(place, "y")]) == (Replace(place, "y"),)
    assert merge([Replace(place, "x")], [Drop(("content", 0))]) == (Drop(("content", 0)),)


def test_removed_is_what_an_edit_drops_or_empties_and_all_inside() -> None:
    edits = [Drop(("content", 1)), Replace(("note",), None), Replace(("kept",), "text")]
    assert [is_removed(path, edits) for path in [("content", 1, "text"), ("note",), ("note", 0)]] == [True] * 3
    assert not any(is_removed(path, edits) for path in [("content", 2), ("kept",), ()])


def test_rebase_follows_the_indices_that_move() -> None:
    edits = [Replace(("content", 2, "text"), "x"), Drop(("content", 0)), Replace(("content", 1, "text"), "y"), HIDDEN]
    assert list(rebase(edits, [("content", 1)])) == [Replace(("content", 1, "text"), "x"), Drop(("content", 0)), HIDDEN]


@given(
    drops=st.sets(st.integers(0, 5)),
    texts=st.dictionaries(st.integers(0, 5), st.text(max_size=3)),
    gone=st.sets(st.integers(0, 5)),
)
def test_rebased_edits_do_to_the_rest_what_they_did(drops: set[int], texts: dict[int, str], gone: set[int]) -> None:
    def blocks(value: Any) -> list[str]:
        return [block["text"] for block in value["content"]]

    raw = {"content": [{"text": str(index)} for index in range(6)]}
    edits = merge(
        [Replace(("content", at, "text"), f"new {text}") for at, text in texts.items()],
        [Drop(("content", at)) for at in drops],
    )
    dropped = [("content", at) for at in gone]
    rest = patch(raw, [Drop(path) for path in dropped])
    together = patch(raw, merge(edits, [Drop(path) for path in dropped]))
    assert blocks(patch(rest, list(rebase(edits, dropped)))) == blocks(together)
