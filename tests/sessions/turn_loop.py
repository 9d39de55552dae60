"""The loop of a turn with a scripted model and tools, and a store that dies at any of its calls."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio

from holdfast import SessionService, check
from holdfast.errors import StoreError
from holdfast.messages import ToolCall
from holdfast.sessions import Turn
from holdfast.stores import Log

QUESTION = "How high is the tide in the three harbours?"
ANSWER = "4, 5 and 6 metres."
STEPS = (("north", "east"), ("south",))
"""Harbours that the model asks for in one reply each."""
HEIGHTS = {"north": 4, "east": 5, "south": 6}


def next_reply(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The model: asks for two harbours, then for one, then answers."""
    last = max(index for index, message in enumerate(messages) if message["role"] == "user")
    step = sum(message["role"] == "assistant" for message in messages[last:])
    if step >= len(STEPS):
        return {"role": "assistant", "content": ANSWER}
    calls = [
        {"id": f"call_{name}", "type": "function", "function": {"name": "tide", "arguments": f'{{"at": "{name}"}}'}}
        for name in STEPS[step]
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


class Harbour:
    """The model and the tools of a process, and what was asked of them."""

    def __init__(self) -> None:
        self.requests: list[list[dict[str, Any]]] = []
        self.runs: Counter[str] = Counter()
        """Runs of tools, by the key of the call."""

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        assert not check(request["messages"], "openai-chat"), request["messages"]
        self.requests.append(request["messages"])
        usage = {"prompt_tokens": 20 * len(request["messages"]), "completion_tokens": 5}
        message = next_reply(request["messages"])
        finish = "tool_calls" if "tool_calls" in message else "stop"
        return {"object": "chat.completion", "choices": [{"message": message, "finish_reason": finish}], "usage": usage}

    def run(self, turn: Turn, call: ToolCall) -> dict[str, Any]:
        self.runs[turn.key(call)] += 1
        return {"role": "tool", "tool_call_id": call.id, "content": str(HEIGHTS[call.arguments_dict["at"]])}

    async def answer(self, sessions: SessionService, id: str, text: str = QUESTION, session: str = "s") -> Any:
        """Runs the turn as a web service does; returns its reply."""
        async with sessions.turn(session, id=id) as turn:
            if turn.done:
                return turn.reply
            await turn.say({"role": "user", "content": text})
            while True:
                for call in turn.calls:
                    await turn.results([self.run(turn, call)])
                if not await turn.receive(self.reply(await turn.request())):
                    return turn.reply


EXPECTED = ["t/say", "t/1", "t/1/0", "t/1/1", "t/2", "t/2/0", "t/3"]
"""Events of a whole turn."""


class MortalStore:
    """A store as one process sees it: `die` is called at its n-th call, before it or after it is done."""

    def __init__(self, store: Log, at: int | None, die: Callable[[], Any], *, after: bool = False) -> None:
        self._store, self._at, self._die, self._after = store, at, die, after
        self.calls = 0
        self.dead = False
        self.buried = anyio.Event()
        """Ends the call during which the process died, which never returns."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.dead:
                raise StoreError("This process is dead.")
            if threading.current_thread() is not threading.main_thread():
                return await method(*args, **kwargs)  # a renewal
            self.calls += 1
            last = self.calls == self._at
            if last and not self._after:
                await self._end()
            result = await method(*args, **kwargs)
            if last:
                await self._end()
            return result

        return call

    async def _end(self) -> None:
        self.dead = True
        self._die()
        await self.buried.wait()
        raise StoreError("This process is dead.")
