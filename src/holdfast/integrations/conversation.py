"""What the integrations share: the conversations of one agent, each followed by a `Keeper` as its list grows.

A framework passes its list of messages before each model call and gets the list to send. The list of the framework
stays whole: a compaction changes only what is sent. All work of keepers and stores runs on the event loop of the
portal, so that blocking and asynchronous callers share it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import eq
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio

from ..agent import Keeper
from ..compaction import PolicyLike
from ..compaction.policy import find_policy
from ..errors import UnknownSession
from ..follow import KnownObjects
from ..hooks.events import CompactionEvent
from ..io.portal import portal
from ..messages import OPENING, Message, Role, decode_all, find_problems, rules_for, to_json
from ..messages.frameworks import framework_in, load_object
from ..models import failure_from_exception
from ..models.calls import Failure
from ..recall import Recall
from ..recall import tools as recall_tools
from ..sessions import Context, SessionService
from ..sessions.origin import listed_events
from ..stores import MemoryStore, StoreLike, store_for
from ..stores.base import ProcessGuard
from ..tokens.budget import require_positive
from ..triggers import OverThreshold

if TYPE_CHECKING:
    from ..types import SummarizerLike, SystemLike, ToolsLike, UsageLike

RECALL_TOOLS = tuple(tool for tool in recall_tools.RECALL_TOOLS if tool.name != recall_tools.RESTORE_TOOL)
"""Tools to search and read a conversation; there is none to restore, because the framework keeps its own list."""
_Result = TypeVar("_Result")
_OPEN_CONVERSATIONS = 500
"""Conversations that stay in memory; the one unused for longest is closed."""
_OVERFLOW_CLASSES = frozenset(
    (
        "ContextOverflowError",
        "ContextWindowExceededError",
        "ContextWindowOverflowException",
        "ModelContextWindowExceededError",
    )
)
"""Names of the frameworks' own exceptions for a prompt that is too long."""
_CERTAIN = 0.75
"""Share of the threshold below which an estimate alone decides that nothing is to be compacted."""
_BYTES_PER_TOKEN = 2
"""For that estimate, which is too high and costs nothing: the keeper counts exactly when it reaches the share."""


def _unchanged(message: Any) -> Any:
    return message


def _unread(message: Any) -> Message | None:
    return None


class Shortcuts(NamedTuple):
    """What a framework's own classes make cheaper, or necessary: most calls find nothing to compact."""

    load: Callable[[Any], Any] = _unchanged
    """Returns the object of a message in a wire format, if the framework does not take those."""
    same: Callable[[Sequence[Any], Sequence[Any]], bool] = eq
    """Compares two lists of equal length."""
    read: Callable[[Any], Message | None] = _unread
    """Returns text, calls and text results of a message without a dump of it; None if it has anything else."""


