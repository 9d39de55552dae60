"""A model that plays an agent's part from a script, given in code or in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.calls import Delta, Failure, ModelCall, Reply, StepCall, StepReply
from holdfast.errors import InvalidInput
from holdfast.messages import ToolCall
from holdfast.models import ScriptedAgentModel, model_for, stepper_for
from holdfast.tokens import Usage
from judge import judge

CALL = StepCall([{"role": "user", "content": "Go on."}], "Be brief.")
LOOK = ToolCall("", "look", {"at": "the tide"})


def step(model: Any, call: StepCall = CALL) -> tuple[Any, list[Delta]]:
    heard: list[Delta] = []
    return anyio.run(model.step, call, heard.append), heard


def ask(model: Any) -> Any:
    return anyio.run(model, ModelCall("Summarize."), lambda _: None)


def test_steps_come_in_order_and_what_was_asked_is_remembered() -> None:
    failure = Failure("overflow", "too long")
    model = ScriptedAgentModel(["one", [LOOK, LOOK], failure, LOOK, lambda call: call.system])
    replies = [step(model)[0] for _ in range(5)]
    assert [getattr(reply, "text", None) for reply in replies] == ["one", "", None, "", "Be brief."]
    assert [getattr(reply, "finish", None) for reply in replies] == ["stop", "tool_call", None, "tool_call", "stop"]
    assert replies[2] is failure and model.steps == [CALL] * 5
    ids = [call.id for reply in (replies[1], replies[3]) for call in reply.calls]
    assert len(set(ids)) == 3


def test_what_it_says_can_be_sent_to_a_provider() -> None:
    model = ScriptedAgentModel([StepReply((), "I look.", (LOOK, LOOK))])
    reply, heard = step(model)
    assert judge([*CALL.messages, *reply.messages], model.format) == []
    assert "".join(delta.text for delta in heard if delta.kind == "text") == "I look."
    assert [delta.text for delta in heard if delta.kind == "call"] == ["look", "look"]
    assert [call.arguments for call in reply.calls] == [{"at": "the tide"}] * 2


def test_a_reply_with_messages_of_its_own_stays_as_it_is() -> None:
    own = StepReply(({"role": "assistant", "content": "mine"},), "mine", usage=Usage(5, 1))
    assert step(ScriptedAgentModel(own))[0] is own


def test_a_call_can_be_cut_off() -> None:
    reply, _ = step(ScriptedAgentModel(StepReply((), "", (ToolCall("", "look", '{"at": "the'),), "length")))
    assert (reply.finish, reply.calls[0].arguments) == ("length", '{"at": "the')


def test_a_script_that_ran_out_fails_or_repeats_its_end() -> None:
    model = ScriptedAgentModel(["one"])
    assert [step(model)[0] for _ in range(2)][1] == Failure("request", "The script has 1 steps; this was step 2.")
    again = ScriptedAgentModel(["one", LOOK], repeat=True)
    assert [step(again)[0].finish for _ in range(3)] == ["stop", "tool_call", "tool_call"]
    assert step(ScriptedAgentModel([], repeat=True))[0].kind == "request"


def test_it_is_its_own_summarizer_where_the_script_says_how() -> None:
    assert ask(ScriptedAgentModel("one")).kind == "no_model"
    model = ScriptedAgentModel("one", answers=["first", "then"])
    assert [ask(model).text for _ in range(3)] == ["first", "then", "then"]
    assert len(model.calls) == 3 and model.steps == []
    assert model_for(model) is model and stepper_for(model) is model


def test_pieces_take_their_time_and_it_can_be_stopped_between_them() -> None:
    heard: list[str] = []

    async def stop() -> None:
        model = ScriptedAgentModel("abcdefgh", delay=0.001)
        with anyio.CancelScope() as scope:
            await model.step(CALL, lambda delta: (heard.append(delta.text), scope.cancel())[0])

    anyio.run(stop)
    assert heard == ["ab"]


def written(tmp_path: Path, script: Any) -> str:
    path = tmp_path / "demo.json"
    path.write_text(script if isinstance(script, str) else json.dumps(script), encoding="utf-8")
    return f"script:{path}"


def test_a_file_with_steps(tmp_path: Path) -> None:
    calls = [{"name": "look", "arguments": {"at": "the tide"}}, {"name": "wait"}]
    script = [
        {"text": "I look.", "calls": calls},
        {"text": "Half", "finish": "length", "usage": {"input": 9}},
        "All well.",
    ]
    model = stepper_for(written(tmp_path, script))
    first, cut, last, over = (step(model)[0] for _ in range(4))
    assert [(call.name, call.arguments) for call in first.calls] == [("look", {"at": "the tide"}), ("wait", {})]
    assert (cut.finish, cut.usage, last.text) == ("length", Usage(9), "All well.")
    assert over == Failure("request", "The script has 3 steps; this was step 4.")
    assert model.name == "script:demo.json"


def test_a_file_that_says_more(tmp_path: Path) -> None:
    script = {"steps": ["On and on."], "summary": "It went on.", "repeat": True, "delay": 0.0}
    model: Any = stepper_for(written(tmp_path, script))
    assert [step(model)[0].text for _ in range(3)] == ["On and on."] * 3
    assert ask(model) == ask(model_for(written(tmp_path, script))) == Reply("It went on.", model="scripted")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("{not json", "is not one"),
        ([{"txt": "x"}], r"unknown field `txt` - at `\$\.steps\[0\]`"),
        ([{"calls": [{"arguments": {}}]}], r"missing required field `name`"),
        ([{"text": "x", "finish": "maybe"}], "finish"),
        ([7], r"\$\.steps\[0\]"),
        ([], "at least one step"),
        ({"summary": "x"}, "missing required field `steps`"),
        ({"steps": ["x"], "delay": -1}, "a delay of 0 s or more"),
        ("7", "is not one"),
    ],
)
def test_a_file_that_is_no_script_says_where(tmp_path: Path, script: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        stepper_for(written(tmp_path, script))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.json", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read"):
            stepper_for(f"script:{path}")
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="it is no text"):
        stepper_for(f"script:{tmp_path / 'picture'}")
