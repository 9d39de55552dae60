"""Every request of the protocol, on a connection in this process (P9, P10, P11)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from rpc_harness import RpcClient, rpc_client

from holdfast.compaction.presets import preset
from holdfast.messages import ToolCall
from holdfast.models import ScriptedAgentModel
from holdfast.models.calls import Failure, StepCall, StepReply

pytestmark = pytest.mark.anyio
WRITE = ToolCall("", "write_file", {"path": "berths.txt", "content": "N3: free\n"})
LONG = "The tide tables of Osterhaven, berth by berth. " * 400
"""About 4,000 tokens."""


def slow(*pieces: str) -> ScriptedAgentModel:
    return ScriptedAgentModel(list(pieces), repeat=True, pieces=30, delay=0.02)


async def send_prompts(client: RpcClient, *texts: str) -> None:
    for text in texts:
        assert (await client.request(type="prompt", text=text))["status"] == "done"


async def test_prompt_is_answered_when_agent_is_idle(tmp_path: Path) -> None:
    (tmp_path / "tides.txt").write_text("low 3\n")
    async with rpc_client(tmp_path, [ToolCall("", "read_file", {"path": "tides.txt"}), "It is low at 3."]) as client:
        data = await client.request(type="prompt", text="When is low water?")
    assert data == {
        "session": client.chat.record.id,
        "status": "done",
        "why": "",
        "steps": 2,
        "text": "It is low at 3.",
    }
    kinds = client.record_types()
    assert [kind for kind in kinds if kind not in ("gauge", "delta")] == [
        "run_started",
        "reply",
        "tool_started",
        "tool_finished",
        "reply",
        "run_finished",
        "response",
    ]


async def test_prompts_sent_together_are_answered_in_order(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, ["one", "two", "three"]) as client:
        await client.send(*({"id": number, "type": "prompt", "text": f"say {number}"} for number in (1, 2, 3)))
        assert (await client.wait_for_response(3))["data"]["text"] == "three"
    answered = [(record["id"], record["data"]["text"]) for record in client.records if record["type"] == "response"]
    assert answered == [(1, "one"), (2, "two"), (3, "three")]


async def test_prompt_with_failed_run_gets_response_with_status_failed(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, [Failure("auth", "the key is wrong")]) as client:
        data = await client.request(type="prompt", text="hello")
    assert (data["status"], data["why"]) == (
        "failed",
        "the provider refused the key: the key is wrong",
    )


async def test_abort_acts_at_once_and_keeps_partial_reply(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, slow("a long story of the harbor")) as client:
        await client.send({"id": "p", "type": "prompt", "text": "tell me"})
        await client.wait_for_event("delta")
        stopped = await client.request(type="abort")
        assert stopped == {"activity": "running", "dropped": 0}
        data = (await client.wait_for_response("p"))["data"]
        messages = (await client.request(type="get_messages"))["messages"]
        partial, _, mark = messages[1]["content"].partition("\n\n")
        assert messages[1]["role"] == "assistant" and "a long story of the harbor".startswith(partial)
        assert (data["status"], data["text"].strip()) == ("aborted", partial) and partial
        assert mark == "[Interrupted by the user.]"


async def test_abort_drops_earlier_prompts_that_have_not_started(tmp_path: Path) -> None:
    """All in one write: the first prompt may not have started, the second is pending."""
    model = slow("never")
    async with rpc_client(tmp_path, model) as client:
        await client.send(
            {"id": 1, "type": "prompt", "text": "one"},
            {"id": 2, "type": "prompt", "text": "two"},
            {"id": 3, "type": "abort"},
            {"id": 4, "type": "prompt", "text": "three"},
        )
        assert (await client.wait_for_response(3))["data"]["dropped"] == 1
        assert [(await client.wait_for_response(id))["data"]["status"] for id in (1, 2, 4)] == [
            "aborted",
            "aborted",
            "done",
        ]
        begun = [record["prompt"] for record in client.records if record["type"] == "run_started"]
        assert "two" not in begun and begun[-1] == "three"
    assert model.steps[-1].messages[-1]["content"] == "three" and len(model.steps) <= 2


async def test_steer_is_delivered_before_next_step(tmp_path: Path) -> None:
    (tmp_path / "tides.txt").write_text("low 3\n")

    async with rpc_client(tmp_path, ScriptedAgentModel([], repeat=True)) as client:
        assert "send a prompt" in await client.request_error(type="steer", text="in feet")
    steered = ScriptedAgentModel(
        [ToolCall("", "read_file", {"path": "tides.txt"}), lambda call: call.messages[-1]["content"]], delay=0.02
    )
    async with rpc_client(tmp_path, steered) as client:
        await client.send({"id": "p", "type": "prompt", "text": "When is low water?"})
        await client.wait_for_event("run_started")
        assert await client.request(type="steer", text="in feet, please") == {}
        assert (await client.wait_for_response("p"))["data"]["text"] == "in feet, please"


async def test_approval_is_required_before_changes(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, [WRITE, WRITE, "refused", WRITE, WRITE, "written"]) as client:
        await client.send({"id": "no", "type": "prompt", "text": "write it down"})
        for permission in ("no", "no"):
            asked = await client.wait_for_event("approval_request")
            assert (asked["tool"], asked["arguments"]["path"]) == ("write_file", "berths.txt")
            assert asked["diff"] == "--- /dev/null\n+++ b/berths.txt\n@@ -0,0 +1 @@\n+N3: free\n"
            assert not (tmp_path / "berths.txt").exists()
            assert await client.request(type="approve", request=asked["id"], permission=permission) == {}
        assert (await client.wait_for_response("no"))["data"]["text"] == "refused"
        assert "answered, or aborted" in await client.request_error(
            type="approve", request=asked["id"], permission="yes"
        )

        await client.send({"id": "always", "type": "prompt", "text": "do write it down"})
        asked = await client.wait_for_event("approval_request")
        await client.request(type="approve", request=asked["id"], permission="always")
        assert (await client.wait_for_response("always"))["data"]["text"] == "written"
        assert (tmp_path / "berths.txt").read_text() == "N3: free\n"
    assert client.record_types().count("approval_request") == 3


async def test_refusal_takes_words_for_the_model(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, [WRITE, "refused"]) as client:
        await client.send({"id": "p", "type": "prompt", "text": "write it down"})
        asked = await client.wait_for_event("approval_request")
        answer = {"type": "approve", "request": asked["id"]}
        assert "goes with" in await client.request_error(**answer, permission="yes", message="Use chalk.")
        await client.request(**answer, permission="no", message="Use chalk.")
        finished = await client.wait_for_event("tool_finished")
        assert finished["is_error"] and finished["text"].endswith("The user's words: Use chalk.")
    assert not (tmp_path / "berths.txt").exists()


async def test_mode_can_be_changed_and_is_part_of_the_state(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, [WRITE, "refused", WRITE, "written"]) as client:
        assert await client.request(type="set_mode", mode="plan") == {"mode": "plan"}
        assert (await client.request(type="get_state"))["mode"] == "plan"
        await send_prompts(client, "write it down")
        assert "plan mode" in (await client.wait_for_event("tool_finished"))["text"]
        await client.request(type="set_mode", mode="accept-edits")
        await send_prompts(client, "do write it down")
        assert "mode" in await client.request_error(type="set_mode", mode="never")
    assert "approval_request" not in client.record_types() and (tmp_path / "berths.txt").exists()


async def test_approval_is_withdrawn_by_abort(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, [WRITE]) as client:
        await client.send({"id": "p", "type": "prompt", "text": "write it down"})
        asked = await client.wait_for_event("approval_request")
        await client.request(type="abort")
        assert (await client.wait_for_response("p"))["data"]["status"] == "aborted"
        assert "No approval" in await client.request_error(type="approve", request=asked["id"], permission="yes")
    assert not (tmp_path / "berths.txt").exists()


async def test_approval_is_not_requested_with_yes(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, [WRITE, "written"], yes=True) as client:
        await send_prompts(client, "write it down")
    assert "approval_request" not in client.record_types() and (tmp_path / "berths.txt").exists()


async def test_model_can_be_switched(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('["from the other model"]')
    async with rpc_client(tmp_path, ["from the first model"]) as client:
        data = await client.request(type="set_model", model=f"script:{tmp_path / 'other.json'}")
        assert data["model"] == "script:other.json" and data["window"] > 0
        assert (await client.request(type="prompt", text="hello"))["text"] == "from the other model"
        assert "provider" in await client.request_error(type="set_model", model="nobody:nothing")


async def test_session_can_be_exported_and_handed_off(tmp_path: Path) -> None:
    """P23: the draft is reviewed before it is sent."""
    model = ScriptedAgentModel(["The tide turns at noon.", "Told."], answers="The tide turns at noon [2].")
    async with rpc_client(tmp_path, model) as client:
        await send_prompts(client, "When does the tide turn?")
        first = (await client.request(type="get_state"))["session"]
        exported = await client.request(type="export", format="messages")
        assert exported["format"] == "messages" and "The tide turns at noon." in exported["text"]
        lossless = await client.request(type="export")
        assert first in lossless["text"].splitlines()[0] and lossless["warnings"] == []
        drafted = await client.request(type="handoff", goal="Tell the skippers.")
        assert drafted["session"] != first and "noon" in drafted["message"]
        assert (await client.request(type="get_messages"))["messages"] == []
        assert (await client.request(type="prompt", text=drafted["message"]))["text"] == "Told."
        assert "goal" in await client.request_error(type="handoff")


async def test_compact_emits_events_and_responds_when_done(tmp_path: Path) -> None:
    model = ScriptedAgentModel([LONG, LONG, "fine"], answers="They read the tide tables of Osterhaven.")
    async with rpc_client(tmp_path, model, window=20_000) as client:
        await send_prompts(client, "Read the tables.", "Read them again.", "And now?")
        before = (await client.request(type="get_state"))["tokens"]
        data = await client.request(type="compact", instructions="mind the berths")
        assert data["outcome"] == "compacted" and data["tokens_after"] < data["tokens_before"] == before
        started = await client.wait_for_event("compaction_started", origin="manual")
        assert started["instructions"] == "mind the berths"
        completed = await client.wait_for_event("compaction_completed")
        assert completed["tokens_after"] == data["tokens_after"]
        assert "less accurate" in (await client.wait_for_event("compaction_boundary"))["notice"]  # P15
        state = await client.request(type="get_state")
        assert state["round"] == 1 and state["known"] == "unknown"
        assert await client.request(type="undo") == {"checkpoint": None}
        assert (await client.request(type="get_state"))["tokens"] == before


async def test_compact_failure_is_an_error_record(tmp_path: Path) -> None:
    """P9: pi leaves it to the user; nothing has changed."""
    model = ScriptedAgentModel([LONG, LONG, "fine"], answers=Failure("auth", "the key is wrong"))
    async with rpc_client(tmp_path, model, preset=preset("pi", reserve=1_000, keep=1_000), window=20_000) as client:
        await send_prompts(client, "Read the tables.", "Read them again.", "And now?")
        messages = await client.request(type="get_messages")
        error = await client.request_error(type="compact")
        assert "summary_failed" not in error and "the key is wrong" in error and "nothing was changed" in error
        assert (await client.wait_for_event("compaction_failed"))["outcome"] == "summary_failed"
        assert await client.request(type="get_messages") == messages
    assert client.record_types().count("error") == 1


async def test_p9_every_action_offered_after_a_failed_compaction_is_a_request(tmp_path: Path) -> None:
    model = ScriptedAgentModel([LONG, LONG, "fine", "on"], answers=Failure("auth", "the key is wrong"))
    async with rpc_client(tmp_path, model, preset=preset("pi", reserve=1_000, keep=1_000), window=20_000) as client:
        await send_prompts(client, "Read the tables.", "Read them again.", "And now?")
        error = await client.request_error(type="compact")
        assert error.endswith(
            "(the provider refused the key: the key is wrong): send compact to try again, compact with without_model "
            "to do it without a model, new_session to start over, or prompt to continue unchanged."
        )
        assert "the key is wrong" in await client.request_error(type="compact")
        done = await client.request(type="compact", without_model=True)
        assert (done["outcome"], done["tokens_after"] < done["tokens_before"]) == ("compacted", True)
        assert "leave them out" in await client.request_error(type="compact", without_model=True, instructions="x")
        assert (await client.request(type="prompt", text="Go on."))["status"] == "done"
        assert (await client.request(type="new_session"))["session"] == client.chat.record.id


async def test_automatic_compaction_failure_is_an_error_record(tmp_path: Path) -> None:
    model = ScriptedAgentModel([LONG, "fine"], answers=Failure("auth", "the key is wrong"))
    async with rpc_client(tmp_path, model, preset=preset("pi", reserve=1_000, keep=1_000), window=5_500) as client:
        await send_prompts(client, "Read the tables.", "And now?")
    errors = [record for record in client.records if record["type"] == "error"]
    assert errors and all("id" not in error and "the key is wrong" in error["error"] for error in errors)


async def test_abort_stops_compaction_and_queued_prompts(tmp_path: Path) -> None:
    """P8: the session is as it was."""
    begun, never = anyio.Event(), anyio.Event()

    class Stalling(ScriptedAgentModel):
        async def __call__(self, call: Any, on_delta: Any) -> Any:
            begun.set()
            await never.wait()

    async with rpc_client(tmp_path, Stalling([LONG, LONG, "fine"]), window=20_000) as client:
        await send_prompts(client, "Read the tables.", "Read them again.", "And now?")
        messages = await client.request(type="get_messages")
        await client.send({"id": "c", "type": "compact"})
        await begun.wait()
        await client.send({"id": "p", "type": "prompt", "text": "hello?"})
        assert (await client.wait_for_event("queued"))["text"] == "hello?"  # P14
        assert "already" in await client.request_error(type="compact")
        assert (await client.request(type="abort"))["activity"] == "compacting"
        assert (await client.wait_for_response("c"))["data"]["outcome"] == "aborted"
        assert (await client.wait_for_response("p"))["data"]["status"] == "aborted"
        assert (await client.request(type="get_messages"))["messages"][: len(messages["messages"])] == messages[
            "messages"
        ]
    assert client.record_types().count("error") == 1, "only the second compaction was refused"


async def test_abort_sent_right_after_compact_stops_it(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, ScriptedAgentModel([LONG, LONG, "fine"], answers="short"), window=20_000) as client:
        await send_prompts(client, "Read the tables.", "Read them again.", "And now?")
        await client.send({"id": "c", "type": "compact"}, {"id": "a", "type": "abort"})
        assert (await client.wait_for_response("c"))["data"]["outcome"] == "aborted"


async def test_compact_during_prompt_continues_it(tmp_path: Path) -> None:
    """P14: the agent is aborted, the session compacted, the run continued; the prompt has one answer, at its end."""
    steps = [LONG, LONG, "a long story of the harbor", "the end"]
    model = ScriptedAgentModel(steps, answers="short", pieces=20, delay=0.02)
    async with rpc_client(tmp_path, model, window=20_000) as client:
        await send_prompts(client, "Read the tables.", "Read them again.")
        await client.send({"id": "p", "type": "prompt", "text": "tell me"})
        await client.wait_for_event("run_started", prompt="tell me")
        await client.wait_for_event("delta")
        data = await client.request(type="compact")
        assert (data["outcome"], data["continued"]) == ("compacted", True)
        await client.wait_for_event("run_started", prompt=None)
        assert (await client.wait_for_response("p"))["data"] | {"steps": 1} == {
            "session": client.chat.record.id,
            "status": "done",
            "why": "",
            "steps": 1,
            "text": "the end",
        }
    answers = [record["id"] for record in client.records if record["type"] == "response"]
    assert answers.count("p") == 1


async def test_set_auto_compaction_turns_it_off_and_on(tmp_path: Path) -> None:
    model = ScriptedAgentModel([LONG, LONG, "fine", "fine"], answers="short")
    async with rpc_client(tmp_path, model, window=7_000) as client:
        assert await client.request(type="set_auto_compaction", enabled=False) == {"enabled": False}
        await send_prompts(client, "Read the tables.", "Read them again.")
        assert "compaction_started" not in client.record_types()
        assert not (await client.request(type="get_state"))["auto"]
        await client.request(type="set_auto_compaction", enabled=True)
        await send_prompts(client, "And now?")
        assert (await client.wait_for_event("compaction_started"))["origin"] == "auto"


async def test_branch_before_and_after_compaction(tmp_path: Path) -> None:
    """P10: the source is untouched, and a branch from before a compaction has the uncompacted context again."""
    model = ScriptedAgentModel([LONG, LONG, "fine"], answers="They read the tide tables.", repeat=True)
    async with rpc_client(tmp_path, model, window=20_000) as client:
        await send_prompts(client, "Read the tables.", "Read them again.", "And now?")
        source = client.chat.record.id
        whole = (await client.request(type="get_messages", whole=True))["messages"]
        assert [line["role"] for line in whole] == ["user", "assistant"] * 3
        await client.request(type="compact")
        after = (await client.request(type="get_messages", whole=True))["messages"]
        assert [line["event"] for line in after] == [line["event"] for line in whole]
        assert after[0]["archived"] and not after[-1]["archived"]
        compacted = await client.request(type="get_messages")

        second = after[2]
        branch = await client.request(type="branch", at=second["number"])
        assert branch == {"session": client.chat.record.id, "parent": source} and branch["session"] != source
        assert (await client.wait_for_event("session", how="forked"))["session"] == branch["session"]
        context = (await client.request(type="get_messages"))["messages"]
        assert [message["content"] for message in context] == ["Read the tables.", LONG, "Read them again."]
        assert (await client.request(type="go_on"))["status"] == "done"

        assert await client.request(type="switch_session", session=source) == {"session": source, "parent": None}
        assert await client.request(type="get_messages") == compacted
        later = await client.request(type="branch", at=after[4]["event"])
        fork = await client.request(type="fork")
        assert (later["parent"], fork["parent"]) == (source, later["session"])
        assert (await client.request(type="fork", at=f"#{after[1]['number']}"))["session"] == client.chat.record.id
        listed = (await client.request(type="list_sessions"))["sessions"]
        assert {one["session"] for one in listed} >= {source, branch["session"], fork["session"]}
        assert len((await client.request(type="list_sessions", limit=2))["sessions"]) == 2
        new = await client.request(type="new_session")
        assert new["parent"] is None and (await client.request(type="get_messages"))["messages"] == []


async def test_session_changes_are_refused_while_agent_works(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, slow("a long story of the harbor")) as client:
        moves: list[dict[str, Any]] = [
            {"type": "branch", "at": 1},
            {"type": "fork"},
            {"type": "undo"},
            {"type": "new_session"},
            {"type": "switch_session", "session": client.chat.record.id},
        ]
        await client.send(
            {"id": "p", "type": "prompt", "text": "tell me"}, *(move | {"id": move["type"]} for move in moves)
        )
        for move in moves:
            assert "working" in (await client.wait_for_response(move["type"]))["error"]
        assert (await client.wait_for_response("p"))["data"]["status"] == "done"


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"type": "branch", "at": 2}, "is not a user message"),
        ({"type": "branch", "at": "1-2"}, "more than one event"),
        ({"type": "branch", "at": 99}, "#1 to #2"),
        ({"type": "fork", "at": "nowhere"}, "no event id starts with it"),
        ({"type": "undo"}, "no compaction to undo"),
        ({"type": "switch_session", "session": "nowhere"}, "no session 'nowhere'"),
        ({"type": "approve", "request": "x", "permission": "yes"}, "No approval 'x'"),
        ({"type": "prompt", "text": " \n"}, "empty"),
        ({"type": "steer", "text": ""}, "empty"),
        ({"type": "list_sessions", "limit": 0}, "at least 1"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
async def test_invalid_request_is_an_error_with_reason(tmp_path: Path, request_: dict[str, Any], says: str) -> None:
    async with rpc_client(tmp_path, "hello") as client:
        await send_prompts(client, "hello")
        assert says in await client.request_error(**request_)
        assert (await client.request(type="get_state"))["activity"] == "idle"


async def test_exception_in_request_is_an_error_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with rpc_client(tmp_path, "hello") as client:

        async def broken(*_: object) -> None:
            raise OSError("the disk is full")

        monkeypatch.setattr(client.chat, "state", broken)
        assert "the disk is full" in await client.request_error(type="get_state")
        assert (await client.request(type="prompt", text="hello"))["text"] == "hello"


async def test_end_of_input_aborts_running_prompts_and_answers_them(tmp_path: Path) -> None:
    def once(call: StepCall) -> StepReply:
        return StepReply((), "a long story of the harbor")

    async with rpc_client(tmp_path, ScriptedAgentModel(once, pieces=30, delay=0.02)) as client:
        await client.send({"id": 1, "type": "prompt", "text": "tell me"}, {"id": 2, "type": "prompt", "text": "more"})
        await client.wait_for_event("delta")
    assert [record["data"]["status"] for record in client.records if record["type"] == "response"] == ["aborted"] * 2


async def test_rpc_running_command_sends_its_output_before_it_ends(tmp_path: Path) -> None:
    call = ToolCall("c", "run_command", {"command": "printf one; cat gate; printf ' two'"})
    os.mkfifo(tmp_path / "gate")
    async with rpc_client(tmp_path, [call, "Done."], yes=True) as client:
        await client.send({"type": "prompt", "id": "p", "text": "Count."})
        output = await client.wait_for_event("tool_output")
        assert (output["call"], output["text"]) == ("c", "one")
        (tmp_path / "gate").write_text("")
        assert (await client.wait_for_event("tool_finished"))["text"] == "one two\n[exit code 0]"
        await client.wait_for_response("p")
