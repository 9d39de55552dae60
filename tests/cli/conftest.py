"""Fixtures to run commands, and files to run them on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_files import Run, conversation, write_json
from click.testing import CliRunner, Result

from holdfast import SessionService
from holdfast.cli import main
from holdfast.stores import open_store
from providers.fixtures import serve

__all__ = ["serve"]
KEYS = "OPENAI_API_KEY ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN GEMINI_API_KEY GOOGLE_API_KEY"
ADDRESSES = "OPENAI_BASE_URL ANTHROPIC_BASE_URL GOOGLE_GEMINI_BASE_URL"


@pytest.fixture(autouse=True)
def no_api_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS.split(), *ADDRESSES.split()):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process; an escaping exception fails the test."""
    monkeypatch.delenv("NO_COLOR", raising=False)

    def run(*args: Any, input: str | bytes | None = None, **env: str) -> Result:
        result = CliRunner().invoke(main, [str(arg) for arg in args], input=input, env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def refused(run: Run) -> Callable[..., str]:
    """Runs a command that must fail as bad input: exit 2, one line on stderr, nothing on stdout."""

    def refused(*args: Any, **options: Any) -> str:
        result = run(*args, **options)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("holdfast: ") and result.stderr.count("\n") == 1, result.stderr
        return result.stderr

    return refused


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """A JSON list of 600 OpenAI Chat messages."""
    return write_json(tmp_path / "chat.json", conversation("openai-chat"))


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[..., Path]:
    """Creates a store with sessions that were compacted once and then continued."""

    def make_store(name: str, sessions: int = 1, messages: int = 80) -> Path:
        path = tmp_path / name
        if not path.suffix:
            path.mkdir()

        async def fill() -> None:
            async with SessionService(open_store(path)) as service:
                await service.list()
                for number in range(sessions):
                    record = await service.create(
                        id=f"s-{number}", owner="ann", model="gpt-4o", system="Be brief.", format="openai-chat"
                    )
                    if not messages:
                        continue
                    await service.append(record.id, conversation("openai-chat", messages))
                    await service.compact(record.id, budget=3_000)
                    await service.append(record.id, {"role": "user", "content": "And then?"})

        asyncio.run(fill())
        return path

    return make_store
