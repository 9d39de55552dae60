"""Shell commands as hooks: real scripts, every way to answer, and every way to fail (G7)."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast import CompactionResult, EventCount, Outcome, SessionService, always
from holdfast.errors import InvalidInput
from holdfast.hooks import Command, Hooks
from hooked import SAID, SUMMARY, Heard, calls, seen, talk

pytestmark = pytest.mark.anyio


class Scripts:
    """Commands of a folder, with what they were told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, body: str, timeout: float = 20.0) -> Command:
        path = self.folder / f"hook{len(list(self.folder.glob('*.sh')))}.sh"
        path.write_text(f"#!/bin/sh\ncat > {shlex.quote(str(path))}.told\n{body}\n")
        path.chmod(0o755)
        return Command(shlex.quote(str(path)), timeout)

    @property
    def told(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("*.told"))]


@pytest.fixture
def script(tmp_path: Path) -> Scripts:
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    return Scripts(folder)


async def compacted(hooks: Hooks, **options: Any) -> tuple[SessionService, CompactionResult]:
    service = await talk(hooks)
    return service, await service.compact("s", always, SUMMARY, **options)


# -- what they are told ---------------------------------------------------------------------------------------------


async def test_each_is_told_what_happens_as_one_json_object(script: Scripts) -> None:
    hooks = Hooks(before=script(""), session_start=script(""), after=script(""))
    service = await talk(hooks)
    result = await service.compact("s", EventCount(2), SUMMARY, budget=90_000, instructions="mind the ships")
    before, start, after = script.told
    common = {
        "session_id": "s",
        "lane": None,
        "trigger": "auto",
        "custom_instructions": "mind the ships",
        "cwd": str(Path.cwd()),
    }
    assert before == common | {"hook_event_name": "PreCompact", "tokens": result.tokens_before, "budget": 90_000}
    assert start == common | {
        "hook_event_name": "SessionStart",
        "source": "compact",
        "tokens": (await service.context("s")).tokens,
        "round": 1,
    }
    assert after == common | {
        "hook_event_name": "PostCompact",
        "compact_summary": SAID,
        "tokens": result.tokens_after,
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "round": 1,
    }


async def test_a_person_is_told_apart_from_a_trigger(script: Scripts) -> None:
    await compacted(Hooks(before=script("")))
    assert script.told[0]["trigger"] == "manual"


async def test_what_is_told_cannot_become_a_command(script: Scripts, tmp_path: Path) -> None:
    evil = f"'; touch {tmp_path}/owned; echo $(touch {tmp_path}/owned) `touch {tmp_path}/owned`\n\"\\"
    await compacted(Hooks(before=script("")), instructions=evil)
    assert script.told[0]["custom_instructions"] == evil
    assert not (tmp_path / "owned").exists()


async def test_a_plain_text_is_a_command_with_a_pipe_and_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HARBOUR", "Osterhaven")
    service, _ = await compacted(Hooks(before='echo "Mind $HARBOUR" | tr a-z A-Z'))
    assert "MIND OSTERHAVEN" in calls(service)[0].prompt


# -- how they answer ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "instructions"),
    [
        ("", None),
        ("echo '  '", None),
        ("echo 'Name every file.'", "Name every file."),
        ("""echo '{"instructions": "Name every file."}'""", "Name every file."),
        ("""echo '{"instructions": null}'""", None),
        ("""echo '{"unknown": ["to", "us"]}'""", None),
        ("""echo '["a", "list"]'""", '["a", "list"]'),
        ("""echo '{"decision": "block", "reason": }'""", '{"decision": "block", "reason": }'),
        ("printf 'na\\377me'", "na�me"),
        ("echo 'only logged' >&2", None),
    ],
)
async def test_with_0_it_agrees_and_may_add_instructions(body: str, instructions: str | None, script: Scripts) -> None:
    given: list[str | None] = []
    _, result = await compacted(Hooks(before=[script(body), lambda before: given.append(before.instructions)]))
    assert (result.outcome, result.remarks) == (Outcome.COMPACTED, ())
    assert given == [instructions]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("echo 'tests are running' >&2; exit 2", "tests are running"),
        ("echo 'not this'; echo 'no: API_KEY=abcdefgh1' >&2; exit 2", "no: API_KEY: [hidden]"),
        ("""echo '{"decision": "block", "reason": "tests are running"}'""", "tests are running"),
    ],
)
@pytest.mark.parametrize("trigger", [None, EventCount(2)], ids=["manual", "automatic"])
async def test_with_2_or_in_words_it_says_no(body: str, why: str, trigger: Any, script: Scripts) -> None:
    service = await talk(Hooks(before=script(body)))
    result = await service.compact("s", trigger, SUMMARY)
    assert (result.outcome, result.why, calls(service)) == (Outcome.VETOED, why, [])


@pytest.mark.parametrize("body", ["exit 2", """echo '{"decision": "block"}'"""])
async def test_a_veto_without_a_reason_names_the_command(body: str, script: Scripts) -> None:
    _, result = await compacted(Hooks(before=script(body)))
    assert result.why.startswith("the hook ") and result.why.endswith("said no")
    assert ".sh" in result.why


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("echo 'no such table' >&2; exit 1", "it ended with 1: no such table"),
        ("exit 3", "it ended with 3"),
        ("kill -9 $$", "it ended with "),
        ("""echo '{"instructions": {"files": 3}}'""", 'its instructions is no text but {"files":3}'),
        ("""echo '{"decision": "block", "reason": 7}'""", "its reason is no text but 7"),
    ],
)
async def test_any_other_end_is_an_error_that_stops_nothing(body: str, why: str, script: Scripts) -> None:
    service, result = await compacted(Hooks(before=script(body)))
    assert (result.outcome, len(calls(service))) == (Outcome.COMPACTED, 1)
    (remark,) = result.remarks
    assert why in remark


