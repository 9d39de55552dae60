"""How each client is installed, configured for a base URL, and run on one prompt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.clients.packages import client_python, node_folder, npm_program, python_version
from tests.clients.task import PROMPT, SECOND_PROMPT

MODEL = "harbor-1"
KEY = "sk-harbor-0123456789"
ADVERTISED = 200_000
"""Window that clients believe the model to have; the real one is smaller, as that of many local servers."""


@dataclass(frozen=True)
class Command:
    """A client ready to run in its own home."""

    argv: list[str]
    env: dict[str, str]
    again: list[str] | None = None
    """Continues the same conversation with a second prompt, where the client can."""


@dataclass(frozen=True)
class Client:
    """A published client with one endpoint."""

    name: str
    endpoint: str
    window: int
    """Tokens of the upstream's real window: the client's own prompt, and room for a few results."""
    install: Callable[[], str]
    """Installs the client and returns its version."""
    configure: Callable[[Path, str], Command]
    """Writes the configuration for an upstream into a home, and returns the command."""
    forks: int = 0
    """Forks that its second prompt makes: gemini-cli resumes with each tool result twice, which is another history."""


def _npm(package: str, program: str) -> Callable[[], str]:
    return lambda: npm_program(package, program)[1]


def _environment(home: Path, **more: str) -> dict[str, str]:
    node = str(node_folder())
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "TERM", "NODE_EXTRA_CA_CERTS")}
    path = f"{node}:{os.environ['PATH']}"
    return kept | {"PATH": path, "HOME": str(home), "TMPDIR": str(home), "NO_PROXY": "*", "CI": "1"} | more


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _connect(client: str, home: Path, url: str) -> None:
    """Lets `holdfast connect` write the client's configuration."""
    argv = [sys.executable, "-m", "holdfast", "connect", client, "--url", url, "--write"]
    subprocess.run(argv, env=os.environ | {"HOME": str(home)}, check=True, stdout=subprocess.DEVNULL)


# -- codex -----------------------------------------------------------------------------------------------------------

_CODEX = "@openai/codex"


def _codex(provider: str, limit: int | None = None) -> Callable[[Path, str], Command]:
    def configure(home: Path, url: str) -> Command:
        lines = [
            f'model = "{MODEL}"',
            'model_provider = "harbor"',
            'approval_policy = "never"',
            'sandbox_mode = "danger-full-access"',
            f"model_context_window = {ADVERTISED}",
            *([f"model_auto_compact_token_limit = {limit}"] if limit else []),
            "check_for_update_on_startup = false",
            "[model_providers.harbor]",
            f'name = "{provider}"',
            f'base_url = "{url}/v1"',
            'wire_api = "responses"',
            'env_key = "HARBOR_KEY"',
            "request_max_retries = 1",
            "stream_max_retries = 1",
        ]
        _write(home / ".codex" / "config.toml", "\n".join(lines) + "\n")
        program = str(npm_program(_CODEX, "codex")[0])
        start = [program, "exec", "--skip-git-repo-check"]
        again = [*start, "resume", "--last", SECOND_PROMPT]
        return Command([*start, PROMPT], _environment(home, HARBOR_KEY=KEY), again)

    return configure


def _codex_connected(home: Path, url: str) -> Command:
    settings = [f'model = "{MODEL}"', 'approval_policy = "never"', 'sandbox_mode = "danger-full-access"']
    _write(home / ".codex" / "config.toml", "\n".join([*settings, f"model_context_window = {ADVERTISED}"]) + "\n")
    _connect("codex", home, url)
    start = [str(npm_program(_CODEX, "codex")[0]), "exec", "--skip-git-repo-check"]
    return Command(
        [*start, PROMPT], _environment(home, OPENAI_API_KEY=KEY), [*start, "resume", "--last", SECOND_PROMPT]
    )


# -- Claude Code -----------------------------------------------------------------------------------------------------

_CLAUDE = "@anthropic-ai/claude-code"


