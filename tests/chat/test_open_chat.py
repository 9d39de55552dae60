"""`open_chat`: from settings to a running chat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.agent.events import AgentEvent
from holdfast.agent.tools import Sandbox, approve_all
from holdfast.chat.open_chat import newest_session, open_chat
from holdfast.errors import InvalidInput, StoreClosed, UnknownSession
from holdfast.settings import CompactionSettings, HookSettings, Settings

pytestmark = pytest.mark.anyio
LONG = "The tide tables of Osterhaven, berth by berth. " * 400


def make_settings(folder: Path, *steps: str, **more: Any) -> Settings:
    (folder / "script.json").write_text(json.dumps({"steps": list(steps) or ["Fine."], "repeat": True}))
    given = {"model": f"script:{folder / 'script.json'}", "store": f"sqlite:///{folder / 'sessions.db'}"}
    return Settings(**{**given, **more})


async def test_open_chat_applies_all_settings(tmp_path: Path) -> None:
    """Two numbers of the preset, a window, a summarizer, a switch, and a hook that vetoes (G7)."""
    settings = make_settings(
        tmp_path,
        LONG,
        summarizer=f"script:{tmp_path / 'script.json'}",
        preset="pi",
        window=20_000,
        compaction=CompactionSettings(enabled=False, reserve_tokens=1_000, keep_recent_tokens=500),
        hooks=HookSettings(before=("echo 'the harbor master says no' >&2; exit 2",)),
    )
    events: list[AgentEvent] = []
    async with open_chat(settings, folder=tmp_path, on_event=events.append, approve=approve_all) as chat:
        for text in ("Read the tables.", "Read them again."):
            chat.send(text)
            await chat.wait_idle()
        state = await chat.state()
        assert (state.preset, state.window, state.auto) == ("pi", 20_000, False)
        assert "1,000" in chat.preset.figures["compacts"] and "500" in chat.preset.figures["keeps"]
        assert chat.sessions.estimator.name == "chars/4", "a preset counts as its document does"
        assert chat.summarizer is not None and chat.summarizer is not chat.model
        done = await chat.compact()
        assert (done.outcome, done.why) == ("vetoed", "the harbor master says no")
    with pytest.raises(StoreClosed):
        await chat.state()


async def test_open_chat_resumes_session_and_rejects_unknown_one(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    with pytest.raises(InvalidInput, match="no session to continue"):
        await newest_session(settings, tmp_path)
    async with open_chat(settings, folder=tmp_path, on_event=lambda event: None, approve=approve_all) as chat:
        chat.send("hello")
        await chat.wait_idle()
        session = chat.record.id
    assert await newest_session(settings, tmp_path) == session
    async with open_chat(
        settings, folder=tmp_path, on_event=lambda event: None, approve=approve_all, session=session
    ) as chat:
        assert [message["content"] for message in await chat.sessions.context(session)] == ["hello", "Fine."]
    with pytest.raises(UnknownSession):
        async with open_chat(settings, folder=tmp_path, on_event=lambda event: None, approve=approve_all, session="x"):
            pass


async def test_open_chat_raises_inner_exception_unwrapped(tmp_path: Path) -> None:
    """Not wrapped in an exception group of one."""
    with pytest.raises(KeyError):
        async with (
            open_chat(make_settings(tmp_path), folder=tmp_path, on_event=lambda event: None, approve=approve_all),
            anyio.create_task_group(),
        ):
            raise KeyError("berth")


async def test_open_chat_without_model_explains_how_to_set_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as problem:
        async with open_chat(make_settings(tmp_path, model=None), folder=tmp_path, on_event=print, approve=approve_all):
            pass
    for hint in ("--model", "HOLDFAST_MODEL", "settings.toml", "http://localhost:8080/v1#MODEL", "script:FILE"):
        assert hint in str(problem.value)
    assert not (tmp_path / "sessions.db").exists()


async def test_continue_finds_the_session_last_used_in_the_folder(tmp_path: Path) -> None:
    """Not the newest of the store, and not the one created last."""
    settings, used = make_settings(tmp_path), dict[str, str]()
    for name in ("east", "west"):
        (tmp_path / name).mkdir()

    async def talk(name: str, session: str | None = None) -> str:
        async with open_chat(
            settings, folder=tmp_path / name, on_event=lambda event: None, approve=approve_all, session=session
        ) as chat:
            chat.send("hello")
            await chat.wait_idle()
            return chat.record.id

    used["east"], other, used["west"] = await talk("east"), await talk("east"), await talk("west")
    await talk("east", used["east"])
    for name in ("east", "west"):
        assert await newest_session(settings, tmp_path / name) == used[name]
    assert other not in used.values()
    with pytest.raises(InvalidInput, match="no session to continue in"):
        await newest_session(settings, tmp_path)


async def test_chat_without_a_message_leaves_no_session(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    async with open_chat(settings, folder=tmp_path, on_event=lambda event: None, approve=approve_all) as chat:
        await chat.new()
        chat.send("hello")
        await chat.wait_idle()
        session = chat.record.id
        await chat.new()
        assert {record.id for record in await chat.sessions.list()} == {session, chat.record.id}
    async with open_chat(
        settings, folder=tmp_path, on_event=lambda event: None, approve=approve_all, session=session
    ) as chat:
        assert [record.id for record in await chat.sessions.list()] == [session]


async def test_chat_does_not_open_without_the_sandbox_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidInput, match="needs bubblewrap"):
        async with open_chat(
            make_settings(tmp_path), folder=tmp_path, on_event=print, approve=approve_all, sandbox=Sandbox()
        ):
            pass
