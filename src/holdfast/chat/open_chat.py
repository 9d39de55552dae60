"""Opens a chat from settings: store, model, preset and hooks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from ..agent.events import EventListener
from ..agent.tools import Approve, Mode, PermissionRules, Sandbox, WorkingFolder
from ..agent.tools.mcp_config import USER_FILE, read_mcp_servers
from ..errors import InvalidInput
from ..hooks import Hooks
from ..models import resolve_chat_model, resolve_model
from ..models.calls import retry_limits
from ..sessions import SessionService
from ..sessions.history import last_used, works_in
from ..settings import Settings, open_configured_store, preset_for, user_file

if TYPE_CHECKING:
    from .chat import Chat


@asynccontextmanager
async def open_chat(
    settings: Settings,
    *,
    folder: str | Path,
    on_event: EventListener,
    approve: Approve,
    session: str | None = None,
    mode: Mode = "ask",
    sandbox: Sandbox | None = None,
) -> AsyncIterator[Chat]:
    """Opens a chat in a folder, in a new or existing session; closes the store afterwards."""
    from .chat import Chat

    if settings.model is None:
        raise InvalidInput(
            f"No model is set: name one with --model, in HOLDFAST_MODEL, or as model = … in {user_file()}, as in "
            "anthropic:MODEL. Without a network it can be a local server's address, as in "
            "http://localhost:8080/v1#MODEL, or script:FILE."
        )
    if sandbox is not None:
        await to_thread.run_sync(sandbox.require)
    model, summarizer, preset = (
        resolve_chat_model(settings.model),
        resolve_model(settings.summarizer),
        preset_for(settings),
    )
    hooks = Hooks(settings.hooks.before, settings.hooks.after, settings.hooks.session_start)
    try:
        async with SessionService(open_configured_store(settings), preset=preset, hooks=hooks) as sessions:
            working = WorkingFolder(folder)
            servers, problems = read_mcp_servers(user_file().with_name(USER_FILE), settings.project)
            chat = Chat(
                sessions,
                model,
                folder=working,
                preset=preset,
                approve=approve,
                permissions=PermissionRules(
                    working.root,
                    user_file().with_name("permissions.json"),
                    mode,
                    trusted=settings.project is not None,
                ),
                sandbox=sandbox,
                listener=on_event,
                window=settings.window,
                summarizer=summarizer,
                auto=settings.compaction.enabled,
                limits=retry_limits(settings.retry_seconds),
                settings=settings,
                project=settings.project,
                mcp_configs=servers,
                problems=tuple(problems),
                read_project_instructions=settings.project_instructions,
            )
            async with chat.running(session):
                yield chat
    except BaseExceptionGroup as group:
        raise _unwrap_single_exception(group) from None


async def newest_session(settings: Settings, folder: str | Path) -> str:
    """Returns the session last used in this folder; raises `InvalidInput` if there is none."""
    root = WorkingFolder(folder).root
    async with SessionService(open_configured_store(settings)) as sessions:
        here = [record for record in await sessions.list() if works_in(record, root)]
        used = [(await last_used(sessions.store, record), record.id) for record in here]
    if not used:
        raise InvalidInput(
            f"There is no session to continue in {root}: start one without --continue, or name one with --session."
        )
    return max(used)[1]


def _unwrap_single_exception(problem: BaseException) -> BaseException:
    """Strips exception groups that hold a single exception."""
    while isinstance(problem, BaseExceptionGroup) and len(problem.exceptions) == 1:
        problem = problem.exceptions[0]
    return problem
