"""From settings to a running chat, and back out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.agent.events import AgentEvent
from holdfast.agent.tools import always_yes
from holdfast.chat import open_chat
from holdfast.chat.opening import newest_session
from holdfast.errors import InvalidInput, StoreClosed, UnknownSession
from holdfast.settings import Compaction, Hooks, Settings

pytestmark = pytest.mark.anyio
LONG = "The tide tables of Osterhaven, berth by berth. " * 400


def settled(folder: Path, *steps: str, **more: Any) -> Settings:
    (folder / "script.json").write_text(json.dumps({"steps": list(steps) or ["Fine."], "repeat": True}))
    given = {"model": f"script:{folder / 'script.json'}", "store": f"sqlite:///{folder / 'sessions.db'}"}
    return Settings(**{**given, **more})


async def test_what_is_settled_is_what_it_runs_with(tmp_path: Path) -> None:
    """Two numbers of the preset, a window, a summarizer, a switch, and a hook that says no (G7)."""
    settings = settled(
        tmp_path,
        LONG,
        summarizer=f"script:{tmp_path / 'script.json'}",
        preset="pi",
        window=20_000,
        compaction=Compaction(enabled=False, reserve_tokens=1_000, keep_recent_tokens=500),
        hooks=Hooks(before=("echo 'the harbor master says no' >&2; exit 2",)),
    )
    told: list[AgentEvent] = []
    async with open_chat(settings, folder=tmp_path, tell=told.append, approve=always_yes) as chat:
        for text in ("Read the tables.", "Read them again."):
            chat.say(text)
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


async def test_a_session_goes_on_and_an_unknown_one_is_told(tmp_path: Path) -> None:
    settings = settled(tmp_path)
    with pytest.raises(InvalidInput, match="no session to continue"):
        await newest_session(settings)
    async with open_chat(settings, folder=tmp_path, tell=lambda event: None, approve=always_yes) as chat:
        chat.say("hello")
        await chat.wait_idle()
        session = chat.record.id
    assert await newest_session(settings) == session
    async with open_chat(
        settings, folder=tmp_path, tell=lambda event: None, approve=always_yes, session=session
    ) as chat:
        assert [message["content"] for message in await chat.sessions.context(session)] == ["hello", "Fine."]
    with pytest.raises(UnknownSession):
        async with open_chat(settings, folder=tmp_path, tell=lambda event: None, approve=always_yes, session="x"):
            pass


async def test_what_goes_wrong_inside_comes_out_as_it_is(tmp_path: Path) -> None:
    """Not as a group of one: whoever opened it knows what to do about an error, and not about groups."""
    with pytest.raises(KeyError):
        async with (
            open_chat(settled(tmp_path), folder=tmp_path, tell=lambda event: None, approve=always_yes),
            anyio.create_task_group(),
        ):
            raise KeyError("berth")


async def test_without_a_model_it_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as problem:
        async with open_chat(settled(tmp_path, model=None), folder=tmp_path, tell=print, approve=always_yes):
            pass
    for hint in ("--model", "HOLDFAST_MODEL", "settings.toml", "http://localhost:8080/v1#MODEL", "script:FILE"):
        assert hint in str(problem.value)
    assert not (tmp_path / "sessions.db").exists()
