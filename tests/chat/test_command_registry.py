"""Dispatch of typed lines and completion: never an exception, never an output line that is too long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio
import pytest
from command_harness import CommandHarness, collapse
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from holdfast.chat.commands import COMMANDS, CommandResult, complete_line
from holdfast.chat.commands.base import PAGE_WIDTH, Table, clip_line, format_page, lay_out

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[CommandHarness]:
    async with CommandHarness(tmp_path).open() as harness:
        yield harness


async def test_plain_line_is_sent_as_prompt(harness: CommandHarness) -> None:
    assert await harness.run("Hello there.") == CommandResult("")
    assert await harness.run("//etc/hosts is empty") == CommandResult("")
    texts = await harness.texts()
    assert texts[0::2] == ["Hello there.", "/etc/hosts is empty"]


async def test_blank_line_sends_nothing(harness: CommandHarness) -> None:
    assert await harness.run_all("", "  \n") == ""
    await harness.send_prompts("u1")
    await harness.run("")
    assert await harness.context_names() == "u1 a1"


async def test_lone_surrogates_are_replaced(harness: CommandHarness) -> None:
    await harness.run_all("a \ud800 half", "/search \udc80")
    assert (await harness.texts())[0] == "a ? half"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/compct", "There is no command /compct: did you mean /compact?"),
        ("/Brnach 3", "There is no command /Brnach: did you mean /branch?"),
        ("/xyzzy", "There is no command /xyzzy: /help lists all commands; start with // to send it to the agent."),
        (
            "/help nothing",
            "There is no command /nothing: /help lists all commands; start with // to send it to the agent.",
        ),
        ("/help branch", "/branch [N]: list your messages, or branch from message N."),
        ("/help /undo", "/undo: undo the last compaction."),
        ("/help a b", "Unexpected argument 'b': the usage is /help [COMMAND]."),
        ("/quit now", "Unexpected argument 'now': the usage is /quit."),
        ("/clear all", "Unexpected argument 'all': the usage is /clear."),
        ("/tree all", "Unexpected argument 'all': the usage is /tree."),
    ],
)
async def test_invalid_command_reports_usage_or_closest_match(
    harness: CommandHarness, line: str, expected: str
) -> None:
    page = await harness.run(line)
    assert (collapse(page.text), page.quit) == (expected, False)
    assert await harness.texts() == []


@pytest.mark.parametrize("line", ["/help", "/"])
async def test_help_lists_every_command_in_one_line(harness: CommandHarness, line: str) -> None:
    lines = (await harness.run_all(line)).splitlines()
    for command, row in zip(COMMANDS, lines, strict=False):
        assert row.startswith(command.usage) and row.endswith(command.about)


async def test_command_names_ignore_case(harness: CommandHarness) -> None:
    assert await harness.run("/QUIT") == CommandResult(f"Session {harness.id[-6:]} is kept.", quit=True)


async def test_command_with_os_error_reports_it(harness: CommandHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise OSError(5, "Input/output error", "/harbor/log")

    monkeypatch.setattr(harness.sessions.store, "sessions", broken)
    assert await harness.run_all("/tree") == "Input/output error (/harbor/log)."
    assert await complete_line(harness.chat, "/sessions ") == []


NAMES = [command.name for command in COMMANDS if command.name not in ("export", "model")]
WORDS = st.sampled_from(
    ["1", "2", "#1", "#2", "#1-#3", "#2@5", "off", "on", "pi", "amp", "0", "-1", "berth", "", "\x1b[2J"]
)
ARGUMENTS = st.lists(WORDS | st.text(max_size=12), max_size=4).map(" ".join)
LINES = st.one_of(
    st.text().filter(lambda text: not text.startswith("/")),
    st.builds("/{} {}".format, st.sampled_from(NAMES), ARGUMENTS),
    st.builds("/{}{}".format, st.text(max_size=8), ARGUMENTS).filter(lambda line: not line.startswith("/export")),
)


@settings(max_examples=6)
@given(lines=st.lists(LINES, max_size=8))
def test_run_command_never_raises(tmp_path_factory: pytest.TempPathFactory, lines: Sequence[str]) -> None:
    async def typed() -> None:
        folder = tmp_path_factory.mktemp("harbor")
        model = ["One reply about a berth.", "Another."] * 20
        async with CommandHarness(folder, model).open() as harness:
            await harness.run_all("What about the berth?", "And then?")
            for line in lines:
                await harness.run(line)
                assert all(line.startswith("/") for line in await complete_line(harness.chat, line))

    anyio.run(typed)


@given(text=st.text())
def test_format_page_is_printable_and_fits_width(text: str) -> None:
    for line in format_page(text).split("\n"):
        assert cell_len(line) <= PAGE_WIDTH
        assert line.isprintable() or not line.isascii()


@given(rows=st.lists(st.tuples(st.text(max_size=90), st.text(max_size=90)), min_size=1, max_size=4))
def test_clipped_table_has_one_line_per_row(rows: list[tuple[str, str]]) -> None:
    lines = [line for line, _ in lay_out([Table(rows, clip=True)], PAGE_WIDTH)]
    assert len(lines) == len(rows)
    assert all(cell_len(line) <= PAGE_WIDTH for line in lines)


def test_clip_line_marks_cut_with_ellipsis() -> None:
    assert clip_line("修" * 60) == "修" * 38 + "…"
    assert clip_line("short  ") == "short"


class TestCompletion:
    """Completions are whole lines up to the end of the last word."""

    async def test_complete_line_completes_command_names(self, harness: CommandHarness) -> None:
        assert await complete_line(harness.chat, "/") == [f"/{command.name}" for command in COMMANDS]
        assert await complete_line(harness.chat, "/RE") == ["/rewind", "/reference", "/recall"]
        assert await complete_line(harness.chat, "/help un") == ["/help undo"]

    @pytest.mark.parametrize(
        "text", ["", "hello", "//co", "/nothing 1", "/undo ", "/compact ", "/branch 1 ", "/pin #1 off ", "/edit 1\n2"]
    )
    async def test_complete_line_without_match_returns_nothing(self, harness: CommandHarness, text: str) -> None:
        await harness.send_prompts("u1")
        assert await complete_line(harness.chat, text) == []

    async def test_complete_line_completes_arguments(self, harness: CommandHarness, tmp_path: Path) -> None:
        (tmp_path / "reports" / "old").mkdir(parents=True)
        await harness.send_prompts("u1", "u2")
        await harness.run_all("/pin #2")
        first = harness.id
        expected = {
            "/autocompact o": ["/autocompact on", "/autocompact off"],
            "/branch ": ["/branch 1", "/branch 2"],
            "/edit 2": ["/edit 2"],
            "/preset cl": ["/preset claude_code", "/preset claude_code_ts"],
            "/model anth": ["/model anthropic:"],
            f"/sessions {first[:6]}": [f"/sessions {first}"],
            "/reference ": [f"/reference {first[-6:]}"],
            "/pin ": ["/pin #2"],
            "/pin #2 o": ["/pin #2 off"],
            "/export re": ["/export reports/"],
            "/export reports/": ["/export reports/old/"],
            "/export nowhere/": [],
            "/export talk.jsonl  ": [f"/export talk.jsonl  {name}" for name in ("holdfast", "pi", "messages")],
        }
        assert {text: await complete_line(harness.chat, text) for text in expected} == expected
