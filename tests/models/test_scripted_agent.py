"""ScriptedAgentModel, from code or from a script file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.errors import InvalidInput
from holdfast.messages import ToolCall
from holdfast.models import ScriptedAgentModel, resolve_chat_model, resolve_model
from holdfast.models.calls import Failure, ModelCall, Reply, ReplyDelta, StepCall, StepReply
from holdfast.tokens import Usage
from judge import judge

CALL = StepCall([{"role": "user", "content": "Go on."}], "Be brief.")
LOOK = ToolCall("", "look", {"at": "the tide"})


def step(model: Any, call: StepCall = CALL) -> tuple[Any, list[ReplyDelta]]:
    deltas: list[ReplyDelta] = []
    return anyio.run(model.step, call, deltas.append), deltas


def ask(model: Any) -> Any:
    return anyio.run(model, ModelCall("Summarize."), lambda _: None)


def test_scripted_agent_steps_in_order_and_records_calls() -> None:
    failure = Failure("overflow", "too long")
    model = ScriptedAgentModel(["one", [LOOK, LOOK], failure, LOOK, lambda call: call.system])
    replies = [step(model)[0] for _ in range(5)]
    assert [getattr(reply, "text", None) for reply in replies] == ["one", "", None, "", "Be brief."]
    assert [getattr(reply, "finish", None) for reply in replies] == ["stop", "tool_call", None, "tool_call", "stop"]
    assert replies[2] is failure and model.steps == [CALL] * 5
    ids = [call.id for reply in (replies[1], replies[3]) for call in reply.calls]
    assert len(set(ids)) == 3


def test_scripted_agent_reply_is_valid_for_its_format() -> None:
    model = ScriptedAgentModel([StepReply((), "I look.", (LOOK, LOOK))])
    reply, deltas = step(model)
    assert judge([*CALL.messages, *reply.messages], model.format) == []
    assert "".join(delta.text for delta in deltas if delta.kind == "text") == "I look."
    assert [delta.text for delta in deltas if delta.kind == "call"] == ["look", "look"]
    assert [call.arguments for call in reply.calls] == [{"at": "the tide"}] * 2


def test_scripted_agent_reply_with_messages_is_unchanged() -> None:
    own = StepReply(({"role": "assistant", "content": "mine"},), "mine", usage=Usage(5, 1))
    assert step(ScriptedAgentModel(own))[0] is own


def test_scripted_agent_call_can_be_cut_off() -> None:
    reply, _ = step(ScriptedAgentModel(StepReply((), "", (ToolCall("", "look", '{"at": "the'),), "length")))
    assert (reply.finish, reply.calls[0].arguments) == ("length", '{"at": "the')


def test_scripted_agent_exhausted_fails_or_repeats() -> None:
    model = ScriptedAgentModel(["one"])
    assert [step(model)[0] for _ in range(2)][1] == Failure("request", "The script has 1 steps; this was step 2.")
    again = ScriptedAgentModel(["one", LOOK], repeat=True)
    assert [step(again)[0].finish for _ in range(3)] == ["stop", "tool_call", "tool_call"]
    assert step(ScriptedAgentModel([], repeat=True))[0].kind == "request"


def test_scripted_agent_summarizes_with_its_answers() -> None:
    assert ask(ScriptedAgentModel("one")).kind == "no_model"
    model = ScriptedAgentModel("one", answers=["first", "then"])
    assert [ask(model).text for _ in range(3)] == ["first", "then", "then"]
    assert len(model.calls) == 3 and model.steps == []
    assert resolve_model(model) is model and resolve_chat_model(model) is model


def test_scripted_agent_can_be_cancelled_between_pieces() -> None:
    deltas: list[str] = []

    async def stop() -> None:
        model = ScriptedAgentModel("abcdefgh", delay=0.001)
        with anyio.CancelScope() as scope:
            await model.step(CALL, lambda delta: (deltas.append(delta.text), scope.cancel())[0])

    anyio.run(stop)
    assert deltas == ["ab"]


def write_script(tmp_path: Path, script: Any) -> str:
    path = tmp_path / "demo.json"
    path.write_text(script if isinstance(script, str) else json.dumps(script), encoding="utf-8")
    return f"script:{path}"


def test_script_file_with_steps(tmp_path: Path) -> None:
    calls = [{"name": "look", "arguments": {"at": "the tide"}}, {"name": "wait"}]
    script = [
        {"text": "I look.", "calls": calls},
        {"text": "Half", "finish": "length", "usage": {"input": 9}},
        "All well.",
    ]
    model = resolve_chat_model(write_script(tmp_path, script))
    first, cut, last, over = (step(model)[0] for _ in range(4))
    assert [(call.name, call.arguments) for call in first.calls] == [("look", {"at": "the tide"}), ("wait", {})]
    assert (cut.finish, cut.usage, last.text) == ("length", Usage(9), "All well.")
    assert over == Failure("request", "The script has 3 steps; this was step 4.")
    assert model.name == "script:demo.json"


def test_script_file_with_options(tmp_path: Path) -> None:
    script = {"steps": ["On and on."], "summary": "It went on.", "repeat": True, "delay": 0.0}
    model: Any = resolve_chat_model(write_script(tmp_path, script))
    assert [step(model)[0].text for _ in range(3)] == ["On and on."] * 3
    assert ask(model) == ask(resolve_model(write_script(tmp_path, script))) == Reply("It went on.", model="scripted")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("{not json", "is invalid"),
        ([{"txt": "x"}], r"unknown field `txt` - at `\$\.steps\[0\]`"),
        ([{"calls": [{"arguments": {}}]}], r"missing required field `name`"),
        ([{"text": "x", "finish": "maybe"}], "finish"),
        ([7], r"\$\.steps\[0\]"),
        ([], "at least one step"),
        ({"summary": "x"}, "missing required field `steps`"),
        ({"steps": ["x"], "delay": -1}, "a delay of 0 s or more"),
        ("7", "is invalid"),
    ],
)
def test_script_file_invalid_names_the_position(tmp_path: Path, script: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        resolve_chat_model(write_script(tmp_path, script))
    assert "\n" not in str(caught.value)


def test_script_file_missing_or_unreadable(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.json", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read"):
            resolve_chat_model(f"script:{path}")
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="it is not text"):
        resolve_chat_model(f"script:{tmp_path / 'picture'}")
