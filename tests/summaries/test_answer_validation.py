"""Validation of a summarizer's answer, and extraction of its text (H3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.models import Reply
from holdfast.summaries.summarizer import answer_text, rejection_reason

GOOD = "They mended the pier, and the mole is next."


def reason_for(text: str, longest: int = 10_000, **more: object) -> str:
    return rejection_reason(Reply(text, **more), longest, len)  # type: ignore[arg-type]


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
def test_s13_rejection_reason_names_every_flaw(reply: Reply, why: str) -> None:
    """S13: blank, refused, cut off, a tool call, or longer than its input."""
    assert why in rejection_reason(reply, 10_000, len)


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
def test_rejection_reason_accepts_valid_summaries(text: str) -> None:
    """A long text that begins with "Sorry" is no refusal, and a quoted call is no call."""
    assert reason_for(text) == ""


def test_rejection_reason_counts_tokens_of_the_caller() -> None:
    """The limit is in tokens, not characters."""
    assert rejection_reason(Reply("a b c d"), 3, lambda text: len(text.split()))
    assert not rejection_reason(Reply("a b c d"), 4, lambda text: len(text.split()))


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
def test_answer_text_strips_reasoning_and_wrapping(text: str) -> None:
    assert answer_text(Reply(text)) == GOOD


def test_answer_text_strips_reasoning_in_the_middle() -> None:
    assert (
        answer_text(Reply(f"First I look at it.\n<analysis>\nhm\n</analysis>\n{GOOD}"))
        == f"First I look at it.\n\n{GOOD}"
    )


def test_answer_text_strips_reasoning_without_tags_before_the_summary() -> None:
    thoughts = "Analysis:\nFirst they moved the tables.\n\n1. **Initial Request**: move them\n"
    assert answer_text(Reply(f"{thoughts}\nSummary:\n{GOOD}")) == f"Summary:\n{GOOD}"
    assert answer_text(Reply(f"Here it is.\n\n{thoughts}\nSummary:\n{GOOD}")) == f"Here it is.\n\nSummary:\n{GOOD}"
    assert answer_text(Reply(f"{thoughts}\n{GOOD}")) == f"{thoughts}\n{GOOD}"
    late = f"{GOOD}\n\na\nb\nc\nd\n{thoughts}\nSummary:\nx"
    assert answer_text(Reply(late)) == late


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
def test_answer_text_keeps_quoted_tags_and_fences(text: str) -> None:
    """A summary about tags and code blocks keeps the text after the first of them."""
    assert answer_text(Reply(text)) == text


def test_answer_text_keeps_code_block_inside_wrapping() -> None:
    inside = "It runs:\n```sh\nmake\n```\nand that is all."
    assert answer_text(Reply(f"```markdown\n{inside}\n```")) == inside


def test_answer_text_replaces_surrogates() -> None:
    assert answer_text(Reply("a \ud83d b")) == "a ? b"


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<summary>", "</summary>", "```", "\n", " ", "pier", "{", "Sorry"])
    )
)
def test_answer_text_terminates_and_never_grows(pieces: list[str]) -> None:
    text = "".join(pieces)
    read = answer_text(Reply(text))
    assert read == read.strip()
    assert len(read) <= len(text)
    assert isinstance(reason_for(text), str)
