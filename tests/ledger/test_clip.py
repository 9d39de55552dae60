"""Clipped text keeps its names whole: half of a name would be an invented one."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from holdfast.ledger import clip
from holdfast.ledger.lines import LedgerLine
from holdfast.ledger.text import clip_evenly, clip_for_page, lines_after_gap

_NAME = re.compile(r"[A-Za-z0-9_.@/#-]+")
names = st.from_regex(r"[A-Za-z0-9_.@/#-]{1,300}", fullmatch=True)
texts = st.lists(st.tuples(names, st.sampled_from((" ", "\n", '","', "(", ": ", "、"))), max_size=60).map(
    lambda parts: "".join(name + after for name, after in parts)
)


@given(text=texts, room=st.integers(1, 3_000))
def test_clip_never_cuts_a_name(text: str, room: int) -> None:
    assert set(_NAME.findall(clip(text, room))) <= set(_NAME.findall(text))


def test_clip_text_without_blanks_cuts_between_names() -> None:
    record = '{"level":"INFO","component":"hooks","agent":"claude-code","hook":"session-start","hook_type":"agent"}'
    assert clip(record, 84).endswith('"hook":"session-start"," […]')


def test_clip_for_page_replaces_unbreakable_text_by_its_length() -> None:
    assert clip_for_page("eyJhbGciOi" * 200, 400) == "[2,000 characters in one piece]"


def test_h3_lines_that_an_earlier_page_selected_survive_another_clipping() -> None:
    """They follow the gap of the clipped message."""
    selected = ["I review everything on my phone.", "Our customers run Python 3.11."]
    text = "\n".join([clip("The function reads every file of both trees twice. " * 40, 800), *selected])
    assert lines_after_gap(text) == selected
    clipped = clip_evenly([LedgerLine(text, "user", "", 3, 0, 0)], 500, 400, lines_after_gap)
    assert lines_after_gap(clipped[0][1]) == selected
    assert lines_after_gap("no gap\nhere") == []


def user_lines(*texts: str) -> list[LedgerLine]:
    return [LedgerLine(text, "user", "", place, 0, 0) for place, text in enumerate(texts)]


def never(text: str) -> list[str]:
    return [text] if "never" in text else []


def test_h3_a_repeated_rule_does_not_displace_another_rule() -> None:
    """Rules take half of the room, newest first."""
    lines = user_lines("never push", *["next?"] * 40, *["never merge on a Friday"] * 20, *["next?"] * 20)
    kept = dict(clip_evenly(lines, 200, 400, never))
    assert kept[0] == "never push"
    assert sum(text == "never merge on a Friday" for text in kept.values()) == 1


def test_l7_short_user_messages_get_more_room_if_none_is_left_out_then() -> None:
    lines = user_lines(*["Our customers run Python 3.11."] * 10)
    assert len(clip_evenly(lines, 200, 400)) < 10
    assert len(clip_evenly(lines, 200, 400, most_room=400)) == 10
    assert clip_evenly(lines, 200, 400, most_room=300) == clip_evenly(lines, 200, 400)


def test_h3_long_user_messages_stay_whole_if_they_fit_in_the_most_room() -> None:
    lines = user_lines(*["Our customers run Python 3.11. " * 10] * 3)
    clipped, whole = clip_evenly(lines, 800, 400), clip_evenly(lines, 800, 400, most_room=1_000)
    assert all("[…]" in text for _, text in clipped)
    assert [text for _, text in whole] == [line.text.strip() for line in lines]
