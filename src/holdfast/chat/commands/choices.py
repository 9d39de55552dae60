"""/model, /preset, /permissions and /export."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
from anyio import to_thread

from ...agent.tools import MODES, Mode
from ...compaction import PRESETS
from ...compaction.policy import find_policy
from ...errors import InvalidInput
from ...models import resolve_chat_model
from ...models.names import PROVIDERS, has_key
from ...sessions.session_ids import shorten_id
from ...settings import preset_for
from ...tokens.catalog import CATALOG, ModelInfo
from ...transcripts.exporting import EXPORT_FORMATS, ExportFormat, export_session
from . import compaction
from .base import ChatCommand, Choice, Choices, CommandResult, Table, page, split_arguments

if TYPE_CHECKING:
    from ..chat import Chat


_CATALOG_PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "gemini": "google"}
"""The catalog's name of each provider whose models are listed."""


async def _run_model(chat: Chat, argument: str) -> CommandResult:
    if argument:
        chat.configure(model=resolve_chat_model(argument))
    summarizer, size = chat.summary_model, await chat.agent.keeper.size()
    rows = [
        ("model", chat.model.name),
        ("format", chat.model.format),
        ("window", f"{size.window or 0:,} tokens: {compaction.window_source(chat, size)}"),
        ("summaries", getattr(summarizer, "name", None) or str(summarizer)),
    ]
    changed = (f"This conversation now uses {chat.model.name}.", "") if argument else ()
    choices = None if argument else Choices("Models", _model_choices(chat.model.name), "/model")
    return msgspec.structs.replace(page(*changed, Table(rows)), choices=choices)


def _model_choices(current: str) -> list[Choice]:
    """Returns the current model and the catalog's models of the providers that have a key."""
    now = CATALOG.find(current)
    rows = [Choice(current, current, "current", _describe_model(now) if now else "not in the catalog", current=True)]
    for provider, listed in _CATALOG_PROVIDERS.items():
        if not has_key(provider):
            continue
        for model in reversed(CATALOG.models):
            name = f"{provider}:{_model_id(model.pattern, '-' if listed == 'anthropic' else '.')}"
            if model.provider == listed and re.search(r"\d", name) and name != current:
                rows.append(Choice(name, name, _format_window(model.window), _describe_model(model)))
    return rows


def _model_id(pattern: str, separator: str) -> str:
    """Returns the shortest id that a pattern of the catalog matches."""
    return re.sub(r"\[[^]]*\]", separator, pattern).rstrip("*").rstrip("-.")


def _describe_model(model: ModelInfo) -> str:
    prices = [f"{price:g}" for price in (model.input_price, model.output_price) if price is not None]
    price = f"USD {' in, '.join(prices)} out per million tokens" if len(prices) == 2 else "price unknown"
    return f"{'text and images' if model.images else 'text'}; {price}"


def _format_window(tokens: int) -> str:
    return f"{tokens // 1_000:,}k"


async def _run_preset(chat: Chat, argument: str) -> CommandResult:
    if not argument:
        rows = [
            ("*" if name == chat.preset.name else " ", name, preset.about)
            for name, preset in zip(PRESETS, map(find_policy, PRESETS), strict=True)
        ]
        return page(Table(rows, labels=False), "", "Switch this conversation to another: /preset NAME.")
    name = find_policy(argument).name
    chat.configure(preset=preset_for(msgspec.structs.replace(compaction.chat_settings(chat), preset=name)))
    figures = Table(list(chat.preset.figures.items()))
    return page(f"This conversation now uses the preset {name}. {chat.preset.about}", "", figures)


