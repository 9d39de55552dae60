"""A model that plays an agent's part from a script: for tests, for a demonstration, for a look without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from ..calls import Answer, Delta, Failure, ModelCall, StepCall, StepReply
from ..messages import Message, Text, ToolCall, encode_all
from .draft import Draft
from .scripted import Script, ScriptedModel

Line = StepReply | Failure | ToolCall | str | Sequence[ToolCall]
Scene = Line | Callable[[StepCall], Line]
FORMAT = "openai-chat"
NO_SUMMARY = Failure("no_model", "The script says nothing about summaries.")


class ScriptedAgentModel:
    """Takes its steps in order and remembers what it was asked.

    A step is a text, calls of tools, a whole reply, a failure, or a function from the call to one of these; a reply
    without messages gets the one that says it. When they run out, the last one is given again (`repeat=True`), or
    the step fails. As its own summarizer it gives `answers`, the last one as often as it is asked; without them it
    is no model, and whatever asked goes on without one. `delay` is the seconds before each piece of a reply.
    """

    format = FORMAT

    def __init__(
        self,
        steps: Scene | Sequence[Scene],
        *,
        answers: Script | Sequence[Script] = (),
        repeat: bool = False,
        pieces: int = 4,
        delay: float = 0.0,
        name: str = "scripted",
    ) -> None:
        alone = isinstance(steps, str | StepReply | Failure | ToolCall) or callable(steps)
        self.scenes: list[Scene] = [steps] if alone else list(steps)  # type: ignore[list-item, arg-type]
        self.steps: list[StepCall] = []
        self.name = name
        self._summaries = ScriptedModel(answers, repeat=True, pieces=pieces)
        self._repeat = repeat
        self._pieces = max(pieces, 1)
        self._delay = delay

    @property
    def calls(self) -> list[ModelCall]:
        """The questions that were no steps."""
        return self._summaries.calls

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        return await self._summaries(call, on_delta) if self._summaries.answers else NO_SUMMARY

    async def step(self, call: StepCall, on_delta: Callable[[Delta], None]) -> StepReply | Failure:
        place = len(self.steps)
        self.steps.append(call)
        await anyio.sleep(self._delay)
        if place >= len(self.scenes) and not (self._repeat and self.scenes):
            return Failure("request", f"The script has {len(self.scenes)} steps; this was step {place + 1}.")
        scene = self.scenes[min(place, len(self.scenes) - 1)]
        line = scene(call) if callable(scene) else scene
        reply = line if isinstance(line, Failure) else _reply(line, place, self.name)
        if isinstance(reply, Failure):
            return reply
        size = max(-(-len(reply.text) // self._pieces), 1)
        heard = [Delta("text", reply.text[start : start + size]) for start in range(0, len(reply.text), size)]
        for delta in [*heard, *(Delta("call", call.name) for call in reply.calls)]:
            on_delta(delta)
            await anyio.sleep(self._delay)
        return reply


def _reply(line: StepReply | ToolCall | str | Sequence[ToolCall], place: int, name: str) -> StepReply | Failure:
    if isinstance(line, str):
        line = StepReply((), line)
    elif not isinstance(line, StepReply):
        line = StepReply((), calls=(line,) if isinstance(line, ToolCall) else tuple(line))
    if line.messages:
        return line
    ids = [call.id or f"call_{place}_{index}" for index, call in enumerate(line.calls)]
    calls = [ToolCall(id, call.name, call.arguments) for id, call in zip(ids, line.calls, strict=True)]
    said = [Text(line.text)] if line.text else []
    draft = Draft()
    draft.texts, draft.finish, draft.usage, draft.model = [line.text], line.finish, line.usage, line.model or name
    draft.messages = encode_all([Message("assistant", (*said, *calls))], FORMAT) if said or calls else []
    return draft.step(FORMAT)
