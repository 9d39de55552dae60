"""What any agent loop needs to stay inside its model's window: before a step, after it, and when it did not fit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from ..budget import Utilization
from ..calls import Failure, StepReply
from ..compaction import Abort, CompactionResult
from ..errors import InvalidInput
from ..events import Event
from ..hooks.events import CompactionEvent, Continued
from ..messages import Json, Message, ToolCall, decode_all, decode_one, encode_all, framed, is_framed
from ..models import failure_of
from ..presets import Preset, preset_named
from ..service import Context, SessionService
from ..strategies import KeepLedger
from ..tokens import tokens_in
from ..triggers import always
from ..view import Request
from .cut_off import without_broken_calls
from .following import Followed
from .window import Window

log = logging.getLogger("holdfast")
OFF = "automatic compaction is off: compact by hand, or turn it on"
_FULL = 0.80
"""G3: a reply that was cut off in a window less full than this was not cut off by the window."""
_OUTPUT = 16_384
GO_ON = "(The conversation was compacted in the middle of your work. Go on with it where you stopped.)"


class Recovery(msgspec.Struct, frozen=True):
    """What to do about a prompt that was too long."""

    retry: bool
    """Send the context again, once: it is smaller now."""
    why: str = ""
    context: Context | None = None


class CutOff(msgspec.Struct, frozen=True):
    """What to do about a reply that ran into its limit."""

    status: Literal["go_on", "max_tokens"]
    messages: list[Json]
    """What could be kept of it, in its own format."""
    calls: tuple[ToolCall, ...]
    """Those that are whole."""
    events: list[Event]
    """As it was stored."""
    why: str = ""


class Keeper:
    """Keeps one conversation inside its model's window. It never raises because of a compaction (L11).

    With `sessions` and `session_id` it works on a session of yours. Without, it follows the list of messages that
    you hand to `prepare_step`, and gives back the list to send.
    """

    def __init__(
        self,
        sessions: SessionService | None = None,
        session_id: str | None = None,
        *,
        model: str | None = None,
        window: int | None = None,
        preset: str | Preset = "holdfast",
        summarizer: Any = None,
        auto: bool = True,
        system: Any = None,
        tools: Any = None,
        format: str | None = None,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        if session_id is not None and sessions is None:
            raise InvalidInput("session_id= names a session: pass the service that has it as sessions=, too.")
        self._followed = None
        if session_id is None or sessions is None:
            self._followed = Followed(sessions, format, system=system, tools=tools, model=model)
            sessions = self._followed.sessions
        self.sessions = sessions
        self._session_id = session_id
        self.preset = preset_named(preset)
        self.window = Window(window, model, self.preset.window)
        self.summarizer = summarizer
        self.auto = auto
        """Is automatic compaction on? Where it is off, nothing is compacted unless somebody asks (P2)."""
        self.format = format
        self.listen = listen
        self.abort = Abort()
        self._retried = self._went_on = False

    @property
    def session_id(self) -> str:
        return self._session_id or (self._followed.session_id if self._followed else "")

    # -- before and after a step ----------------------------------------------------------------------

    async def prepare_step(self, messages: Sequence[Any] | None = None) -> Context:
        """What to send now: waits for a compaction that is running, and compacts if it is time (G2, L12, W13)."""
        if self._followed is not None:
            if messages is None:
                raise InvalidInput("Hand in the messages, or make the keeper with sessions= and session_id=.")
            await self._followed.follow(messages)
        await self.sessions.ready(self.session_id)
        if not await self.compact_if_due():
            return await self.context()
        return await self._go_on()

    async def on_step_finish(self, reply: StepReply | Sequence[Any] | Any, usage: Any = None) -> list[Event]:
        """Store what the model said, with the tokens that the provider counted (L12, P3).

        Where the keeper follows your list, the reply is stored when it comes with the list, and only counted here.
        """
        self._retried = self._went_on = False
        return await self._store(self._read(reply)[0], usage or getattr(reply, "usage", None))

    async def compact_if_due(self) -> bool:
        """Compact if the trigger fires. False where nothing was changed, whatever the reason."""
        if not self.auto:
            return False
        result = await self._compact(self.preset.trigger_in(self.window.size), self.window.size)
        return result is not None and result.tokens_saved > 0

    async def compact(self, instructions: str | None = None, abort: Abort | None = None) -> CompactionResult:
        """Compact now, because a person asks (P1)."""
        return await self.sessions.compact(
            self.session_id,
            always,
            self.preset.strategy,
            "rebase",
            budget=self.window.size,
            instructions=instructions,
            summarizer=self.summarizer,
            abort=abort or self.abort,
            listen=self.listen,
        )

    # -- when it did not fit ---------------------------------------------------------------------------

    async def on_overflow(self, problem: Failure | BaseException, *, streamed: bool = False) -> Recovery:
        """The provider says that the prompt is too long: compact whatever the size, and try again once (G3)."""
        failure = problem if isinstance(problem, Failure) else failure_of(problem)
        if failure.kind != "overflow":
            return Recovery(False, f"this is no overflow ({failure.kind}): {failure.why}")
        sent = (await self.context()).tokens
        self.window.learn(failure.window, sent)
        if streamed:
            return Recovery(False, "a part of the reply was shown already: asking again would say it twice")
        if not self.auto:
            return Recovery(False, OFF)
        if self._retried:
            return Recovery(False, "the prompt was too long again after it had been compacted")
        budget = max(1, min(self.window.size, sent - 1))
        result = await self._compact(_at_once, budget)
        if result is None or result.tokens_after >= sent:
            result = await self._compact(always, budget, KeepLedger(budget // 2))
        context = await self.context()
        if context.tokens >= sent:
            why = result.why if result is not None else "the compaction failed"
            return Recovery(False, f"it could not be made smaller: {why}")
        self._retried = True
        return Recovery(True, context=await self._go_on())

    async def on_length(self, reply: StepReply | Sequence[Any] | Any, usage: Any = None) -> CutOff:
        """The reply was cut off: keep its whole calls; compact and go on if the window was the reason (G3)."""
        said, format = self._read(reply)
        kept = without_broken_calls(said)
        events = await self._store(kept, usage or getattr(reply, "usage", None))
        cut_off = partial(
            CutOff,
            messages=encode_all(kept, format),
            calls=tuple(call for message in kept for call in message.calls),
            events=events,
        )
        full = await self._utilization()
        if full <= _FULL:
            return cut_off("max_tokens", why=f"the reply is too long, with {full:.0%} of the window in use")
        if not self.auto:
            return cut_off("max_tokens", why=OFF)
        if self._went_on:
            return cut_off("max_tokens", why="the reply was cut off again after a compaction")
        result = await self._compact(_at_once, self.window.size)
        if result is None or not result.tokens_saved:
            why = result.why if result is not None else "the compaction failed"
            return cut_off("max_tokens", why=f"nothing could be compacted: {why}")
        self._went_on = True
        await self._go_on(cut_off=not any(message.calls for message in kept))
        return cut_off("go_on")

    # -- for the above ---------------------------------------------------------------------------------

    async def context(self) -> Context:
        return await self.sessions.context(self.session_id, format=self.format)

    async def _go_on(self, *, cut_off: bool = False) -> Context:
        """The context after a compaction; a model that was in the middle of something is told to go on (P22)."""
        context = await self.context()
        shown = (decode_one(message, context.format) for message in reversed(context.messages))
        last = next((message for message in shown if not is_framed(message)), None)
        if cut_off or (last is not None and last.role == "tool"):
            await self.sessions.append(self.session_id, framed(GO_ON, aside=True), aside=True)
            if self.listen is not None:
                self.listen(Continued(self.session_id, GO_ON))
            context = await self.context()
        if self._followed is not None:
            self._followed.showed(context.messages)
        return context

    def _read(self, reply: StepReply | Sequence[Any] | Any) -> tuple[list[Message], str]:
        given = reply.messages if isinstance(reply, StepReply) else reply
        return decode_all(given if isinstance(given, list | tuple) else [given], self.format)

    async def _store(self, reply: list[Message], usage: Any) -> list[Event]:
        if self._followed is not None:
            self._followed.usage = usage
            return []
        return await self.sessions.append(self.session_id, reply, usage=usage) if reply else []

    async def _compact(
        self, trigger: Callable[[Request], bool], budget: int, strategy: Any = None
    ) -> CompactionResult | None:
        """A compaction that nobody asked for; None where it broke."""
        try:
            return await self.sessions.compact(
                self.session_id,
                trigger,
                strategy or self.preset.strategy,
                "rebase",
                budget=budget,
                summarizer=self.summarizer,
                abort=self.abort,
                listen=self.listen,
            )
        except Exception:
            log.exception("a compaction of session %s broke: the conversation goes on without it", self.session_id)
            return None

    async def _utilization(self) -> float:
        context = await self.context()
        fixed = sum(
            tokens_in(self.sessions.estimator, text) for text in map(_text, (context.system, context.tools)) if text
        )
        output = min(self.window.reply or _OUTPUT, self.window.size // 4)
        return Utilization(fixed, max(0, context.tokens - fixed), self.window.size, output).value


def _at_once(request: Request) -> bool:
    """Fires always, and yet nobody asked: the breaker is minded."""
    return True


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
