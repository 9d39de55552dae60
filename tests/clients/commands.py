"""How each client is installed, configured for a base URL, and run on one prompt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.clients.packages import client_python, node_folder, npm_program, python_program, python_version
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


def _tool(package: str, program: str, python: str = sys.executable) -> Callable[[], str]:
    return lambda: python_program(package, program, python)[1]


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


# -- clients that speak as OpenAI does ---------------------------------------------------------------------------------

_CODEX_OLD = "@openai/codex@0.98.0"
_QWEN, _CLINE, _CONTINUE, _COPILOT = "@qwen-code/qwen-code", "cline", "@continuedev/cli", "@github/copilot"
_KIMI, _VIBE, _SWE = "kimi-cli==1.40.0", "mistral-vibe", "mini-swe-agent"


def _codex_old(home: Path, url: str) -> Command:
    command = _codex("Harbor")(home, url)
    program = str(npm_program(_CODEX_OLD, "codex")[0])
    start = [program, "exec", "--skip-git-repo-check"]
    return Command([*start, PROMPT], command.env, [*start, "resume", "--last", SECOND_PROMPT])


def _qwen(home: Path, url: str) -> Command:
    env = _environment(home, OPENAI_MODEL=MODEL, OPENAI_BASE_URL=f"{url}/v1", OPENAI_API_KEY=KEY)
    start = [str(npm_program(_QWEN, "qwen")[0]), "-y", "--auth-type", "openai"]
    return Command([*start, "-p", PROMPT], env, [*start, "--continue", "-p", SECOND_PROMPT])


def _qwen_connected(home: Path, url: str) -> Command:
    command = _qwen(home, url)
    _connect("qwen-code", home, url)
    env = {name: value for name, value in command.env.items() if name != "OPENAI_BASE_URL"}
    return Command(command.argv, env, command.again)


def _cline(home: Path, url: str) -> Command:
    env = _environment(home, CLINE_DIR=str(home / ".cline"))
    program = str(npm_program(_CLINE, "cline")[0])
    login = [program, "auth", "-p", "openai", "-k", KEY, "-m", MODEL, "-b", f"{url}/v1"]
    subprocess.run(login, env=env, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    return Command([program, "--yolo", PROMPT], env)


def _continue(home: Path, url: str) -> Command:
    model = {"name": "harbor", "provider": "openai", "model": MODEL, "apiBase": f"{url}/v1", "apiKey": KEY}
    model |= {"useResponsesApi": False, "roles": ["chat"], "capabilities": ["tool_use"]}
    model |= {"defaultCompletionOptions": {"contextLength": ADVERTISED, "maxTokens": 4_000}}
    _write(home / "cfg.yaml", json.dumps({"name": "harbor", "version": "1.0.0", "schema": "v1", "models": [model]}))
    start = [str(npm_program(_CONTINUE, "cn")[0]), "--config", str(home / "cfg.yaml"), "--auto"]
    return Command([*start, "-p", PROMPT], _environment(home), [*start, "--resume", "-p", SECOND_PROMPT])


def _copilot(kind: str) -> Callable[[Path, str], Command]:
    def configure(home: Path, url: str) -> Command:
        named = {"TYPE": "openai", "BASE_URL": f"{url}/v1", "API_KEY": KEY, "WIRE_API": kind}
        model = "gpt-5"
        if kind == "messages":
            named, model = {"TYPE": "anthropic", "BASE_URL": url, "API_KEY": KEY}, "claude-sonnet-4.5"
        env = {f"COPILOT_PROVIDER_{name}": value for name, value in named.items()}
        env = _environment(home, COPILOT_OFFLINE="true", COPILOT_MODEL=model, **env)
        start = [str(npm_program(_COPILOT, "copilot")[0]), "--allow-all", "--no-color"]
        return Command([*start, "-p", PROMPT], env, [*start, "--continue", "-p", SECOND_PROMPT])

    return configure


def _kimi(home: Path, url: str) -> Command:
    lines = [
        'default_model = "m"',
        "[providers.gw]",
        'type = "openai_legacy"',
        f'base_url = "{url}/v1"',
        f'api_key = "{KEY}"',
        "[models.m]",
        'provider = "gw"',
        f'model = "{MODEL}"',
        f"max_context_size = {ADVERTISED}",
    ]
    _write(home / "kimi.toml", "\n".join(lines) + "\n")
    program = str(python_program(_KIMI, "kimi", "python3.13")[0])
    start = [program, "--config-file", str(home / "kimi.toml"), "--print", "--yolo"]
    return Command([*start, "-p", PROMPT], _environment(home), [*start, "--continue", "-p", SECOND_PROMPT])


def _vibe(home: Path, url: str) -> Command:
    lines = [
        f'active_model = "{MODEL}"',
        "enable_auto_update = false",
        "enable_telemetry = false",
        "[[providers]]",
        'name = "gw"',
        f'api_base = "{url}/v1"',
        'api_key_env_var = "HARBOR_KEY"',
        'api_style = "openai"',
        'backend = "generic"',
        "[[models]]",
        f'name = "{MODEL}"',
        'provider = "gw"',
        f'alias = "{MODEL}"',
    ]
    _write(home / ".vibe" / "config.toml", "\n".join(lines) + "\n")
    env = _environment(home, VIBE_HOME=str(home / ".vibe"), HARBOR_KEY=KEY)
    start = [str(python_program(_VIBE, "vibe", "python3.12")[0]), "--trust", "--agent", "auto-approve"]
    return Command([*start, "-p", PROMPT], env, [*start, "--continue", "-p", SECOND_PROMPT])


def _swe(home: Path, url: str) -> Command:
    env = _environment(
        home,
        MSWEA_CONFIGURED="true",
        MSWEA_COST_TRACKING="ignore_errors",
        OPENAI_API_BASE=f"{url}/v1",
        OPENAI_API_KEY=KEY,
    )
    program = str(python_program(_SWE, "mini")[0])
    more = ["--exit-immediately", "-l", "0", "-o", str(home / "trajectory.json")]
    return Command([program, "-y", "-t", PROMPT, "-m", f"openai/{MODEL}", *more], env)


# -- SDKs and frameworks ---------------------------------------------------------------------------------------------

_AGENTS = Path(__file__).with_name("python_agents.py")


_PYDANTIC = "pydantic-ai"
_PYDANTIC_KINDS = {"chat": "chat", "responses": "responses", "messages": "messages", "google": "generateContent"}


def _python(agent: str, package: str | None = None) -> Callable[[Path, str], Command]:
    def configure(home: Path, url: str) -> Command:
        env = _environment(home, OPENAI_AGENTS_DISABLE_TRACING="1", LANGSMITH_TRACING="false")
        python = client_python() if package is None else python_program(package, "python")[0]
        return Command([str(python), str(_AGENTS), agent, url, MODEL, KEY, PROMPT], env)

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
    Client("codex-0.98", "responses", _MEDIUM, _npm(_CODEX_OLD, "codex"), _codex_old),
    Client("qwen-code", "chat", _LARGE, _npm(_QWEN, "qwen"), _qwen),
    Client("cline", "chat", _LARGE, _npm(_CLINE, "cline"), _cline),
    Client("continue", "chat", _MEDIUM, _npm(_CONTINUE, "cn"), _continue),
    Client("copilot-chat", "chat", _LARGE, _npm(_COPILOT, "copilot"), _copilot("completions")),
    Client("copilot-responses", "responses", _LARGE, _npm(_COPILOT, "copilot"), _copilot("responses")),
    Client("copilot-messages", "messages", _LARGE, _npm(_COPILOT, "copilot"), _copilot("messages")),
    Client("kimi-cli", "chat", _LARGE, _tool(_KIMI, "kimi", "python3.13"), _kimi),
    Client("mistral-vibe", "chat", _LARGE, _tool(_VIBE, "vibe", "python3.12"), _vibe),
    Client("mini-swe-agent", "chat", _MEDIUM, _tool(_SWE, "mini"), _swe),
    Client("qwen-code-connect", "chat", _LARGE, _npm(_QWEN, "qwen"), _qwen_connected),
    Client("codex-connect", "responses", _MEDIUM, _npm(_CODEX, "codex"), _codex_connected),
    Client("claude-code-connect", "messages", _LARGE, _npm(_CLAUDE, "claude"), _claude_connected),
    Client("pi-connect", "messages", _SMALL, _npm(_PI, "pi"), _pi_connected),
    Client("gemini-cli-connect", "generateContent", _MEDIUM, _npm(_GEMINI, "gemini"), _gemini_connected, 1),
    *(
        Client(
            f"pydantic-ai-{kind}",
            endpoint,
            _SMALL,
            _tool("pydantic-ai", "python"),
            _python(f"pydantic-{kind}", _PYDANTIC),
        )
        for kind, endpoint in _PYDANTIC_KINDS.items()
    ),
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
