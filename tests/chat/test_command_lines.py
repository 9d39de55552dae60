"""Whatever is typed: a command, a prompt, or nonsense. Never an exception, never a line that is too long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio
import pytest
from command_talk import Talk, flat
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from holdfast.chat.commands import COMMANDS, Page, completions
from holdfast.chat.commands.layout import WIDTH, clipped, shown, table

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with Talk(tmp_path).open() as talk:
        yield talk


async def test_what_is_no_command_is_said(talk: Talk) -> None:
    assert await talk.types("Hello there.") == Page("")
    assert await talk.types("//etc/hosts is empty") == Page("")
    texts = await talk.texts()
    assert texts[0::2] == ["Hello there.", "/etc/hosts is empty"]


async def test_enter_alone_says_nothing(talk: Talk) -> None:
    assert await talk.says("", "  \n") == ""
    await talk.asks("u1")
    await talk.types("")
    assert await talk.shows() == "u1 a1"


async def test_half_characters_are_taken_too(talk: Talk) -> None:
    await talk.says("a \ud800 half", "/search \udc80")
    assert (await talk.texts())[0] == "a ? half"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/compct", "There is no command /compct: did you mean /compact?"),
        ("/Brnach 3", "There is no command /Brnach: did you mean /branch?"),
        ("/xyzzy", "There is no command /xyzzy: /help lists them all, and // in front says it to the agent."),
        ("/help nothing", "There is no command /nothing: /help lists them all, and // in front says it to the agent."),
        ("/help branch", "/branch [N]: list what you said; go back to N in a new session."),
        ("/help /undo", "/undo: step back over the last compaction."),
        ("/help a b", "'b' is one word too many: the command is /help [COMMAND]."),
        ("/quit now", "'now' is one word too many: the command is /quit."),
        ("/clear all", "'all' is one word too many: the command is /clear."),
        ("/tree all", "'all' is one word too many: the command is /tree."),
    ],
)
async def test_what_was_meant_is_told(talk: Talk, line: str, said: str) -> None:
    page = await talk.types(line)
    assert (flat(page.text), page.quit) == (said, False)
    assert await talk.texts() == []


@pytest.mark.parametrize("line", ["/help", "/"])
async def test_help_has_every_command_in_a_whole_line(talk: Talk, line: str) -> None:
    lines = (await talk.says(line)).splitlines()
    for command, row in zip(COMMANDS, lines, strict=False):
        assert row.startswith(command.usage) and row.endswith(command.about)


async def test_capital_letters_do_not_matter(talk: Talk) -> None:
    assert await talk.types("/QUIT") == Page(f"Session {talk.id} is kept.", quit=True)


async def test_a_disk_that_cannot_be_read_is_told(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise OSError(5, "Input/output error", "/harbor/log")

    monkeypatch.setattr(talk.sessions.store, "sessions", broken)
    assert await talk.says("/tree") == "Input/output error (/harbor/log)."
    assert await completions(talk.chat, "/sessions ") == []


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


@given(lines=st.lists(LINES, max_size=8))
def test_no_line_of_any_text_raises(tmp_path_factory: pytest.TempPathFactory, lines: Sequence[str]) -> None:
    async def typed() -> None:
        folder = tmp_path_factory.mktemp("harbor")
        model = ["One reply about a berth.", "Another."] * 20
        async with Talk(folder, model).open() as talk:
            await talk.says("What about the berth?", "And then?")
            for line in lines:
                await talk.types(line)
                assert all(line.startswith("/") for line in await completions(talk.chat, line))

    anyio.run(typed)


@given(text=st.text())
def test_a_page_drives_no_terminal_and_fits(text: str) -> None:
    for line in shown(text).split("\n"):
        assert cell_len(line) <= WIDTH
        assert line.isprintable() or not line.isascii()


@given(rows=st.lists(st.tuples(st.text(max_size=90), st.text(max_size=90)), min_size=1, max_size=4))
def test_a_table_has_a_line_for_each_row(rows: list[tuple[str, str]]) -> None:
    lines = table(rows)
    assert len(lines) == len(rows)
    assert all(cell_len(line) <= WIDTH for line in lines)


def test_what_is_cut_off_is_marked() -> None:
    assert clipped("修" * 60) == "修" * 38 + "…"
    assert clipped("short  ") == "short"


class TestCompletion:
    """Whole lines, up to the end of the word that is being typed."""

    async def test_names(self, talk: Talk) -> None:
        assert await completions(talk.chat, "/") == [f"/{command.name}" for command in COMMANDS]
        assert await completions(talk.chat, "/RE") == ["/reference", "/recall"]
        assert await completions(talk.chat, "/help un") == ["/help undo"]

    @pytest.mark.parametrize(
        "text", ["", "hello", "//co", "/nothing 1", "/undo ", "/compact ", "/branch 1 ", "/pin #1 off ", "/edit 1\n2"]
    )
    async def test_nothing(self, talk: Talk, text: str) -> None:
        await talk.asks("u1")
        assert await completions(talk.chat, text) == []

    async def test_arguments(self, talk: Talk, tmp_path: Path) -> None:
        (tmp_path / "reports" / "old").mkdir(parents=True)
        await talk.asks("u1", "u2")
        await talk.says("/pin #2")
        first = talk.id
        expected = {
            "/autocompact o": ["/autocompact on", "/autocompact off"],
            "/branch ": ["/branch 1", "/branch 2"],
            "/edit 2": ["/edit 2"],
            "/preset cl": ["/preset claude_code"],
            "/model anth": ["/model anthropic:"],
            f"/sessions {first[:6]}": [f"/sessions {first}"],
            "/reference ": [f"/reference {first}"],
            "/pin ": ["/pin #2"],
            "/pin #2 o": ["/pin #2 off"],
            "/export re": ["/export reports/"],
            "/export reports/": ["/export reports/old/"],
            "/export nowhere/": [],
            "/export talk.jsonl  ": [f"/export talk.jsonl  {name}" for name in ("holdfast", "pi", "messages")],
        }
        assert {text: await completions(talk.chat, text) for text in expected} == expected
