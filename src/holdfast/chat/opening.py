"""From settings to a conversation that runs: with the store, the model, the preset and the hooks that they name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ..agent.events import Tell
from ..agent.tools import Approve, Folder
from ..errors import InvalidInput
from ..hooks import Hooks
from ..models import model_for, stepper_for
from ..service import SessionService
from ..settings import Settings, open_settled_store, preset_for, user_file
from .chat import Chat


@asynccontextmanager
async def open_chat(
    settings: Settings, *, folder: str | Path, tell: Tell, approve: Approve, session: str | None = None
) -> AsyncIterator[Chat]:
    """A chat in a folder, in a new session or in one that is there already; all is closed afterwards."""
    if settings.model is None:
        raise InvalidInput(
            f"No model is set: name one with --model, in HOLDFAST_MODEL, or as model = … in {user_file()}, as in "
            "anthropic:MODEL. Without a network it can be a local server's address, as in "
            "http://localhost:8080/v1#MODEL, or script:FILE."
        )
    model, summarizer, preset = stepper_for(settings.model), model_for(settings.summarizer), preset_for(settings)
    hooks = Hooks(settings.hooks.before, settings.hooks.after, settings.hooks.session_start)
    try:
        async with SessionService(open_settled_store(settings), preset=preset, hooks=hooks) as sessions:
            chat = Chat(
                sessions,
                model,
                folder=Folder(folder),
                preset=preset,
                approve=approve,
                listener=tell,
                window=settings.window,
                summarizer=summarizer,
                auto=settings.compaction.enabled,
                settings=settings,
            )
            async with chat.running(session):
                yield chat
    except BaseExceptionGroup as group:
        raise _only(group) from None


async def newest_session(settings: Settings) -> str:
    """The session of the store that was begun last."""
    async with SessionService(open_settled_store(settings)) as sessions:
        newest = await sessions.list(limit=1)
    if not newest:
        raise InvalidInput("There is no session to continue yet: begin one without --continue.")
    return newest[0].id


def _only(problem: BaseException) -> BaseException:
    """What went wrong, without the groups that tasks have put around it."""
    while isinstance(problem, BaseExceptionGroup) and len(problem.exceptions) == 1:
        problem = problem.exceptions[0]
    return problem
