"""Every request of the protocol, with the chat behind it in this process (P9, P10, P11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from rpc_visits import Visit, visiting

from holdfast.calls import Failure, StepCall, StepReply
from holdfast.messages import ToolCall
from holdfast.models import ScriptedAgentModel
from holdfast.presets import preset_named

pytestmark = pytest.mark.anyio
WRITE = ToolCall("", "write_file", {"path": "berths.txt", "content": "N3: free\n"})
LONG = "The tide tables of Osterhaven, berth by berth. " * 400
"""About 4,000 tokens."""


def slow(*pieces: str) -> ScriptedAgentModel:
    return ScriptedAgentModel(list(pieces), repeat=True, delay=0.02)


async def talked(visit: Visit, *texts: str) -> None:
    for text in texts:
        assert (await visit.done(type="prompt", text=text))["status"] == "done"


async def test_a_prompt_is_answered_when_the_agent_is_at_rest(tmp_path: Path) -> None:
    (tmp_path / "tides.txt").write_text("low 3\n")
    async with visiting(tmp_path, [ToolCall("", "read_file", {"path": "tides.txt"}), "It is low at 3."]) as visit:
        data = await visit.done(type="prompt", text="When is low water?")
    assert data == {
        "session": visit.chat.record.id,
        "status": "done",
        "why": "",
        "steps": 2,
        "text": "It is low at 3.",
    }
    kinds = visit.kinds()
    assert [kind for kind in kinds if kind not in ("gauge", "delta")] == [
        "run_started",
        "reply",
        "tool_started",
        "tool_finished",
        "reply",
        "run_finished",
        "response",
    ]


async def test_prompts_sent_at_once_are_answered_in_order(tmp_path: Path) -> None:
    async with visiting(tmp_path, ["one", "two", "three"]) as visit:
        await visit.ask(*({"id": number, "type": "prompt", "text": f"say {number}"} for number in (1, 2, 3)))
        assert (await visit.answer(3))["data"]["text"] == "three"
    answered = [(record["id"], record["data"]["text"]) for record in visit.records if record["type"] == "response"]
    assert answered == [(1, "one"), (2, "two"), (3, "three")]


async def test_a_run_that_fails_is_a_response_that_says_so(tmp_path: Path) -> None:
    async with visiting(tmp_path, [Failure("auth", "the key is wrong")]) as visit:
        data = await visit.done(type="prompt", text="hello")
    assert (data["status"], data["why"]) == ("failed", "auth: the key is wrong")


async def test_abort_acts_at_once_and_keeps_what_was_said(tmp_path: Path) -> None:
    async with visiting(tmp_path, slow("a long story of the harbor")) as visit:
        await visit.ask({"id": "p", "type": "prompt", "text": "tell me"})
        await visit.event("delta")
        stopped = await visit.done(type="abort")
        assert stopped == {"activity": "running", "dropped": 0}
        assert (await visit.answer("p"))["data"]["status"] == "aborted"
        said = (await visit.done(type="get_messages"))["messages"]
        assert said[1]["role"] == "assistant" and "a long story of the harbor".startswith(said[1]["content"])


async def test_after_an_abort_nothing_begins_that_was_asked_before_it(tmp_path: Path) -> None:
    """All in one write: the first prompt may not have begun, the second waits."""
    model = slow("never")
    async with visiting(tmp_path, model) as visit:
        await visit.ask(
            {"id": 1, "type": "prompt", "text": "one"},
            {"id": 2, "type": "prompt", "text": "two"},
            {"id": 3, "type": "abort"},
            {"id": 4, "type": "prompt", "text": "three"},
        )
        assert (await visit.answer(3))["data"]["dropped"] == 1
        assert [(await visit.answer(id))["data"]["status"] for id in (1, 2, 4)] == ["aborted", "aborted", "done"]
        begun = [record["prompt"] for record in visit.records if record["type"] == "run_started"]
        assert "two" not in begun and begun[-1] == "three"
    assert model.steps[-1].messages[-1]["content"] == "three" and len(model.steps) <= 2


async def test_steering_is_heard_before_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "tides.txt").write_text("low 3\n")

    async with visiting(tmp_path, ScriptedAgentModel([], repeat=True)) as visit:
        assert "send a prompt" in await visit.refused(type="steer", text="in feet")
    heard = ScriptedAgentModel(
        [ToolCall("", "read_file", {"path": "tides.txt"}), lambda call: call.messages[-1]["content"]], delay=0.02
    )
    async with visiting(tmp_path, heard) as visit:
        await visit.ask({"id": "p", "type": "prompt", "text": "When is low water?"})
        await visit.event("run_started")
        assert await visit.done(type="steer", text="in feet, please") == {}
        assert (await visit.answer("p"))["data"]["text"] == "in feet, please"


async def test_changes_wait_for_the_clients_approval(tmp_path: Path) -> None:
    async with visiting(tmp_path, [WRITE, WRITE, "refused", WRITE, WRITE, "written"]) as visit:
        await visit.ask({"id": "no", "type": "prompt", "text": "write it down"})
        for permission in ("no", "no"):
            asked = await visit.event("approval_request")
            assert (asked["tool"], asked["arguments"]["path"]) == ("write_file", "berths.txt")
            assert not (tmp_path / "berths.txt").exists()
            assert await visit.done(type="approve", request=asked["id"], permission=permission) == {}
        assert (await visit.answer("no"))["data"]["text"] == "refused"
        assert "answered, or stopped" in await visit.refused(type="approve", request=asked["id"], permission="yes")

        await visit.ask({"id": "always", "type": "prompt", "text": "do write it down"})
        asked = await visit.event("approval_request")
        await visit.done(type="approve", request=asked["id"], permission="always")
        assert (await visit.answer("always"))["data"]["text"] == "written"
        assert (tmp_path / "berths.txt").read_text() == "N3: free\n"
    assert visit.kinds().count("approval_request") == 3


async def test_an_approval_is_taken_back_by_an_abort(tmp_path: Path) -> None:
    async with visiting(tmp_path, [WRITE]) as visit:
        await visit.ask({"id": "p", "type": "prompt", "text": "write it down"})
        asked = await visit.event("approval_request")
        await visit.done(type="abort")
        assert (await visit.answer("p"))["data"]["status"] == "aborted"
        assert "No approval" in await visit.refused(type="approve", request=asked["id"], permission="yes")
    assert not (tmp_path / "berths.txt").exists()


async def test_with_yes_nobody_is_asked(tmp_path: Path) -> None:
    async with visiting(tmp_path, [WRITE, "written"], yes=True) as visit:
        await talked(visit, "write it down")
    assert "approval_request" not in visit.kinds() and (tmp_path / "berths.txt").exists()


async def test_a_compaction_is_told_and_answered_when_it_is_done(tmp_path: Path) -> None:
    model = ScriptedAgentModel([LONG, LONG, "fine"], answers="They read the tide tables of Osterhaven.")
    async with visiting(tmp_path, model, window=20_000) as visit:
        await talked(visit, "Read the tables.", "Read them again.", "And now?")
        before = (await visit.done(type="get_state"))["tokens"]
        data = await visit.done(type="compact", instructions="mind the berths")
        assert data["outcome"] == "compacted" and data["tokens_after"] < data["tokens_before"] == before
        started = await visit.event("compaction_started", origin="manual")
        assert started["instructions"] == "mind the berths"
        completed = await visit.event("compaction_completed")
        assert completed["tokens_after"] == data["tokens_after"]
        assert "less accurate" in (await visit.event("compaction_boundary"))["notice"]  # P15
        state = await visit.done(type="get_state")
        assert state["round"] == 1 and state["known"] == "unknown"
        assert await visit.done(type="undo") == {"checkpoint": None}
        assert (await visit.done(type="get_state"))["tokens"] == before


async def test_a_compaction_that_fails_is_an_error_record(tmp_path: Path) -> None:
    """P9: pi leaves it to the person; nothing has changed."""
    model = ScriptedAgentModel([LONG, LONG, "fine"], answers=Failure("auth", "the key is wrong"))
    async with visiting(tmp_path, model, preset=preset_named("pi", 1_000, 1_000), window=20_000) as visit:
        await talked(visit, "Read the tables.", "Read them again.", "And now?")
        messages = await visit.done(type="get_messages")
        error = await visit.refused(type="compact")
        assert "summary_failed" in error and "the key is wrong" in error and "nothing was changed" in error
        assert (await visit.event("compaction_failed"))["outcome"] == "summary_failed"
        assert await visit.done(type="get_messages") == messages
    assert visit.kinds().count("error") == 1


async def test_an_automatic_compaction_that_fails_is_an_error_record_too(tmp_path: Path) -> None:
    model = ScriptedAgentModel([LONG, "fine"], answers=Failure("auth", "the key is wrong"))
    async with visiting(tmp_path, model, preset=preset_named("pi", 1_000, 1_000), window=5_500) as visit:
        await talked(visit, "Read the tables.", "And now?")
    errors = [record for record in visit.records if record["type"] == "error"]
    assert errors and all("id" not in error and "summary_failed" in error["error"] for error in errors)


async def test_abort_stops_a_compaction_and_the_prompts_behind_it(tmp_path: Path) -> None:
    """P8: the session is as it was."""
    begun, never = anyio.Event(), anyio.Event()

    class Stalling(ScriptedAgentModel):
        async def __call__(self, call: Any, on_delta: Any) -> Any:
            begun.set()
            await never.wait()

    async with visiting(tmp_path, Stalling([LONG, LONG, "fine"]), window=20_000) as visit:
        await talked(visit, "Read the tables.", "Read them again.", "And now?")
        messages = await visit.done(type="get_messages")
        await visit.ask({"id": "c", "type": "compact"})
        await begun.wait()
        await visit.ask({"id": "p", "type": "prompt", "text": "hello?"})
        assert (await visit.event("queued"))["text"] == "hello?"  # P14
        assert "already" in await visit.refused(type="compact")
        assert (await visit.done(type="abort"))["activity"] == "compacting"
        assert (await visit.answer("c"))["data"]["outcome"] == "aborted"
        assert (await visit.answer("p"))["data"]["status"] == "aborted"
        assert (await visit.done(type="get_messages"))["messages"][: len(messages["messages"])] == messages["messages"]
    assert visit.kinds().count("error") == 1, "only the second compaction was refused"


async def test_an_abort_right_behind_a_compaction_finds_it(tmp_path: Path) -> None:
    async with visiting(tmp_path, ScriptedAgentModel([LONG, LONG, "fine"], answers="short"), window=20_000) as visit:
        await talked(visit, "Read the tables.", "Read them again.", "And now?")
        await visit.ask({"id": "c", "type": "compact"}, {"id": "a", "type": "abort"})
        assert (await visit.answer("c"))["data"]["outcome"] == "aborted"


async def test_a_compaction_in_the_middle_of_a_prompt_lets_it_go_on(tmp_path: Path) -> None:
    """P14: the agent is stopped, the session compacted, the work taken up; the prompt has one answer, at its end."""
    model = ScriptedAgentModel([LONG, LONG, "a long story of the harbor", "the end"], answers="short", delay=0.02)
    async with visiting(tmp_path, model, window=20_000) as visit:
        await talked(visit, "Read the tables.", "Read them again.")
        await visit.ask({"id": "p", "type": "prompt", "text": "tell me"})
        await visit.event("run_started", prompt="tell me")
        await visit.event("delta")
        data = await visit.done(type="compact")
        assert (data["outcome"], data["continued"]) == ("compacted", True)
        await visit.event("run_started", prompt=None)
        assert (await visit.answer("p"))["data"] | {"steps": 1} == {
            "session": visit.chat.record.id,
            "status": "done",
            "why": "",
            "steps": 1,
            "text": "the end",
        }
    answers = [record["id"] for record in visit.records if record["type"] == "response"]
    assert answers.count("p") == 1


async def test_automatic_compaction_is_switched_off_and_on(tmp_path: Path) -> None:
    model = ScriptedAgentModel([LONG, LONG, "fine", "fine"], answers="short")
    async with visiting(tmp_path, model, window=7_000) as visit:
        assert await visit.done(type="set_auto_compaction", enabled=False) == {"enabled": False}
        await talked(visit, "Read the tables.", "Read them again.")
        assert "compaction_started" not in visit.kinds()
        assert not (await visit.done(type="get_state"))["auto"]
        await visit.done(type="set_auto_compaction", enabled=True)
        await talked(visit, "And now?")
        assert (await visit.event("compaction_started"))["origin"] == "auto"


async def test_branches_from_before_and_after_a_compaction(tmp_path: Path) -> None:
    """P10: the source is untouched, and a branch from before a compaction has the uncompacted context again."""
    model = ScriptedAgentModel([LONG, LONG, "fine"], answers="They read the tide tables.", repeat=True)
    async with visiting(tmp_path, model, window=20_000) as visit:
        await talked(visit, "Read the tables.", "Read them again.", "And now?")
        source = visit.chat.record.id
        whole = (await visit.done(type="get_messages", whole=True))["messages"]
        assert [line["role"] for line in whole] == ["user", "assistant"] * 3
        await visit.done(type="compact")
        gone = (await visit.done(type="get_messages", whole=True))["messages"]
        assert [line["event"] for line in gone] == [line["event"] for line in whole]
        assert gone[0]["archived"] and not gone[-1]["archived"]
        compacted = await visit.done(type="get_messages")

        second = gone[2]
        branch = await visit.done(type="branch", at=second["number"])
        assert branch == {"session": visit.chat.record.id, "parent": source} and branch["session"] != source
        assert (await visit.event("session", how="forked"))["session"] == branch["session"]
        context = (await visit.done(type="get_messages"))["messages"]
        assert [message["content"] for message in context] == ["Read the tables.", LONG, "Read them again."]
        assert (await visit.done(type="go_on"))["status"] == "done"

        assert await visit.done(type="switch_session", session=source) == {"session": source, "parent": None}
        assert await visit.done(type="get_messages") == compacted
        later = await visit.done(type="branch", at=gone[4]["event"])
        fork = await visit.done(type="fork")
        assert (later["parent"], fork["parent"]) == (source, later["session"])
        assert (await visit.done(type="fork", at=f"#{gone[1]['number']}"))["session"] == visit.chat.record.id
        listed = (await visit.done(type="list_sessions"))["sessions"]
        assert {one["session"] for one in listed} >= {source, branch["session"], fork["session"]}
        assert len((await visit.done(type="list_sessions", limit=2))["sessions"]) == 2
        new = await visit.done(type="new_session")
        assert new["parent"] is None and (await visit.done(type="get_messages"))["messages"] == []


async def test_what_moves_is_refused_while_the_agent_works(tmp_path: Path) -> None:
    async with visiting(tmp_path, slow("a long story of the harbor")) as visit:
        moves: list[dict[str, Any]] = [
            {"type": "branch", "at": 1},
            {"type": "fork"},
            {"type": "undo"},
            {"type": "new_session"},
            {"type": "switch_session", "session": visit.chat.record.id},
        ]
        await visit.ask(
            {"id": "p", "type": "prompt", "text": "tell me"}, *(move | {"id": move["type"]} for move in moves)
        )
        for move in moves:
            assert "working" in (await visit.answer(move["type"]))["error"]
        assert (await visit.answer("p"))["data"]["status"] == "done"


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"type": "branch", "at": 2}, "nothing that the user said"),
        ({"type": "branch", "at": "1-2"}, "more than one event"),
        ({"type": "branch", "at": 99}, "#1 to #2"),
        ({"type": "fork", "at": "nowhere"}, "no id begins so"),
        ({"type": "undo"}, "no compaction to undo"),
        ({"type": "switch_session", "session": "nowhere"}, "no session 'nowhere'"),
        ({"type": "approve", "request": "x", "permission": "yes"}, "No approval 'x'"),
        ({"type": "prompt", "text": " \n"}, "empty"),
        ({"type": "steer", "text": ""}, "empty"),
        ({"type": "list_sessions", "limit": 0}, "at least 1"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
async def test_what_cannot_be_done_is_an_error_that_says_why(
    tmp_path: Path, request_: dict[str, Any], says: str
) -> None:
    async with visiting(tmp_path, "hello") as visit:
        await talked(visit, "hello")
        assert says in await visit.refused(**request_)
        assert (await visit.done(type="get_state"))["activity"] == "idle"


async def test_what_breaks_behind_a_request_is_an_error_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with visiting(tmp_path, "hello") as visit:

        async def broken(*_: object) -> None:
            raise OSError("the disk is full")

        monkeypatch.setattr(visit.chat, "state", broken)
        assert "the disk is full" in await visit.refused(type="get_state")
        assert (await visit.done(type="prompt", text="hello"))["text"] == "hello"


async def test_the_end_of_the_input_stops_what_runs_and_answers_it(tmp_path: Path) -> None:
    def once(call: StepCall) -> StepReply:
        return StepReply((), "a long story of the harbor")

    async with visiting(tmp_path, ScriptedAgentModel(once, delay=0.02)) as visit:
        await visit.ask({"id": 1, "type": "prompt", "text": "tell me"}, {"id": 2, "type": "prompt", "text": "more"})
        await visit.event("delta")
    assert [record["data"]["status"] for record in visit.records if record["type"] == "response"] == ["aborted"] * 2