def _claude(home: Path, url: str) -> Command:
    program = str(npm_program(_CLAUDE, "claude")[0])
    env = _environment(
        home,
        ANTHROPIC_BASE_URL=url,
        ANTHROPIC_API_KEY=KEY,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
        IS_SANDBOX="1",
    )
    start = [program, "--model", "claude-sonnet-4-6", "--dangerously-skip-permissions"]
    return Command([*start, "-p", PROMPT], env, [*start, "--continue", "-p", SECOND_PROMPT])


def _claude_connected(home: Path, url: str) -> Command:
    command = _claude(home, url)
    _connect("claude-code", home, url)
    env = {name: value for name, value in command.env.items() if name != "ANTHROPIC_BASE_URL"}
    return Command(command.argv, env, command.again)


# -- opencode --------------------------------------------------------------------------------------------------------

_OPENCODE = "opencode-ai"


def _opencode(sdk: str) -> Callable[[Path, str], Command]:
    def configure(home: Path, url: str) -> Command:
        provider = {
            "npm": sdk,
            "name": "Harbor",
            "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
            "models": {MODEL: {"name": MODEL, "limit": {"context": ADVERTISED, "output": 4_000}}},
        }
        config = {
            "autoupdate": False,
            "share": "disabled",
            "model": f"harbor/{MODEL}",
            "small_model": f"harbor/{MODEL}",
            "enabled_providers": ["harbor"],
            "permission": {"bash": "allow", "edit": "allow"},
            "provider": {"harbor": provider},
        }
        _write(home / ".config" / "opencode" / "opencode.json", json.dumps(config, indent=2))
        env = _environment(home, OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1")
        program = str(npm_program(_OPENCODE, "opencode")[0])
        start = [program, "run", "-m", f"harbor/{MODEL}"]
        return Command([*start, PROMPT], env, [*start, "--continue", SECOND_PROMPT])

    return configure


# -- pi --------------------------------------------------------------------------------------------------------------

_PI = "@earendil-works/pi-coding-agent"
_PI_OLD = "@mariozechner/pi-coding-agent"


def _pi(package: str, api: str) -> Callable[[Path, str], Command]:
    def configure(home: Path, url: str) -> Command:
        base = url if api == "anthropic-messages" else f"{url}/v1"
        models = [{"id": MODEL, "contextWindow": ADVERTISED, "maxTokens": 4_000}]
        provider = {"baseUrl": base, "api": api, "apiKey": KEY, "models": models}
        folder = home / ".pi" / "agent"
        _write(folder / "models.json", json.dumps({"providers": {"harbor": provider}}))
        env = _environment(home, PI_CODING_AGENT_DIR=str(folder), PI_OFFLINE="1")
        program = str(npm_program(package, "pi")[0])
        start = [program, "-p", "--provider", "harbor", "--model", MODEL]
        return Command([*start, PROMPT], env, [*start, "--continue", SECOND_PROMPT])

    return configure


def _pi_connected(home: Path, url: str) -> Command:
    _connect("pi", home, url)
    env = _environment(home, PI_OFFLINE="1", ANTHROPIC_API_KEY=KEY)
    start = [str(npm_program(_PI, "pi")[0]), "-p", "--provider", "anthropic", "--model", "claude-sonnet-4-5"]
    return Command([*start, PROMPT], env, [*start, "--continue", SECOND_PROMPT])


# -- gemini-cli ------------------------------------------------------------------------------------------------------

_GEMINI = "@google/gemini-cli"


def _gemini(home: Path, url: str) -> Command:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"disableAutoUpdate": True}}
    _write(home / ".gemini" / "settings.json", json.dumps(settings))
    env = _environment(home, GEMINI_API_KEY=KEY, GOOGLE_GEMINI_BASE_URL=url, GEMINI_CLI_TRUST_WORKSPACE="true")
    program = str(npm_program(_GEMINI, "gemini")[0])
    start = [program, "-y", "-m", "gemini-2.5-pro"]
    return Command([*start, "-p", PROMPT], env, [*start, "--resume", "latest", "-p", SECOND_PROMPT])


