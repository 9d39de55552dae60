"""Shell commands as hooks: real scripts, all answers and all failures (G7)."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import anyio
import pytest

from compaction_session import SUMMARY, SUMMARY_TEXT, EventRecorder, model_calls, open_session, visible_names
from holdfast import CompactionResult, Outcome, SessionService
from holdfast.errors import InvalidInput
from holdfast.hooks import Hooks
from holdfast.hooks.hooks import CommandHook
from holdfast.triggers import EventCount, always
from time_limits import GROWING_LIMITS

pytestmark = pytest.mark.anyio


class Scripts:
    """Commands in a folder, and the input that they received."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, body: str, timeout: float = 20.0) -> CommandHook:
        path = self.folder / f"hook{len(list(self.folder.glob('*.sh')))}.sh"
        path.write_text(f"#!/bin/sh\ncat > {shlex.quote(str(path))}.input\n{body}\n")
        path.chmod(0o755)
        return CommandHook(shlex.quote(str(path)), timeout)

    @property
    def inputs(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("*.input"))]


@pytest.fixture
def script(tmp_path: Path) -> Scripts:
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    return Scripts(folder)


async def compact_with(hooks: Hooks, **options: Any) -> tuple[SessionService, CompactionResult]:
    service = await open_session(hooks)
    return service, await service.compact("s", always, SUMMARY, **options)


# -- input ---------------------------------------------------------------------------------------------------------


async def test_command_gets_one_json_object(script: Scripts) -> None:
    hooks = Hooks(before=script(""), session_start=script(""), after=script(""))
    service = await open_session(hooks)
    result = await service.compact("s", EventCount(2), SUMMARY, budget=90_000, instructions="mind the ships")
    before, start, after = script.inputs
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
        "compact_summary": SUMMARY_TEXT,
        "tokens": result.tokens_after,
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "round": 1,
    }


async def test_command_input_trigger_is_manual_or_auto(script: Scripts) -> None:
    await compact_with(Hooks(before=script("")))
    assert script.inputs[0]["trigger"] == "manual"


async def test_command_input_is_never_executed(script: Scripts, tmp_path: Path) -> None:
    evil = f"'; touch {tmp_path}/owned; echo $(touch {tmp_path}/owned) `touch {tmp_path}/owned`\n\"\\"
    await compact_with(Hooks(before=script("")), instructions=evil)
    assert script.inputs[0]["custom_instructions"] == evil
    assert not (tmp_path / "owned").exists()


async def test_plain_text_hook_is_a_shell_command_with_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HARBOUR", "Osterhaven")
    service, _ = await compact_with(Hooks(before='echo "Mind $HARBOUR" | tr a-z A-Z'))
    assert "MIND OSTERHAVEN" in model_calls(service)[0].prompt


# -- answers --------------------------------------------------------------------------------------------------------


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
async def test_exit_0_consents_and_may_add_instructions(body: str, instructions: str | None, script: Scripts) -> None:
    given: list[str | None] = []
    _, result = await compact_with(Hooks(before=[script(body), lambda before: given.append(before.instructions)]))
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
async def test_exit_2_or_block_decision_vetoes(body: str, why: str, trigger: Any, script: Scripts) -> None:
    service = await open_session(Hooks(before=script(body)))
    result = await service.compact("s", trigger, SUMMARY)
    assert (result.outcome, result.why, model_calls(service)) == (Outcome.VETOED, why, [])


@pytest.mark.parametrize("body", ["exit 2", """echo '{"decision": "block"}'"""])
async def test_veto_without_reason_names_the_command(body: str, script: Scripts) -> None:
    _, result = await compact_with(Hooks(before=script(body)))
    assert result.why.startswith("vetoed by the hook ")
    assert ".sh" in result.why


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("echo 'no such table' >&2; exit 1", "it exited with 1: no such table"),
        ("exit 3", "it exited with 3"),
        ("kill -9 $$", "it exited with "),
        ("""echo '{"instructions": {"files": 3}}'""", 'its instructions is not a text: {"files":3}'),
        ("""echo '{"decision": "block", "reason": 7}'""", "its reason is not a text: 7"),
    ],
)
async def test_other_exit_codes_and_invalid_answers_are_skipped(body: str, why: str, script: Scripts) -> None:
    service, result = await compact_with(Hooks(before=script(body)))
    assert (result.outcome, len(model_calls(service))) == (Outcome.COMPACTED, 1)
    (remark,) = result.remarks
    assert why in remark


async def test_missing_command_is_skipped() -> None:
    _, result = await compact_with(Hooks(before="./no-such-hook.sh"))
    assert (result.outcome, len(result.remarks)) == (Outcome.COMPACTED, 1)
    assert result.remarks[0].startswith("the hook './no-such-hook.sh' was skipped: it exited with 127: ")


