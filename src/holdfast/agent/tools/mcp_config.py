"""Definitions of MCP servers: `mcpServers` in `.mcp.json` of a project and in `mcp.json` of the user."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ...context.events import digest_of
from ...errors import InvalidInput
from ...io.files import read_regular_file
from ...messages import Json
from ...messages.json_text import decodable
from ...trust import Project

PROJECT_FILE, USER_FILE = ".mcp.json", "mcp.json"
_MAX_BYTES = 1_000_000
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


class McpServerConfig(msgspec.Struct, frozen=True):
    """How to reach one server: a command to start, or a URL."""

    name: str
    file: str
    """Where it is defined."""
    is_own: bool
    """True if the user defined it, so that it needs no agreement."""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    type: Literal["stdio", "http", "sse"] = "stdio"
    written: Json = {}
    """The definition with its variables not replaced, as it is shown to the user."""

    @property
    def target(self) -> str:
        """The command line or the URL, as written."""
        return str(self.written.get("url") or " ".join([self.written["command"], *self.written.get("args", ())]))

    @property
    def rule(self) -> str:
        """Names the user's agreement to start it, in the rules of a folder; it holds for this definition only."""
        return f"mcp_server {self.name} {digest_of(self.written)[:12]}"


@decodable
class _Entry(msgspec.Struct, frozen=True):
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    type: Literal["stdio", "http", "streamable-http", "sse"] | None = None
    disabled: bool = False


def read_mcp_servers(
    own: Path, project: Project | None, environ: Mapping[str, str] = os.environ
) -> tuple[list[McpServerConfig], list[str]]:
    """Reads the user's file and a trusted project's, the one nearest to the working folder.

    Returns the servers, and a sentence for each entry or file that is invalid.

    A server of the user takes precedence over one of the project with the same name.
    """
    servers: dict[str, McpServerConfig] = {}
    problems: list[str] = []
    places = [folder / PROJECT_FILE for folder in (project.folders if project is not None else ())]
    nearest = next((file for file in places if file.exists()), None)
    for file in (own, nearest):
        if file is None or not file.exists():
            continue
        try:
            read = read_regular_file if project is None or file is own else project.read
            entries = _entries(read(file, _MAX_BYTES) or b"")
        except (OSError, InvalidInput) as problem:
            problems.append(f"The MCP servers in {file} are left out: {problem}")
            continue
        for name, entry in entries.items():
            try:
                config = _server(name, entry, file, file is own, environ)
            except InvalidInput as problem:
                problems.append(f"The MCP server {name!r} in {file} is left out: {problem}")
            else:
                if config is not None:
                    servers.setdefault(name, config)
    return list(servers.values()), problems


def _entries(content: bytes) -> dict[str, Any]:
    try:
        data = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        raise InvalidInput(f"it is not valid JSON ({problem}).") from None
    servers = data.get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise InvalidInput("it has no object mcpServers.")
    return servers


def _server(name: str, entry: Any, file: Path, is_own: bool, environ: Mapping[str, str]) -> McpServerConfig | None:
    if not _NAME.fullmatch(name):
        raise InvalidInput("a name has letters, digits, - and _, and at most 40 of them.")
    try:
        given = msgspec.convert(entry, _Entry)
    except msgspec.ValidationError as problem:
        raise InvalidInput(f"{problem}.") from None
    if given.disabled:
        return None
    if bool(given.command) == bool(given.url):
        raise InvalidInput("give it a command or a url.")
    kind: Literal["stdio", "http", "sse"] = "stdio" if given.command else "sse" if given.type == "sse" else "http"
    return McpServerConfig(
        name,
        str(file),
        is_own,
        _expand(given.command, environ),
        tuple(_expand(word, environ) for word in given.args),
        {key: _expand(value, environ) for key, value in given.env.items()},
        _expand(given.url, environ),
        {key: _expand(value, environ) for key, value in given.headers.items()},
        kind,
        entry,
    )


def _expand(text: str, environ: Mapping[str, str]) -> str:
    """Replaces `${VAR}` and `${VAR:-default}`; raises `InvalidInput` for a variable that is not set."""

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        if (found := environ.get(name) or default) is None:
            raise InvalidInput(f"the variable {name} is not set.")
        return found

    return _VARIABLE.sub(value, text)
