"""A model that says what it was told to say: for tests, yours and ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anyio.lowlevel import checkpoint

from ..calls import Answer, Failure, ModelCall, Reply

Line = Reply | Failure | str
Script = Line | Callable[[ModelCall], Line]


class ScriptedModel:
    """Gives its answers in order and remembers what it was asked.

    An answer is a reply, a failure, a text, or a function from the call to one of these. When they run out,
    the last one is given again (`repeat=True`), or the call fails.
    """

    def __init__(self, answers: Script | Sequence[Script], *, repeat: bool = False, pieces: int = 4) -> None:
        alone = isinstance(answers, str | Reply | Failure) or callable(answers)
        self.answers: list[Script] = [answers] if alone else list(answers)  # type: ignore[list-item, arg-type]
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
        said = self.answers[min(place, len(self.answers) - 1)]
        line = said(call) if callable(said) else said
        if isinstance(line, Failure):
            return line
        reply = Reply(line, model=self.name) if isinstance(line, str) else line
        step = max(-(-len(reply.text) // self._pieces), 1)
        for start in range(0, len(reply.text), step):
            on_delta(reply.text[start : start + step])
            await checkpoint()
        return reply