async def test_long_output_is_truncated_and_marked(script: Scripts) -> None:
    """All output is read, so that the command can finish, but neither memory nor the prompt is flooded."""
    flood = "i=0; while [ $i -lt 200 ]; do printf '%20000s' x; i=$((i+1)); done; echo; echo end >&2"
    service, result = await compact_with(Hooks(before=script(f"printf 'Name every file.'; {flood}")))
    assert (result.outcome, result.remarks) == (Outcome.COMPACTED, ())
    prompt = model_calls(service)[0].prompt
    assert "Name every file." in prompt and "more characters]" in prompt
    assert len(prompt) < 30_000


# -- timeouts -------------------------------------------------------------------------------------------------------


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


async def wait_until_gone(pids: list[int]) -> bool:
    """Waits until the processes are gone."""
    with anyio.move_on_after(30):
        while any(map(alive, pids)):  # noqa: ASYNC110 - there is nothing to wait for
            await anyio.sleep(0.005)
        return True
    return False


async def test_timeout_kills_the_command_and_its_children(script: Scripts) -> None:
    pids = script.folder / "pids"
    note = f">> {shlex.quote(str(pids))}"
    hang = f"sleep 60 & echo $! {note}; (sleep 60 & echo $! {note}; wait) & echo $$ {note}; wait"
    started: list[int] = []
    for timeout in GROWING_LIMITS:
        pids.write_text("")
        _, result = await compact_with(Hooks(before=script(hang, timeout=timeout)))
        assert result.outcome is Outcome.COMPACTED
        assert f"it timed out after {timeout:g} s" in result.remarks[0]
        started = [int(pid) for pid in pids.read_text().split()]
        assert await wait_until_gone(started)
        if len(started) == 3:
            break
    assert len(started) == 3


async def test_timeout_kills_a_command_that_ignores_signals() -> None:
    service = await open_session(
        Hooks(before=CommandHook("trap '' TERM HUP INT; exec <&-; while :; do sleep 1; done", 0.2))
    )
    result = await service.compact("s", always, SUMMARY, instructions="much to say " * 20_000)
    assert "it timed out after 0.2 s" in result.remarks[0]


async def test_background_children_are_not_waited_for(script: Scripts) -> None:
    pid = script.folder / "pid"
    body = f"echo 'Name every file.'; sleep 60 & echo $! > {shlex.quote(str(pid))}"
    service, result = await compact_with(Hooks(before=script(body, timeout=30)))
    assert (result.outcome, result.remarks) == (Outcome.COMPACTED, ())
    assert "Name every file." in model_calls(service)[0].prompt
    started = int(pid.read_text())
    assert alive(started), "it is not killed"
    os.kill(started, 9)


async def test_command_may_ignore_its_standard_input() -> None:
    service = await open_session(Hooks(before=["true", "exec <&-; echo 'Name every file.'"]))
    result = await service.compact("s", always, SUMMARY, instructions="much to say " * 20_000)
    assert (result.outcome, result.remarks) == (Outcome.COMPACTED, ())
    assert "Name every file." in model_calls(service)[0].prompt


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
async def test_session_start_text_is_in_the_context(body: str, script: Scripts) -> None:
    service, result = await compact_with(Hooks(session_start=script(body)))
    assert str((await service.context("s"))[-1]["content"]).startswith("Rules: never push to main.\n[holdfast:")
    assert result.remarks == ()


@pytest.mark.parametrize("body", ["", "echo '{}'", """echo '{"additionalContext": ""}'"""])
async def test_session_start_without_text_adds_nothing(body: str, script: Scripts) -> None:
    service, _ = await compact_with(Hooks(session_start=script(body)))
    assert await visible_names(service) == ["They", "u5", "a5", "u6", "a6"]


async def test_veto_after_the_compaction_is_skipped(script: Scripts) -> None:
    events, no = EventRecorder(), "echo 'too late' >&2; exit 2"
    service, result = await compact_with(Hooks(session_start=script(no), after=script(no), listen=events))
    assert result.outcome is Outcome.COMPACTED
    assert len(result.remarks) == 2 and all("it exited with 2: too late" in remark for remark in result.remarks)
    assert events.names == ["Started", "Completed", "Boundary"]
    assert await visible_names(service) == ["They", "u5", "a5", "u6", "a6"]


@pytest.mark.parametrize("line", ["", "  ", None, 7])
def test_command_must_be_a_non_empty_line(line: Any) -> None:
    with pytest.raises(InvalidInput, match="A command is a line for the shell"):
        CommandHook(line)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), "60", None])
def test_command_timeout_must_be_positive(timeout: Any) -> None:
    with pytest.raises(InvalidInput, match="timeout must be a number of seconds above 0"):
        CommandHook("true", timeout)
