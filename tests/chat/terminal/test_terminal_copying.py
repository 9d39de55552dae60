"""What a selection copies: the text as it was written, without indents, rules and line wraps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.chat.commands.copying import code_blocks
from holdfast.chat.terminal.copying import WHOLE, copied_text
from holdfast.chat.terminal.drawing import wrap_plain
from holdfast.chat.terminal.entries import PromptEntry, TerminalEntry
from holdfast.chat.terminal.history import HistoryEntry
from holdfast.chat.terminal.reply_entries import ReplyEntry, ToolCallEntry
from holdfast.chat.terminal.theme import PLAIN, ChatTheme

CODE = '''\
def hold(self, berth, boat):
\tif not self.db.insert_if_free(berth, boat):  # the database decides who was first, in one statement for all
        raise Taken(berth)

    return "    four blanks    "'''
PROSE = (
    "Two requests could both pass the check before either of them wrote, because the check and the insert were two "
    "statements; a **lock** in Python holds in one process only."
)
LIST = "- first, with words that are too many for a narrow screen and so are wrapped\n- second\n\n1. one\n2. two"
REPLY = (
    f"# Berths\n\n{PROSE}\n\n```python\n{CODE}\n```\n\n{LIST}\n\n> quoted, also at some length, so that it is wrapped"
)


def drawn(entry: TerminalEntry, width: int) -> list[str]:
    entry.redraw(width, ChatTheme())
    return [line.text for line in entry.lines]


def copied(entry: TerminalEntry, width: int, first: str = "", last: str = "") -> str:
    """Copies from the line that has the first text to the one that has the last, with all of both."""
    lines = drawn(entry, width)
    start = next(row for row, line in enumerate(lines) if first in line)
    end = max((row for row, line in enumerate(lines) if last and last in line), default=len(lines) - 1)
    return entry.copied([WHOLE if start <= row <= end else None for row in range(len(lines))])


@pytest.mark.parametrize("width", [24, 40, 80, 140])
def test_a_whole_reply_is_copied_as_its_source(width: int) -> None:
    assert copied(ReplyEntry(REPLY), width) == REPLY


@pytest.mark.parametrize("width", [40, 80, 140])
def test_a_code_block_is_copied_as_written_with_tabs_and_trailing_blanks(width: int) -> None:
    assert copied(ReplyEntry(REPLY), width, "def hold", "four blanks") == CODE


@pytest.mark.parametrize("width", [40, 80, 140])
def test_prose_is_copied_without_indent_and_line_wraps(width: int) -> None:
    assert copied(ReplyEntry(REPLY), width, "Two requests", "process only" if width > 40 else "only.") == PROSE.replace(
        "**", ""
    )


@pytest.mark.parametrize("width", [40, 80])
def test_lists_and_quotes_are_copied_with_their_marks(width: int) -> None:
    assert copied(ReplyEntry(REPLY), width, "first, with", "two") == LIST
    assert copied(ReplyEntry(REPLY), width, "quoted,").startswith(
        "> quoted, also at some length, so that it is wrapped"
    )


def test_code_inside_a_list_is_copied_without_the_indent_of_the_list() -> None:
    reply = ReplyEntry("- run this:\n\n  ```sh\n  make test\n    nested\n  ```\n\nand wait")
    assert copied(reply, 60, "make", "nested") == "make test\n  nested"


def test_a_reply_that_is_only_code_is_copied_without_its_fence() -> None:
    assert copied(ReplyEntry("```sh\nmake test\n```"), 60) == "make test"


def test_part_of_a_line_is_copied_by_columns() -> None:
    reply = ReplyEntry("The tide 潮 turns.")
    drawn(reply, 60)
    assert reply.copied([(2, 10)]) == "The tide" and reply.copied([(6, 13)]) == "tide 潮"


def test_a_command_that_is_cut_to_fit_is_copied_whole() -> None:
    command = "pytest -q " + " ".join(f"tests/test_{number}.py" for number in range(12))
    call = ToolCallEntry("c", "run_command", command)
    call.finish("ok", failed=False)
    line = drawn(call, 60)[0]
    start, end = line.index("pytest"), line.index("…") + 1
    assert call.copied([(start, end)]) == command
    assert call.copied([(start, start + 6)]) == "pytest"


def test_a_folded_prompt_and_a_message_of_before_are_copied_whole() -> None:
    prompt = "\n".join(f"line {number}" for number in range(40))
    assert copied(PromptEntry(prompt), 60) == prompt
    assert copied(HistoryEntry("assistant", REPLY, 12), 60) == REPLY


def test_escape_sequences_are_not_copied() -> None:
    assert "\x1b" not in copied(ReplyEntry("a \x1b]52;c;ZXZpbA==\x07 b"), 60)


words = st.text(st.sampled_from("ab  潮é,.-"), max_size=120)


@given(st.lists(words, min_size=1, max_size=4), st.integers(4, 60))
def test_wrapped_lines_are_copied_as_they_were(lines: list[str], width: int) -> None:
    text = "\n".join(lines)
    assert copied_text((strip, WHOLE) for strip in wrap_plain(text, width, PLAIN)) == text


def test_code_blocks_are_found_in_order() -> None:
    assert code_blocks(REPLY) == [CODE] and code_blocks("none") == []
