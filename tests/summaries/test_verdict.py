"""What is no summary, and what only looks as if it were none (H3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Reply
from holdfast.summaries.verdict import flaw, text_of

GOOD = "They mended the pier, and the mole is next."


def judged(text: str, longest: int = 10_000, **more: object) -> str:
    return flaw(Reply(text, **more), longest, len)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(GOOD, finish="length"), "cut off"),
        (Reply(GOOD, finish="tool_call"), "called a tool"),
        (Reply(GOOD, finish="refused"), "withheld"),
        (Reply(""), "blank"),
        (Reply(" \n\t\u00a0"), "blank"),
        (Reply("<think>hm</think>"), "blank"),
        (Reply("<thinking>it goes on and on"), "blank"),
        (Reply("<summary>\n</summary>"), "blank"),
        (Reply('<tool_call>{"name": "read"}</tool_call>'), "tool call"),
        (Reply('<function_calls><invoke name="read">'), "tool call"),
        (Reply('{"name": "read", "arguments": {}}'), "tool call"),
        (Reply('```json\n{"tool": "read"}\n```'), "tool call"),
        (Reply("I'm sorry, but I can't help with that."), "refused"),
        (Reply("I’m sorry, but I can’t help with that."), "refused"),
        (Reply("I cannot summarise this conversation."), "refused"),
        (Reply("**Sorry**, no."), "refused"),
        (Reply("As an AI, I have no opinion."), "refused"),
        (Reply("x" * 10_001), "longer than"),
    ],
)
def test_every_flaw_is_named(reply: Reply, why: str) -> None:
    """S13, DESIGN rule 2: blank, refused, cut off, a call, or longer than what it is about."""
    assert why in flaw(reply, 10_000, len)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "Sorry state of the pier: " + "its planks are rotten and have to be replaced one by one. " * 8,
        "Unfortunately for the harbour, the storm came early. " + "The tables were moved to the new format. " * 12,
        "The user said sorry, and went on.",
        "I cannoned into the pier: that is how the user began.",
        'They call it with {"name": "read"}.',
        "x" * 10_000,
        "港口里的船都已经修好了。",
    ],
)
def test_a_summary_is_a_summary(text: str) -> None:
    """A long text that begins with "Sorry" is no refusal, and one that quotes a call is none."""
    assert judged(text) == ""


def test_the_measure_is_the_callers() -> None:
    """So many tokens, not characters."""
    assert flaw(Reply("a b c d"), 3, lambda text: len(text.split()))
    assert not flaw(Reply("a b c d"), 4, lambda text: len(text.split()))


@pytest.mark.parametrize(
    "text",
    [
        f"<think>Let me see.</think>{GOOD}",
        f"  <THINKING>\nLet me\nsee.\n</THINKING>\n\n{GOOD}",
        f"<think>one</think>\n<think>two</think>\n{GOOD}",
        f"<analysis>\nWhat they said.\n</analysis>\n\n<summary>\n{GOOD}\n</summary>",
        f"<reasoning>so</reasoning><scratchpad>and so</scratchpad> {GOOD}",
        f"Let me see what they said,\nit was a lot.\n</think>\n\n{GOOD}",
        f"<summary>{GOOD}</summary>",
        f"<state_snapshot>\n{GOOD}\n</state_snapshot>\n",
        f"```\n{GOOD}\n```",
        f"```markdown\n{GOOD}\n```\n",
        f"<think>hm</think>\n```md\n<summary>{GOOD}</summary>\n```",
    ],
)
def test_thoughts_and_wrappings_are_taken_off(text: str) -> None:
    assert text_of(Reply(text)) == GOOD


def test_thoughts_between_an_opening_word_and_the_answer_go_too() -> None:
    assert (
        text_of(Reply(f"First I look at it.\n<analysis>\nhm\n</analysis>\n{GOOD}")) == f"First I look at it.\n\n{GOOD}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "### Done\n- The parser strips <think> blocks\n\n### Pending\n- The other models",
        "The parser strips <think>…</think> blocks; so much for <analysis>.",
        "- a tag `</think>` alone ends the thoughts\n- and the rest is the answer",
        "```py\npier()\n```\nwas replaced by\n```py\nmole()\n```",
        "They write <summary>…</summary> around it.",
    ],
)
def test_what_a_summary_quotes_is_left_where_it_stands(text: str) -> None:
    """A summary of work on tags and code blocks does not lose what comes after the first of them."""
    assert text_of(Reply(text)) == text


def test_a_block_of_code_inside_a_wrapping_stays_whole() -> None:
    inside = "It runs:\n```sh\nmake\n```\nand that is all."
    assert text_of(Reply(f"```markdown\n{inside}\n```")) == inside


def test_halves_of_characters_are_replaced() -> None:
    assert text_of(Reply("a \ud83d b")) == "a ? b"


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<summary>", "</summary>", "```", "\n", " ", "pier", "{", "Sorry"])
    )
)
def test_whatever_comes_it_is_read_to_an_end_and_adds_nothing(pieces: list[str]) -> None:
    text = "".join(pieces)
    read = text_of(Reply(text))
    assert read == read.strip()
    assert len(read) <= len(text)
    assert isinstance(judged(text), str)
