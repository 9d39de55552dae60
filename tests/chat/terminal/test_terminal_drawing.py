"""Every function that draws ends on every text, at every width: a bound on steps, not on time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from entry_rendering import THEME
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.geometry import Size

from holdfast.agent.tools import PermissionRequest, PlannedChange
from holdfast.chat.commands.base import Choice, Choices, Table, clip_line, format_page, lay_out
from holdfast.chat.terminal import drawing, entries, history, picker, reply_entries
from holdfast.chat.terminal.approval import approval_preview, wrap_rows
from holdfast.chat.terminal.footer import FooterState, render_footer
from holdfast.chat.terminal.input_box import CompletionList, PastedTexts
from holdfast.chat.terminal.markdown import MarkdownStream, render_markdown
from holdfast.hooks.events import CompactionCompleted
from holdfast.io.text import sanitize
from holdfast.messages import ToolCall

PLAIN = Style()
Draw = Callable[[str, int], object]


def entry(make: Callable[[str], entries.TerminalEntry], *, unfold: bool = True) -> Draw:
    """Draws an entry as the screen does: folded, and unfolded if it can be."""

    def draw(text: str, width: int) -> object:
        one = make(text)
        drawn = one.draw(width, THEME)
        if unfold:
            one.set_folded(False)
            drawn += one.draw(width, THEME)
        return drawn

    return draw


def running_call(text: str) -> entries.TerminalEntry:
    call = reply_entries.ToolCallEntry("1", text, text)
    call.add_output(text)
    return call


def finished_call(text: str) -> entries.TerminalEntry:
    call = reply_entries.ToolCallEntry("1", "run_command", text)
    call.set_preview([Text(sanitize(text))])
    call.finish(text, failed=True)
    return call


def reasoning(text: str) -> entries.TerminalEntry:
    one = reply_entries.ReasoningEntry()
    for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
        one.append(piece)
    return one


def finished_reply(text: str) -> entries.TerminalEntry:
    reply = reply_entries.ReplyEntry(text)
    reply.finish(sanitize(text))
    return reply


def progress(text: str) -> entries.TerminalEntry:
    one = entries.CompactionProgressEntry(1_000, manual=False)
    one.what = text
    return one


def compaction(text: str) -> entries.TerminalEntry:
    done = CompactionCompleted(
        "s", "manual", tokens_before=9_000, tokens_after=100, archived=3, kept=1, round=1,
        summarizer=text, summary=text, remarks=(text,),
    )  # fmt: skip
    return entries.CompactionEntry(done, text)


def waiting_prompt(text: str) -> entries.TerminalEntry:
    return entries.PromptEntry(text, "queued")


def streamed(text: str, width: int) -> object:
    stream, drawn = MarkdownStream("  "), []
    step = max(1, len(text) // 4)
    for at in range(0, len(text), step):
        stream.add(text[at : at + step])
        drawn = stream.lines(width)
    return drawn + stream.lines(width, complete=True)


def approval(text: str, width: int) -> object:
    command = PermissionRequest("run_command", text, ToolCall("1", "run_command", {"command": text}))
    other = PermissionRequest("other", text, ToolCall("1", "other", {text[:9]: text}))
    data = text.encode(errors="surrogateescape" if text.isascii() else "replace")
    change = PermissionRequest(
        "write",
        text,
        ToolCall("1", "write", {}),
        PlannedChange(Path("a"), text[:20], b"one\n", data, ""),
    )
    return [wrap_rows(approval_preview(question), width) for question in (command, other, change)]


def footer(text: str, width: int) -> object:
    state = FooterState()
    state.model = state.session = state.notice = state.activity = text
    state.tokens, state.window = 900, 1_000
    return render_footer(state, THEME, width, 2, 3)


def completions(text: str, width: int) -> object:
    shown = CompletionList(THEME)
    shown.candidates, shown._heading = (text, f"{text}b"), text
    return shown.step(text, 0), shown.render()


class Picker(picker.Picker):
    columns = 80

    @property
    def size(self) -> Size:  # type: ignore[override]
        return Size(self.columns, 12)


def chosen(text: str, width: int) -> object:
    shown = Picker(THEME)
    shown.columns = width
    shown._choices = Choices("Title", (Choice("1", text, text, text), Choice("2", text, text)), text)
    shown._filter = picker.ChoiceFilter(shown._choices.items)
    drawn = [shown.render()]
    shown._filter.set_text(text)
    return [*drawn, shown.render()]


def table(text: str, width: int) -> object:
    rows = ((text[:50], text, text), ("a", "b", "c"))
    return [list(lay_out([Table(rows, clip=clip, header=clip), text], width)) for clip in (False, True)]


DRAWING: dict[str, Draw] = {
    "wrap_plain": lambda text, width: drawing.wrap_plain(sanitize(text), width, PLAIN),
    "wrap_text": lambda text, width: drawing.wrap_text(Text(sanitize(text).replace("\n", " ")), width),
    "truncate_text": lambda text, width: drawing.truncate_text(Text(sanitize(text)), width, "…"),
    "render_markdown": render_markdown,
    "markdown stream": streamed,
    "markdown code": lambda text, width: render_markdown(f"```sql\n{text}\n```\n", width),
    "markdown table": lambda text, width: render_markdown(f"| a | b |\n|---|--:|\n| {text} | {text[:9]} |\n", width),
    "reply": entry(finished_reply),
    "reasoning": entry(reasoning),
    "finished call": entry(finished_call),
    "running call": entry(running_call),
    "prompt": entry(entries.PromptEntry),
    "waiting prompt": entry(waiting_prompt),
    "command output": entry(entries.CommandOutputEntry),
    "note": entry(entries.NoteEntry),
    "header": entry(lambda text: entries.SessionHeaderEntry("forked", text, text, text, "now")),
    "compaction": entry(compaction),
    "compaction progress": entry(progress),
    "history": entry(lambda text: history.HistoryEntry("tool", text, 7, text)),
    "reply in the history": entry(lambda text: history.HistoryEntry("assistant", text, 7)),
    "summary in the history": entry(history.SummaryEntry),
    "approval": approval,
    "footer": footer,
    "completions": completions,
    "picker": chosen,
    "table": table,
    "page": format_page,
    "clip_line": clip_line,
    "folded paste": lambda text, width: PastedTexts().fold_text(text),
}

_STEPS_FIRST, _STEPS_A_CHARACTER = 60_000, 800
"""The approval draws a text four times, at up to 470 steps a character."""


@contextmanager
def bounded_steps(characters: int) -> Iterator[None]:
    """Fails when more functions are called than a text of this length can need."""
    left = _STEPS_FIRST + _STEPS_A_CHARACTER * characters

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            sys.setprofile(None)
            raise AssertionError(f"no end of drawing {characters:,} characters, in {frame.f_code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)


runs = st.tuples(
    st.one_of(
        st.sampled_from(
            [
                " ",
                "\t",
                "x",
                "漢",
                "\u0301",
                "\u0e31",
                "\u200d",
                "👩‍👩‍👧",
                "\n",
                "|",
                "`",
                "*",
                "[",
                "> ",
                "- ",
                "a ",
                " a",
            ]
        ),
        st.characters(),
    ),
    st.one_of(st.integers(1, 8), st.integers(500, 2_600)),
).map(lambda run: run[0] * run[1])
texts = st.lists(st.one_of(st.text(max_size=30), runs), min_size=1, max_size=4).map("".join)
PADDED = f"id{' ' * 2_000}name{' ' * 2_000}\n"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", DRAWING)
@given(text=texts, width=st.integers(1, 200))
@example(text=PADDED, width=80)
@example(text=f"abc{' ' * 4_000}x", width=1)
@example(text="[" * 4_000, width=80)
@example(text="\t\x1b" * 2_000, width=80)
@example(text=f"a {chr(0x0E31) * 5_000}", width=10)
def test_drawing_ends(name: str, text: str, width: int) -> None:
    with bounded_steps(len(text)):
        DRAWING[name](text, width)


@given(text=texts, width=st.integers(1, 200))
def test_rows_fit_the_width_and_hold_every_character_but_blanks(text: str, width: int) -> None:
    line = " ".join(sanitize(text).split("\n"))
    rows = [strip.text for strip in drawing.wrap_text(Text(line), width)]
    assert "".join("".join(rows).split()) == "".join(line.split())
    assert all(cell_len(row) <= max(width, drawing.MIN_WIDTH) for row in rows)