async def test_a_command_that_is_not_there_stops_nothing() -> None:
    _, result = await compacted(Hooks(before="./no-such-hook.sh"))
    assert (result.outcome, len(result.remarks)) == (Outcome.COMPACTED, 1)
    assert result.remarks[0].startswith("the hook './no-such-hook.sh' was passed over: it ended with 127: ")


async def test_of_a_flood_the_beginning_is_heard_and_the_cut_is_marked(script: Scripts) -> None:
    """It is read to its end, so that the command can finish, and neither memory nor the prompt is flooded."""
    flood = "i=0; while [ $i -lt 200 ]; do printf '%20000s' x; i=$((i+1)); done; echo; echo end >&2"
    service, result = await compacted(Hooks(before=script(f"printf 'Name every file.'; {flood}")))
    assert (result.outcome, result.remarks) == (Outcome.COMPACTED, ())
    prompt = calls(service)[0].prompt
    assert "Name every file." in prompt and "more characters]" in prompt
    assert len(prompt) < 30_000


# -- when they take too long ----------------------------------------------------------------------------------------


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


async def ended(pids: list[int]) -> bool:
    """The kernel may take a moment."""
    with anyio.move_on_after(10):
        while any(map(alive, pids)):  # noqa: ASYNC110 - they tell nobody
            await anyio.sleep(0.005)
        return True
    return False


async def test_one_that_hangs_is_ended_with_all_that_it_started(script: Scripts) -> None:
    pids = script.folder / "pids"
    note = f"> {shlex.quote(str(pids))}"
    hang = f"sleep 60 & echo $! {note}; (sleep 60 & echo $! >{note}; wait) & echo $$ >{note}; wait"
    _, result = await compacted(Hooks(before=script(hang, timeout=1)))
    assert result.outcome is Outcome.COMPACTED
    assert "it took over 1 s" in result.remarks[0]
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 3 and await ended(started)


async def test_one_that_ignores_what_it_is_told_and_a_hangup_is_ended_too() -> None:
    service = await talk(Hooks(before=Command("trap '' TERM HUP INT; exec <&-; while :; do sleep 1; done", 0.2)))
    result = await service.compact("s", always, SUMMARY, instructions="much to say " * 20_000)
    assert "it took over 0.2 s" in result.remarks[0]


async def test_what_it_leaves_in_the_background_is_not_waited_for(script: Scripts) -> None:
    pid = script.folder / "pid"
    body = f"echo 'Name every file.'; sleep 60 & echo $! > {shlex.quote(str(pid))}"
    service, result = await compacted(Hooks(before=script(body, timeout=30)))
    assert (result.outcome, result.remarks) == (Outcome.COMPACTED, ())
    assert "Name every file." in calls(service)[0].prompt
    started = int(pid.read_text())
    assert alive(started), "and it is left alone"
    os.kill(started, 9)


async def test_a_command_need_not_listen() -> None:
    service = await talk(Hooks(before=["true", "exec <&-; echo 'Name every file.'"]))
    result = await service.compact("s", always, SUMMARY, instructions="much to say " * 20_000)
    assert (result.outcome, result.remarks) == (Outcome.COMPACTED, ())
    assert "Name every file." in calls(service)[0].prompt


# -- after ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "echo 'Rules: never push to main.'",
        """echo '{"additionalContext": "Rules: never push to main."}'""",
        """echo '{"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext":
        "Rules: never push to main."}}'""",
    ],
)
async def test_what_is_said_at_the_start_of_a_session_is_in_its_context(body: str, script: Scripts) -> None:
    service, result = await compacted(Hooks(session_start=script(body)))
    assert str((await service.context("s"))[-1]["content"]).startswith("Rules: never push to main.\n[holdfast:")
    assert result.remarks == ()


@pytest.mark.parametrize("body", ["", "echo '{}'", """echo '{"additionalContext": ""}'"""])
async def test_one_with_nothing_to_say_says_nothing(body: str, script: Scripts) -> None:
    service, _ = await compacted(Hooks(session_start=script(body)))
    assert await seen(service) == ["They", "u5", "a5", "u6", "a6"]


async def test_after_a_compaction_it_is_too_late_for_a_veto(script: Scripts) -> None:
    heard, no = Heard(), "echo 'too late' >&2; exit 2"
    service, result = await compacted(Hooks(session_start=script(no), after=script(no), listen=heard))
    assert result.outcome is Outcome.COMPACTED
    assert len(result.remarks) == 2 and all("it ended with 2: too late" in remark for remark in result.remarks)
    assert heard.names == ["Started", "Completed", "Boundary"]
    assert await seen(service) == ["They", "u5", "a5", "u6", "a6"]


@pytest.mark.parametrize("line", ["", "  ", None, 7])
def test_a_command_is_a_line(line: Any) -> None:
    with pytest.raises(InvalidInput, match="A command is a line for the shell"):
        Command(line)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), "60", None])
def test_a_command_has_some_time(timeout: Any) -> None:
    with pytest.raises(InvalidInput, match="timeout must be a number of seconds above 0"):
        Command("true", timeout)