def _gemini_connected(home: Path, url: str) -> Command:
    command = _gemini(home, url)
    _connect("gemini", home, url)
    env = {name: value for name, value in command.env.items() if name != "GOOGLE_GEMINI_BASE_URL"}
    return Command(command.argv, env, command.again)


# -- SDKs and frameworks ---------------------------------------------------------------------------------------------

_AGENTS = Path(__file__).with_name("python_agents.py")


def _python(agent: str) -> Callable[[Path, str], Command]:
    def configure(home: Path, url: str) -> Command:
        env = _environment(home, OPENAI_AGENTS_DISABLE_TRACING="1", LANGSMITH_TRACING="false")
        return Command([str(client_python()), str(_AGENTS), agent, url, MODEL, KEY, PROMPT], env)

    return configure


def _version_of(package: str) -> Callable[[], str]:
    return lambda: python_version(package)


_SMALL, _MEDIUM, _LARGE = 24_000, 32_000, 45_000
CLIENTS = (
    Client("codex", "responses", _MEDIUM, _npm(_CODEX, "codex"), _codex("Harbor")),
    Client("codex-remote", "responses", _MEDIUM, _npm(_CODEX, "codex"), _codex("OpenAI", 18_000)),
    Client("claude-code", "messages", _LARGE, _npm(_CLAUDE, "claude"), _claude),
    Client("opencode-chat", "chat", _MEDIUM, _npm(_OPENCODE, "opencode"), _opencode("@ai-sdk/openai-compatible")),
    Client("opencode-responses", "responses", _MEDIUM, _npm(_OPENCODE, "opencode"), _opencode("@ai-sdk/openai")),
    Client("opencode-messages", "messages", _MEDIUM, _npm(_OPENCODE, "opencode"), _opencode("@ai-sdk/anthropic")),
    Client("pi-chat", "chat", _SMALL, _npm(_PI, "pi"), _pi(_PI, "openai-completions")),
    Client("pi-responses", "responses", _SMALL, _npm(_PI, "pi"), _pi(_PI, "openai-responses")),
    Client("pi-messages", "messages", _SMALL, _npm(_PI, "pi"), _pi(_PI, "anthropic-messages")),
    Client("pi-0.73-chat", "chat", _SMALL, _npm(_PI_OLD, "pi"), _pi(_PI_OLD, "openai-completions")),
    Client("pi-0.73-responses", "responses", _SMALL, _npm(_PI_OLD, "pi"), _pi(_PI_OLD, "openai-responses")),
    Client("gemini-cli", "generateContent", _MEDIUM, _npm(_GEMINI, "gemini"), _gemini, 1),
    Client("codex-connect", "responses", _MEDIUM, _npm(_CODEX, "codex"), _codex_connected),
    Client("claude-code-connect", "messages", _LARGE, _npm(_CLAUDE, "claude"), _claude_connected),
    Client("pi-connect", "messages", _SMALL, _npm(_PI, "pi"), _pi_connected),
    Client("gemini-cli-connect", "generateContent", _MEDIUM, _npm(_GEMINI, "gemini"), _gemini_connected, 1),
    Client("openai-sdk-chat", "chat", _SMALL, _version_of("openai"), _python("openai-chat")),
    Client("openai-sdk-responses", "responses", _SMALL, _version_of("openai"), _python("openai-responses")),
    Client("anthropic-sdk", "messages", _SMALL, _version_of("anthropic"), _python("anthropic")),
    Client("openai-agents-chat", "chat", _SMALL, _version_of("openai-agents"), _python("agents-chat")),
    Client("openai-agents", "responses", _SMALL, _version_of("openai-agents"), _python("agents-responses")),
    Client("langchain-openai", "chat", _SMALL, _version_of("langchain-openai"), _python("langchain-openai")),
    Client("langchain-responses", "responses", _SMALL, _version_of("langchain-openai"), _python("langchain-responses")),
    Client(
        "langchain-anthropic", "messages", _SMALL, _version_of("langchain-anthropic"), _python("langchain-anthropic")
    ),
)