async def _complete_providers(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return [*(f"{name}:" for name in PROVIDERS), *(row.value for row in _model_choices(chat.model.name)[1:])]


async def _complete_presets(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return list(PRESETS) if len(words) == 1 else ()


MODEL = ChatCommand("model", "/model [NAME]", "choose the model, or switch to NAME", _run_model, _complete_providers)
PRESET = ChatCommand(
    "preset", "/preset [NAME]", "list compaction presets, or switch to one", _run_preset, _complete_presets
)


async def _run_permissions(chat: Chat, argument: str) -> CommandResult:
    rules = chat.permissions.rules
    word, _, rule = argument.partition(" ")
    if word == "revoke" and rule.strip():
        for one in rules if rule.strip() == "all" else [rule.strip()]:
            chat.permissions.revoke(one)
        return CommandResult(f"Revoked: the chat asks again before {rule.strip()}.")
    if argument:
        raise InvalidInput(f"Use {PERMISSIONS.usage}.")
    if not rules:
        return CommandResult(f"Nothing is always allowed in {chat.folder.root}: every change is asked.")
    listed = [f"Always allowed in {chat.folder.root}:", *(f"  {rule}" for rule in rules)]
    return CommandResult("\n".join([*listed, "", "Revoke one: /permissions revoke RULE, or all."]))


async def _complete_permissions(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    if len(words) == 1:
        return ("revoke",)
    typed = " ".join(words[1:-1])
    rules = ["all", *chat.permissions.rules] if words[0] == "revoke" else []
    return [rule.removeprefix(typed).strip() for rule in rules if rule.startswith(typed)]


PERMISSIONS = ChatCommand(
    "permissions",
    "/permissions [revoke RULE]",
    "list what is always allowed here, or revoke it",
    _run_permissions,
    _complete_permissions,
)


async def _run_mode(chat: Chat, argument: str) -> CommandResult:
    if argument:
        if (mode := next((one for one in MODES if one == argument), None)) is None:
            raise InvalidInput(f"There is no mode {argument!r}: use {', '.join(MODES)}.")
        chat.permissions.mode = mode
    rows = [("*" if name == chat.permissions.mode else " ", name, about) for name, about in _MODES.items()]
    return page(Table(rows, labels=False))


async def _complete_modes(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return MODES if len(words) == 1 else ()


_MODES: dict[Mode, str] = {
    "ask": "ask before each change and command",
    "accept-edits": "write files of the folder without asking, except protected ones",
    "plan": "change nothing: only read and search",
}
MODE = ChatCommand("mode", "/mode [NAME]", "show what is asked, or change it", _run_mode, _complete_modes)
_EXTENSIONS = {"messages": "json"}


async def _run_export(chat: Chat, argument: str) -> CommandResult:
    written, format = split_arguments(argument, 2, EXPORT.usage)
    if written in EXPORT_FORMATS and not format:
        written, format = "", written
    format = format or EXPORT_FORMATS[0]
    stem = _file_stem(await shorten_id(chat.sessions, chat.record.id))
    file = _resolve_export_path(chat, written or f"{stem}.{_EXTENSIONS.get(format, 'jsonl')}")
    exported = await export_session(chat.sessions, chat.record.id, cast("ExportFormat", format))
    await to_thread.run_sync(_write_new_file, file, exported.data)
    report = f"Written to {file}, {len(exported.data):,} bytes in the format {format}."
    return CommandResult("\n".join([report, *(f"- {note}" for note in exported.warnings)]))


def _file_stem(session_id: str) -> str:
    """Returns a file name for any session id: an imported one may be a path."""
    return re.sub(r"[^\w.-]+", "-", session_id).lstrip(".-")[:100] or "session"


def _resolve_export_path(chat: Chat, written: str) -> Path:
    """Resolves a path relative to the chat's folder, with ~ expanded."""
    try:
        return (chat.folder.root / Path(written).expanduser()).absolute()
    except RuntimeError as problem:
        raise InvalidInput(f"{written!r} is not a valid path ({problem}): name a file.") from None


def _write_new_file(file: Path, data: bytes) -> None:
    """Writes a new file; raises `InvalidInput` if it exists."""
    try:
        with file.open("xb") as out:
            out.write(data)
    except FileExistsError:
        raise InvalidInput(f"{file} already exists and is not overwritten: name another file.") from None
    except ValueError as problem:
        raise InvalidInput(f"{str(file)!r} is not a valid path ({problem}): name a file.") from None


async def _complete_export(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    """Completes folders (existing files are never overwritten), then formats."""
    if len(words) != 1:
        return EXPORT_FORMATS if len(words) == 2 else ()
    above = words[0][: words[0].rfind("/") + 1]
    found = await to_thread.run_sync(
        lambda: [place.name for place in _resolve_export_path(chat, above).iterdir() if place.is_dir()]
    )
    return [*EXPORT_FORMATS, *(f"{above}{name}/" for name in sorted(found) if not name.startswith("."))]


EXPORT = ChatCommand(
    "export", "/export [FILE] [FORMAT]", "write the session to a new file", _run_export, _complete_export
)
