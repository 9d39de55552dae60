"""`Keeper`: calls an agent loop makes before a step, after a step and on overflow to stay inside its model's window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..compaction import PolicyLike
from ..compaction.policy import find_policy
from ..compaction.presets import DEFAULT_PRESET
from ..context.events import Event
from ..errors import InvalidInput, UnknownSession
from ..hooks import Hooks
from ..hooks.events import CompactionEvent
from ..messages import reply_usage
from ..models.calls import Failure, StepReply
from ..sessions import Context, SessionService
from ..sessions.continuation import OverflowRecovery
from ..sessions.message_list import MessageListSession
from ..sessions.steps import SessionSteps
from ..stores import MemoryStore
from ..tokens.budget import require_positive

if TYPE_CHECKING:
    from ..types import MessageLike, SummarizerLike, SystemLike, ToolsLike, UsageLike

_SESSION_TRIES = 10
"""Sessions of one list that may be deleted while a step is prepared."""


class Keeper(SessionSteps):
    """Keeps one conversation inside its model's window; a failed compaction never raises.

    With `sessions` and `session_id` it works on a stored session; a list passed to `prepare_step` then continues it.
    Without, it tracks the list of messages passed to `prepare_step` and returns the list to send.

        keeper = Keeper(model="claude-sonnet-5")
        context = await keeper.prepare_step(history)  # before each model call: what to send
        await keeper.on_step_finish(reply, usage)  # after it

    Args:
        sessions: The service that stores the session, or the forks of an edited list.
        session_id: The session to work on.
        model: The model of the conversation: its window and prices are those of the catalog.
        window: The model's context window in tokens, if the catalog does not know it.
        preset: When to compact, how far and by what: a name or a `Policy`; by default the session's, else `holdfast`.
        summarizer: A model that writes summaries; without one, notes are taken from the messages.
        auto: False disables every automatic compaction.
        system: The system prompt, if it is not a message of the list: counts, and is in the context's `request`.
        tools: Tool definitions as the provider takes them: count, and are in the context's `request`.
        format: The wire format of the list, detected by default; of a session, another provider's format to return.
        alternating: For models whose chat template refuses two messages of one role in a row.
        hooks: Run before and after each compaction.
        listen: Called with each event of a compaction.
    """

    def __init__(
        self,
        sessions: SessionService | None = None,
        session_id: str | None = None,
        *,
        model: str | None = None,
        window: int | None = None,
        preset: PolicyLike | None = None,
        summarizer: SummarizerLike | None = None,
        auto: bool = True,
        system: SystemLike | None = None,
        tools: ToolsLike | None = None,
        format: str | None = None,
        alternating: bool = False,
        hooks: Hooks | None = None,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        if session_id is not None and sessions is None:
            raise InvalidInput("session_id= needs a service: pass the one that stores the session as sessions=.")
        if session_id is not None and (system is not None or tools is not None):
            raise InvalidInput("A session has its own system prompt and tools: pass them to create(), not to Keeper().")
        if session_id is not None and alternating:
            raise InvalidInput(
                "A session says itself whether its roles alternate: pass it to create(), not to Keeper()."
            )
        if window is not None:
            window = require_positive("window", window)
        self._message_list = None
        given = None if preset is None else find_policy(preset)
        self._given = given, window, model
        own = given or (sessions and sessions.preset) or find_policy(DEFAULT_PRESET)
        if session_id is None or sessions is None:
            sessions_of_list = sessions or SessionService(MemoryStore(), preset=own, window=window)
            self._message_list = MessageListSession(
                sessions_of_list,
                format,
                owned=sessions is None,
                system=system,
                tools=tools,
                model=model,
                alternating=alternating,
            )
            sessions = self._message_list.sessions
        super().__init__(
            sessions,
            session_id or "",
            window=window,
            model=model,
            policy=given,
            summarizer=summarizer,
            auto=auto,
            format=format,
            hooks=hooks,
            listen=listen,
        )

    @property
    def session_id(self) -> str:
        """Id of the stored session; of a message list, the id of its session in memory, or of the fork it made."""
        return (self._message_list.session_id if self._message_list else "") or self._session_id

    async def prepare_step(self, messages: Sequence[MessageLike] | None = None) -> Context:
        """Returns the context to send: waits for a running compaction, and compacts if the trigger fires.

        A context that is over the window even so is compacted without a model, whatever the preset does on failure:
        the provider would refuse it.
        """
        if self._message_list is None and messages is not None:
            self._message_list = MessageListSession(self.sessions, self.format, self._session_id)
        if self._message_list is not None:
            if messages is None:
                raise InvalidInput(
                    "No messages: pass them to prepare_step(), or create the keeper with sessions= and session_id=."
                )
            return await self._prepare_list(self._message_list, messages)
        return await self.prepare()

    async def _prepare_list(self, followed: MessageListSession, messages: Sequence[MessageLike]) -> Context:
        """Returns the context of a list; where others delete its session, the list starts a new one."""
        tries = 0
        while True:
            last = followed.session_id
            try:
                await followed.follow(messages)
                if last not in ("", followed.session_id):  # a fork from before they were stored may not have them
                    self._given_policy, self._given_window, self._given_model = self._given
                return await self.prepare()
            except UnknownSession:
                tries += 1
                if tries == _SESSION_TRIES or not followed.lose():
                    raise
                self._given_policy, self._given_window, self._given_model = self._given
                self._retried_version = None

    async def on_overflow(self, problem: Failure | BaseException, *, streamed: bool = False) -> OverflowRecovery:
        """Compacts after the provider rejected the prompt as too long; allows one retry."""
        try:
            return await super().on_overflow(problem, streamed=streamed)
        except UnknownSession as gone:
            if self._message_list is None:
                raise
            return OverflowRecovery(False, f"session {gone.session_id} was deleted: pass the list to prepare_step()")

    async def on_step_finish(
        self, reply: StepReply | MessageLike | Sequence[MessageLike], usage: UsageLike | None = None
    ) -> list[Event]:
        """Stores a reply with the provider's token usage, which a whole reply of an SDK contains.

        A keeper of a message list only records the usage here; the reply is stored with the next list.
        """
        self._length_recovered = False
        return await self.store(reply, usage)

    async def store(
        self, reply: StepReply | MessageLike | Sequence[MessageLike], usage: UsageLike | None = None
    ) -> list[Event]:
        """Stores a reply without incomplete tool calls; shielded from cancellation, because the user has seen it."""
        if self._message_list is None:
            return await super().store(reply, usage)
        self._message_list.usage = usage or reply_usage(reply)
        return []

    # -- a list of messages in place of a stored session ---------------------------------------------------

    @property
    def _stored(self) -> bool:
        return self._message_list is None

    async def _close_interrupted_calls(self) -> None:
        """Leaves calls of a message list open: its caller holds their results, or closes them."""
        if self._stored:
            await super()._close_interrupted_calls()

    def _returned(self, context: Context, compacted: bool) -> Context:
        if self._message_list is not None:
            return self._message_list.returned(context, compacted)
        return super()._returned(context, compacted)
