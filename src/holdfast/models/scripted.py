"""Scripted models, for tests and demonstrations: fixed answers, an agent's steps, or a file of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from ..errors import InvalidInput
from ..messages import Json, Message, Part, Text, ToolCall, encode_all
from ..messages.json_text import decodable
from ..tokens import Usage
from .calls import Answer, Failure, Finish, ModelCall, Reply, ReplyDelta, StepCall, StepReply
from .provider import ReplyAccumulator

AnswerValue = Reply | Failure | str
ScriptedAnswer = AnswerValue | Callable[[ModelCall], AnswerValue]


class ScriptedModel:
    """Returns its answers in order and records its calls.

    An answer is a reply, a failure, a text, or a function from the call to one of these. After the last answer it
    is repeated (`repeat=True`), or the call fails.
    """

    def __init__(
        self, answers: ScriptedAnswer | Sequence[ScriptedAnswer], *, repeat: bool = False, pieces: int = 4
    ) -> None:
        single = isinstance(answers, str | Reply | Failure) or callable(answers)
        self.answers: list[ScriptedAnswer] = [answers] if single else list(answers)  # type: ignore[list-item, arg-type]
        self.calls: list[ModelCall] = []
        self._repeat = repeat
        self._pieces = max(pieces, 1)

    @property
    def name(self) -> str:
        return "scripted"

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        place = len(self.calls)
        self.calls.append(call)
        await checkpoint()
        if place >= len(self.answers) and not (self._repeat and self.answers):
            return Failure("request", f"The script has {len(self.answers)} answers; this was call {place + 1}.")
        entry = self.answers[min(place, len(self.answers) - 1)]
        answer = entry(call) if callable(entry) else entry
        if isinstance(answer, Failure):
            return answer
        reply = Reply(answer, model=self.name) if isinstance(answer, str) else answer
        step = max(-(-len(reply.text) // self._pieces), 1)
        for start in range(0, len(reply.text), step):
            on_delta(reply.text[start : start + step])
            await checkpoint()
        return reply


StepValue = StepReply | Failure | ToolCall | str | Sequence[ToolCall]
ScriptedStep = StepValue | Callable[[StepCall], StepValue]
SCRIPT_FORMAT = "openai-chat"
NO_SUMMARY = Failure("no_model", "The script has no summary.")


class ScriptedAgentModel:
    """Takes its steps in order and records its calls.

    A step is a text, tool calls, a whole reply, a failure, or a function from the call to one of these; messages are
    built for a reply without any. After the last step it is repeated (`repeat=True`), or the step fails. As a
    summarizer it returns `answers`, repeating the last; without them it fails with `no_model`. `delay` is the seconds
    before each piece of a reply.
    """

    format = SCRIPT_FORMAT

    def __init__(
        self,
        steps: ScriptedStep | Sequence[ScriptedStep],
        *,
        answers: ScriptedAnswer | Sequence[ScriptedAnswer] = (),
        repeat: bool = False,
        pieces: int = 4,
        delay: float = 0.0,
        name: str = "scripted",
    ) -> None:
        single = isinstance(steps, str | StepReply | Failure | ToolCall) or callable(steps)
        self.script: list[ScriptedStep] = [steps] if single else list(steps)  # type: ignore[list-item, arg-type]
        self.steps: list[StepCall] = []
        self.name = name
        self._summaries = ScriptedModel(answers, repeat=True, pieces=pieces)
        self._repeat = repeat
        self._pieces = max(pieces, 1)
        self._delay = delay

    @property
    def calls(self) -> list[ModelCall]:
        """The calls other than steps."""
        return self._summaries.calls

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        return await self._summaries(call, on_delta) if self._summaries.answers else NO_SUMMARY

    async def step(self, call: StepCall, on_delta: Callable[[ReplyDelta], None]) -> StepReply | Failure:
        place = len(self.steps)
        self.steps.append(call)
        await anyio.sleep(self._delay)
        if place >= len(self.script) and not (self._repeat and self.script):
            return Failure("request", f"The script has {len(self.script)} steps; this was step {place + 1}.")
        step = self.script[min(place, len(self.script) - 1)]
        answer = step(call) if callable(step) else step
        reply = answer if isinstance(answer, Failure) else _reply(answer, place, self.name)
        if isinstance(reply, Failure):
            return reply
        size = max(-(-len(reply.text) // self._pieces), 1)
        deltas = [ReplyDelta("text", reply.text[start : start + size]) for start in range(0, len(reply.text), size)]
        for delta in [*deltas, *(ReplyDelta("call", call.name) for call in reply.calls)]:
            on_delta(delta)
            await anyio.sleep(self._delay)
        return reply


def _reply(answer: StepReply | ToolCall | str | Sequence[ToolCall], place: int, name: str) -> StepReply | Failure:
    if isinstance(answer, str):
        answer = StepReply((), answer)
    elif not isinstance(answer, StepReply):
        answer = StepReply((), calls=(answer,) if isinstance(answer, ToolCall) else tuple(answer))
    if answer.messages:
        return answer
    ids = [call.id or f"call_{place}_{index}" for index, call in enumerate(answer.calls)]
    calls = [ToolCall(id, call.name, call.arguments) for id, call in zip(ids, answer.calls, strict=True)]
    texts = [Text(answer.text)] if answer.text else []
    accumulator = ReplyAccumulator()
    accumulator.texts, accumulator.finish = [answer.text], answer.finish
    accumulator.usage, accumulator.model = answer.usage, answer.model or name
    parts: tuple[Part, ...] = (*texts, *calls)
    accumulator.messages = encode_all([Message("assistant", parts)], SCRIPT_FORMAT) if parts else []
    return accumulator.step_reply(SCRIPT_FORMAT)


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: Json | str = {}
    id: str = ""


class _Step(msgspec.Struct, forbid_unknown_fields=True):
    text: str = ""
    calls: tuple[_Call, ...] = ()
    finish: Finish = "stop"
    usage: Usage | None = None


@decodable
class _Script(msgspec.Struct, forbid_unknown_fields=True):
    steps: list[_Step | str]
    summary: str | list[str] = []
    repeat: bool = False
    delay: float = 0.0


def load_script(path: str) -> ScriptedAgentModel:
    """Loads an agent's script from a JSON file, as named by `script:demo.json`.

        [{"text": "I look at the tide table."},
         {"calls": [{"name": "read_file", "arguments": {"path": "tides.csv"}}]},
         "All is well."]

    or, with options: {"steps": […], "summary": "What a summary says.", "repeat": true, "delay": 0.05}. After the last
    step the next one fails, unless `"repeat": true` is set.
    """
    file = Path(path).expanduser()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InvalidInput(f"The script {path!r} cannot be read ({why}): name a JSON file with steps.") from None
    script = _parse_script(text, path)
    return ScriptedAgentModel(
        [_step_reply(step) for step in script.steps],
        answers=script.summary,
        repeat=script.repeat,
        delay=script.delay,
        name=f"script:{file.name}",
    )


def _parse_script(text: str, path: str) -> _Script:
    try:
        given: Any = msgspec.json.decode(text)
        script = msgspec.convert({"steps": given} if isinstance(given, list) else given, _Script)
    except msgspec.MsgspecError as error:
        raise InvalidInput(
            f"The script {path!r} is invalid ({error}): see holdfast.models.scripted.load_script."
        ) from None
    if not script.steps or script.delay < 0:
        raise InvalidInput(f"The script {path!r} needs at least one step, and a delay of 0 s or more.")
    return script


def _step_reply(step: _Step | str) -> StepReply:
    if isinstance(step, str):
        return StepReply((), step)
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in step.calls)
    return StepReply((), step.text, calls, step.finish, step.usage)
