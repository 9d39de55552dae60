"""Before and after a compaction: what would go, what is no longer shown, and the lines kept of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_harness import LONG, CommandHarness, collapse

from holdfast.chat.terminal.footer import FooterState, render_footer
from holdfast.chat.terminal.theme import ChatTheme
from holdfast.compaction.presets import preset
from holdfast.models import ScriptedAgentModel

pytestmark = pytest.mark.anyio
PORT = "The port is 4711 in tidebook/settings.py"


def long_chat(folder: Path) -> CommandHarness:
    """A chat whose replies name things worth keeping, and whose summaries fail: the ledger stands in."""
    replies = [f"a{number}: {PORT}. {LONG}" for number in range(1, 9)]
    return CommandHarness(
        folder,
        ScriptedAgentModel(replies),
        preset=preset("holdfast", reserve=1_000, keep=550),
        window=3_000,
        auto=False,
    )


async def test_preview_lists_what_would_go_and_changes_nothing(tmp_path: Path) -> None:
    async with long_chat(tmp_path).open() as chat:
        await chat.send_prompts("u1", "u2", "u3", "u4")
        before = await chat.sessions.export(chat.id)
        page = await chat.run("/compact preview")
        assert await chat.sessions.export(chat.id) == before and not chat.model.calls
        assert page.choices is not None and page.choices.command == "/pin"
        titles = [item.title.split(":")[0] for item in page.choices.items]
        assert titles[:2] == ["user", "assistant"] and page.choices.items[0].value == "#1"
        kept = (await chat.run("/compact --without-model")).text
        done = await chat.run("/archived")
        assert done.choices is not None and collapse(kept).startswith("Compacted: ")
        assert [item.value for item in done.choices.items] == [item.value for item in page.choices.items]


async def test_preview_says_why_nothing_would_go(tmp_path: Path) -> None:
    async with long_chat(tmp_path).open() as chat:
        assert (await chat.run("/compact preview")).text.startswith("Nothing would be changed: ")


async def test_archived_has_the_lines_that_were_kept_of_each_message(tmp_path: Path) -> None:
    async with long_chat(tmp_path).open() as chat:
        assert (await chat.run("/archived")).text.startswith("Nothing was compacted")
        await chat.send_prompts("u1", "u2", "u3", "u4")
        await chat.run("/compact --without-model")
        choices = (await chat.run("/archived")).choices
        assert choices is not None and choices.command == "/recall"
        asked = choices.items[0]
        assert asked.about.endswith("kept") and asked.about != "nothing kept"
        assert asked.preview.startswith("Kept of it:\n  ") and "u1" in asked.preview
        assert "Restored to the context" in collapse((await chat.run(f"/recall {asked.value}")).text)


async def test_a_summary_without_citations_may_have_kept_something(tmp_path: Path) -> None:
    async with CommandHarness(tmp_path, preset=preset("pi", reserve=1_000, keep=550)).open() as chat:
        await chat.send_prompts("u1", "u2", "u3")
        await chat.run("/compact")
        choices = (await chat.run("/archived")).choices
        assert choices is not None
        assert "the summary does not cite it" in {item.about for item in choices.items}
        assert "nothing kept" not in {item.about for item in choices.items}


def test_footer_does_not_announce_the_compaction_that_runs() -> None:
    state = FooterState()
    state.tokens, state.window, state.threshold, state.activity = 101_000, 200_000, 100_000, "compacting"
    assert "compacts" not in render_footer(state, ChatTheme(), 100).plain


@pytest.mark.parametrize(
    ("tokens", "auto", "shown"),
    [
        (80_000, True, ""),
        (86_000, True, "compacts at 100k"),
        (101_000, True, "compacts next"),
        (86_000, False, "auto-compact off"),
    ],
)
def test_footer_announces_a_compaction_near_the_threshold(tokens: int, auto: bool, shown: str) -> None:
    state = FooterState()
    state.tokens, state.window, state.threshold, state.auto = tokens, 200_000, 100_000, auto
    line = render_footer(state, ChatTheme(), 100).plain
    assert shown in line and ("compacts" in line) is shown.startswith("compacts")
    assert len(render_footer(state, ChatTheme(), 40).plain) <= 40
