"""`Recall`: all that can be done with what a session holds, by a program or as tools of an agent (H1)."""

from __future__ import annotations

from typing import Any

from ..compaction import Abort, Asking, Notify
from ..messages import Json
from ..models import model_for
from . import calls, referring
from .finding import ANSWER_TOKENS, Finder
from .referring import Referenced
from .tools import tool_definitions


class Recall(Finder):
    """Everything that was ever said, over a service. With a session's id it is about that session alone."""

    async def reference(
        self,
        question: str,
        *,
        session_id: str | None = None,
        summarizer: Any = None,
        max_tokens: int = ANSWER_TOKENS,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> Referenced:
        """What a session has to say about a question: a model's answer from its passages alone, with references.

        Without a model, or where it fails, the passages themselves, the best first. An abort raises `Aborted`.
        """
        record = await self.sessions.get(self._session(session_id))
        asking = Asking(model_for(summarizer) or self.sessions.model, self.sessions.limits, notify, abort)
        return await referring.reference(self, question, record.id, asking, max_tokens)

    # -- as tools of an agent -----------------------------------------------------------------------

    def tools(self, format: str = "openai-chat") -> list[Json]:
        """Definitions of `recall_search` and `recall_read`, to be given to a model in this format."""
        return tool_definitions(format)

    async def run(
        self, name: str, arguments: Json | str | None = None, *, max_tokens: int = ANSWER_TOKENS
    ) -> calls.Answer:
        """Run one of the tools; whatever goes wrong comes back as an answer that says so."""
        return await calls.run(self, name, arguments, max_tokens)

    async def answer(self, call: Any, *, max_tokens: int = ANSWER_TOKENS) -> Json:
        """Run a tool call as a provider hands it out, and give the message to append, in the same format."""
        return await calls.answer(self, call, max_tokens)