class AgentConversations:
    """The conversations of one agent: options for their compaction, and an `AgentConversation` for each key.

    Without a `store` histories are followed in memory. With one (a store or its address), each conversation is a
    session with the conversation's key as its id, which outlives the process.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        model: str | None = None,
        preset: PolicyLike = "holdfast",
        summarizer: SummarizerLike | None = None,
        store: StoreLike | None = None,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        self.window = None if window is None else require_positive("window", window)
        self.model = model
        self.preset = find_policy(preset)
        self.summarizer = summarizer
        self.listen = listen
        self.stored = store is not None
        self._store = MemoryStore() if store is None else store_for(store)
        self._sessions: SessionService | None = None
        self._open: OrderedDict[str, AgentConversation] = OrderedDict()
        self._opening = threading.Lock()
        self._process = ProcessGuard()

    @property
    def sessions(self) -> SessionService:
        """The service of the sessions; use it in `run` and `arun` only."""
        if self._sessions is None:
            self._sessions = SessionService(self._store, preset=self.preset)
        return self._sessions

    def run(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """Runs work on the event loop of keepers and stores; blocks until it is done."""
        self._process.enter()
        return portal.run(work)

    async def arun(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """`run` for asynchronous callers."""
        self._process.enter()
        return await portal.arun(work)

    def conversation(
        self,
        key: str,
        *,
        model: str | None = None,
        window: int | None = None,
        system: SystemLike | None = None,
        tools: Callable[[], ToolsLike] | None = None,
        format: str | None = None,
        shortcuts: Shortcuts | None = None,
    ) -> AgentConversation:
        """Returns the conversation with this key; the other arguments matter when it is opened.

        `tools` returns definitions of the model's tools, which are sent and therefore counted as well.
        """
        with self._opening:
            found = self._open.get(key)
            if found is None:
                record = {"system": system, "tools": tools and tools(), "format": format}
                found = AgentConversation(
                    self, key, self.window or window, self.model or model, record, shortcuts or Shortcuts()
                )
                self._open[key] = found
            self._open.move_to_end(key)
            while len(self._open) > _OPEN_CONVERSATIONS:
                self._open.popitem(last=False)
            return found

    def logged_messages(self, key: str) -> list[Any]:
        """Returns the messages that the store has of a conversation, as objects of its framework; blocking."""
        return self.run(lambda: logged_messages(self.sessions, key)) if self.stored else []

    def keys(self) -> list[str]:
        """Returns the keys of the open conversations, the one used last at the end."""
        with self._opening:
            return list(self._open)

    def keeper(
        self, session_id: str | None = None, window: int | None = None, model: str | None = None, **options: Any
    ) -> Keeper:
        """Returns a keeper with these options, of a stored session if one is named."""
        return Keeper(
            None if session_id is None else self.sessions,
            session_id,
            window=window or self.window,
            model=model or self.model,
            preset=self.preset,
            summarizer=self.summarizer,
            listen=self.listen,
            **options,
        )

    async def recall(self, keeper: Keeper, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Runs a recall tool on the log of a keeper; returns text for the model. In `run` and `arun` only."""
        if not isinstance(arguments, str):
            arguments = {argument: value for argument, value in arguments.items() if value is not None}
        return (await Recall(keeper.sessions, keeper.session_id, can_restore=False).run(name, arguments)).text

    async def answer_recall(self, key: str, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Runs a recall tool on the conversation with this key; returns text for the model."""
        return await self.arun(lambda: self.recall(self.conversation(key).keeper, name, arguments))

    def answer_recall_blocking(self, key: str, name: str, arguments: Mapping[str, Any] | str) -> str:
        """`answer_recall` for blocking callers."""
        return self.run(lambda: self.recall(self.conversation(key).keeper, name, arguments))


class AgentConversation:
    """One conversation: the framework's list of messages as it grows, and the list to send."""

    def __init__(
        self,
        conversations: AgentConversations,
        key: str,
        window: int | None,
        model: str | None,
        record: dict[str, Any],
        shortcuts: Shortcuts,
    ) -> None:
        self._all = conversations
        stored = conversations.stored
        given = {"format": record["format"]} if stored else record
        self.keeper = conversations.keeper(key if stored else None, window, model, **given)
        self._record = {"id": key, **record}
        self._shortcuts = shortcuts
        self._created = not stored
        self._limit = 0.0
        self._working = anyio.Lock()
        self._reading = threading.Lock()
        self._given = KnownObjects()
        self._sent: list[Any] = []
        self._last_role: Role | None = None
        self._tokens = 0
        self._usage: UsageLike | None = None
        self._format: str | None = record["format"]

    # -- before a model call --------------------------------------------------------------------------

    def prepare(self, messages: Sequence[Any]) -> list[Any]:
        """Returns the messages to send: the given ones, or their compacted view."""
        quick = self._continued(messages)
        return self._all.run(lambda: self._prepare(messages)) if quick is None else quick

    async def aprepare(self, messages: Sequence[Any]) -> list[Any]:
        """`prepare` for asynchronous callers."""
        quick = self._continued(messages)
        return await self._all.arun(lambda: self._prepare(messages)) if quick is None else quick

    async def _prepare(self, messages: Sequence[Any]) -> list[Any]:
        async with self._working:
            await self._create()
            if self._usage is not None:
                await self.keeper.on_step_finish([], self._usage)
                self._usage = None
            context = await self.keeper.prepare_step(messages)
            self._limit = await self._token_limit()
            return self._remember(messages, context)

    def report(self, usage: UsageLike | None) -> None:
        """Records what the provider reported for the newest reply, where the messages themselves do not hold it."""
        self._usage = usage

    # -- after an overflow ----------------------------------------------------------------------------

    def recover(self, problem: BaseException, messages: Sequence[Any]) -> list[Any] | None:
        """Returns a smaller list to send once more after a prompt was rejected as too long; None for other errors."""
        failure = find_overflow(problem)
        return None if failure is None else self._all.run(lambda: self._recover(failure, messages))

    async def arecover(self, problem: BaseException, messages: Sequence[Any]) -> list[Any] | None:
        """`recover` for asynchronous callers."""
        failure = find_overflow(problem)
        return None if failure is None else await self._all.arun(lambda: self._recover(failure, messages))

    async def _recover(self, failure: Failure, messages: Sequence[Any]) -> list[Any] | None:
        async with self._working:
            await self._create()
            await self.keeper.prepare_step(messages)
            recovery = await self.keeper.on_overflow(failure)
            if not recovery.retry or recovery.context is None:
                return None
            self._limit = await self._token_limit()
            return self._remember(messages, recovery.context)

    # -- internals ------------------------------------------------------------------------------------

    async def _create(self) -> None:
        """Creates the stored session of a new conversation."""
        if not self._created:
            try:
                await self._all.sessions.get(self._record["id"])
            except UnknownSession:
                await self._all.sessions.create(**self._record)
            self._created = True

    async def _token_limit(self) -> float:
        """Returns the tokens below which certainly nothing is due; 0 if the preset's trigger does not say."""
        policy = self._all.preset
        threshold = policy.bounds((await self.keeper.size()).window, 0).threshold
        return _CERTAIN * threshold if isinstance(policy.trigger, OverThreshold) and threshold else 0.0

    def _remember(self, messages: Sequence[Any], context: Context) -> list[Any]:
        """Keeps what the next call needs to recognise the list; returns the messages to send."""
        with self._reading:
            self._given = KnownObjects(messages, self._shortcuts.same)
            self._sent = list(map(self._shortcuts.load, context.messages))
            self._tokens, self._format = context.tokens, context.format
            newest, _ = decode_all(context.messages[-1:], context.format)
            self._last_role = newest[-1].role if newest else None
            return list(self._sent)

    def _continued(self, messages: Sequence[Any]) -> list[Any] | None:
        """Returns what to send if the list grew by valid messages and is far from the threshold; else None.

        This is most calls, and costs the new messages only. A stored conversation takes the other way: its log is
        durable before the model is called.
        """
        if self._all.stored:
            return None
        with self._reading:
            if not self._given.is_start_of(messages):
                return None
            new = messages[len(self._given) :]
            decoded = self._read(new)
            if self._format is None or not self._are_valid_next(decoded):
                return None
            tokens = self._tokens + sum(map(_byte_length, decoded)) // _BYTES_PER_TOKEN
            if tokens >= self._limit:
                return None
            self._given.extend(new)
            self._sent += new
            self._tokens = tokens
            self._last_role = decoded[-1].role if decoded else self._last_role
            return list(self._sent)

    def _read(self, new: Sequence[Any]) -> list[Message]:
        """Returns the messages in neutral form, only to be validated and counted."""
        usual = [message for item in new if (message := self._shortcuts.read(item)) is not None]
        return usual if len(usual) == len(new) else decode_all(new, self._format, borrow=True)[0]

    def _are_valid_next(self, new: Sequence[Message]) -> bool:
        """Whether these messages are valid after those that were sent last."""
        if not new:
            return True
        if self._last_role == new[0].role == "assistant":
            return False
        return not find_problems([OPENING, *new], rules_for(self._format or ""), ready=True)


def _byte_length(message: Message) -> int:
    return len(to_json(message.parts).encode("utf-8", "surrogatepass"))


async def logged_messages(sessions: SessionService, session_id: str) -> list[Any]:
    """Returns the messages of a session that a program passed, as objects of their framework; none if it is new."""
    try:
        events = await listed_events(sessions, session_id)
    except UnknownSession:
        return []
    return [load_object(event.message) if framework_in(event.message) else event.message for event in events]


def find_overflow(problem: BaseException) -> Failure | None:
    """Returns the overflow that an exception of a framework stands for, or one that it was raised from."""
    seen: BaseException | None = problem
    while seen is not None:
        failure = failure_from_exception(seen)
        if failure.kind == "overflow":
            return failure
        if _OVERFLOW_CLASSES.intersection(base.__name__ for base in type(seen).__mro__):
            return Failure("overflow", str(seen))
        seen = seen.__cause__ or seen.__context__
    return None
