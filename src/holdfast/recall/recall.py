"""`Recall`: search, read and restore what a session or a list of messages holds, for programs and agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ..compaction import Abort, Notify, SummarizerRun
from ..compaction.previous import message_ids
from ..messages import Json, decode_all, encode_tools
from ..messages.normalize import valid_input
from ..messages.repair import repair_input
from ..models import resolve_model
from ..sessions import BlockingSessionService, SessionService
from ..sessions.message_list import HISTORY_SESSION, store_history
from ..stores import MemoryStore
from .question import ReferenceAnswer, answer_question
from .search import DEFAULT_MAX_TOKENS, SessionSearch
from .tools import ToolAnswer, answer_tool_call, offered_tools, run_recall_tool, tool_definitions

if TYPE_CHECKING:
    from ..types import MessageLike, SummarizerLike


class Recall(SessionSearch):
    """Search, read, restore, question answering and agent tools over the sessions of a service.

    With `session_id` it is limited to that session.
    """

    async def reference(
        self,
        question: str,
        *,
        session_id: str | None = None,
        summarizer: SummarizerLike | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> ReferenceAnswer:
        """Answers a question from passages of a session only, written by a model, with references.

        Without a model, or if it fails, returns the passages themselves, best first. An abort raises `Aborted`.
        """
        record = await self.sessions.get(self._session(session_id))
        run = SummarizerRun(resolve_model(summarizer) or self.sessions.model, self.sessions.limits, notify, abort)
        return await answer_question(self, question, record.id, run, max_tokens)

    # -- agent tools --------------------------------------------------------------------------------

    def tools(self, format: str = "openai-chat") -> list[Json]:
        """Returns the definitions of the recall tools in this wire format."""
        return encode_tools(format, offered_tools(self))

    async def run(
        self, name: str, arguments: Json | str | None = None, *, max_tokens: int = DEFAULT_MAX_TOKENS
    ) -> ToolAnswer:
        """Runs one of the tools by name. Errors are returned as answers, not raised."""
        return await run_recall_tool(self, name, arguments, max_tokens)

    async def answer(self, call: Any, *, max_tokens: int = DEFAULT_MAX_TOKENS) -> Json:
        """Runs a provider's tool call; returns the tool result message to append, in the same wire format."""
        return await answer_tool_call(self, call, max_tokens)


P = ParamSpec("P")
R = TypeVar("R")


def _blocking(method: Callable[Concatenate[Recall, P], Awaitable[R]]) -> Callable[Concatenate[BlockingRecall, P], R]:
    def call(self: BlockingRecall, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._sessions.call(lambda service: method(self._recall(service), *args, **kwargs))

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class BlockingRecall:
    """The methods of `Recall`, run on the service's event loop thread."""

    def __init__(self, sessions: BlockingSessionService, session_id: str | None = None, **options: Any) -> None:
        self._sessions = sessions
        self._recall: Callable[[Any], Recall] = lambda service: Recall(service, session_id, **options)

    def tools(self, format: str = "openai-chat") -> list[Json]:
        """Returns the definitions of the recall tools in this wire format."""
        return tool_definitions(format)

    search = _blocking(Recall.search)
    read = _blocking(Recall.read)
    restore = _blocking(Recall.restore)
    reference = _blocking(Recall.reference)
    run = _blocking(Recall.run)
    answer = _blocking(Recall.answer)


async def recall_messages(messages: Iterable[MessageLike], *, format: str | None = None) -> Recall:
    """Returns a `Recall` over a list of messages, without a session.

    `#12` is the twelfth message of the list, as in notes about such a history.
    """
    decoded, name = decode_all(messages, format)
    store = MemoryStore()
    history = valid_input(decoded, name) or repair_input(decoded, name)
    await store_history(store, decoded, name, ids=message_ids(decoded, history))
    return Recall(SessionService(store), HISTORY_SESSION, can_restore=False)
