"""How each known client is pointed at the gateway: its configuration file, and the settings or variables in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from ..errors import InvalidInput

DEFAULT_PORT = 8_399
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"
FileKind = Literal["toml", "json", "lines"]
_OPENAI, _ANTHROPIC, _GOOGLE = (
    "https://api.openai.com",
    "anthropic=https://api.anthropic.com",
    "gemini=https://generativelanguage.googleapis.com",
)


class ClientSetup(msgspec.Struct, frozen=True):
    """What a client needs to send its requests to a gateway."""

    file: Path | None
    """Its configuration file; None for clients that read variables only."""
    kind: FileKind
    settings: Mapping[tuple[str, ...], str]
    """Value by its path in the file; in a file of lines, by the beginning of the line."""
    variables: Mapping[str, str] = {}
    """Environment variables that do the same."""
    upstreams: tuple[str, ...] = ()
    """Values of `holdfast serve --upstream` for its default providers."""


def parse_gateway_url(text: str) -> str:
    """Returns a gateway's address without a path."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"{text!r} is not the address of a gateway: give one such as {DEFAULT_URL}.")
    return text.rstrip("/").removesuffix("/v1")


def _home(variable: str, *below: str) -> Path:
    """Returns the folder that a variable names, else the default one in the user's home."""
    given = os.environ.get(variable)
    return Path(given) if given else Path.home().joinpath(*below)


def _codex(url: str) -> ClientSetup:
    provider = ("model_providers", "holdfast")
    return ClientSetup(
        _home("CODEX_HOME", ".codex") / "config.toml",
        "toml",
        {
            ("model_provider",): "holdfast",
            (*provider, "name"): "OpenAI",
            (*provider, "base_url"): f"{url}/v1",
            (*provider, "wire_api"): "responses",
            (*provider, "env_key"): "OPENAI_API_KEY",
        },
        upstreams=(_OPENAI,),
    )


def _claude_code(url: str) -> ClientSetup:
    name = "ANTHROPIC_BASE_URL"
    file = _home("CLAUDE_CONFIG_DIR", ".claude") / "settings.json"
    return ClientSetup(file, "json", {("env", name): url}, {name: url}, (_ANTHROPIC,))


def _opencode(url: str) -> ClientSetup:
    ends = {"openai": "v1", "anthropic": "v1", "google": "v1beta"}
    return ClientSetup(
        _home("XDG_CONFIG_HOME", ".config") / "opencode" / "opencode.json",
        "json",
        {("provider", name, "options", "baseURL"): f"{url}/{end}" for name, end in ends.items()},
        upstreams=(_OPENAI, _ANTHROPIC, _GOOGLE),
    )


def _pi(url: str) -> ClientSetup:
    addresses = {"openai": f"{url}/v1", "anthropic": url, "google": f"{url}/v1beta"}
    return ClientSetup(
        _home("PI_CODING_AGENT_DIR", ".pi", "agent") / "models.json",
        "json",
        {("providers", name, "baseUrl"): address for name, address in addresses.items()},
        upstreams=(_OPENAI, _ANTHROPIC, _GOOGLE),
    )


def _gemini(url: str) -> ClientSetup:
    name = "GOOGLE_GEMINI_BASE_URL"
    file = _home("GEMINI_CLI_HOME") / ".gemini" / ".env"
    return ClientSetup(file, "lines", {(f"{name}=",): url}, {name: url}, (_GOOGLE,))


def _aider(url: str) -> ClientSetup:
    file = Path.home() / ".aider.conf.yml"
    variables = {"OPENAI_API_BASE": f"{url}/v1", "ANTHROPIC_API_BASE": url, "GEMINI_API_BASE": url}
    others = ", ".join(f'"{name}={address}"' for name, address in list(variables.items())[1:])
    settings: dict[tuple[str, ...], str] = {("openai-api-base: ",): f"{url}/v1", ("set-env: ",): f"[{others}]"}
    return ClientSetup(file, "lines", settings, variables, (_OPENAI, _ANTHROPIC, _GOOGLE))


def _qwen_code(url: str) -> ClientSetup:
    name, address = "OPENAI_BASE_URL", f"{url}/v1"
    file = Path.home() / ".qwen" / ".env"
    return ClientSetup(file, "lines", {(f"{name}=",): address}, {name: address}, (_OPENAI,))


def _sdk(url: str) -> ClientSetup:
    variables = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url}
    return ClientSetup(None, "lines", {}, variables, (_OPENAI, _ANTHROPIC, _GOOGLE))


CLIENTS: Mapping[str, Callable[[str], ClientSetup]] = {
    "codex": _codex,
    "claude-code": _claude_code,
    "opencode": _opencode,
    "pi": _pi,
    "gemini": _gemini,
    "aider": _aider,
    "qwen-code": _qwen_code,
    "sdk": _sdk,
}
"""By name; `sdk` is every program on the OpenAI, Anthropic or Google SDK."""
