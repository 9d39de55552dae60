"""`examples/web_service.py`: turns with tools over HTTP, two replicas, restarts, retries (H9)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from examples_programs.web_replicas import create, multiplier, put_turn, question, replicas
from holdfast import SessionService, check, open_store
from providers import Answer, ProviderServer, Request


def test_h9_web_service_streams_turns_with_tools_and_compacts_them(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/sessions.db"
    with ProviderServer(multiplier, window=6_000) as server, replicas(server, 2, STORE=store, WINDOW="6000") as both:
        session = create(both[0].port)
        for number in range(12):
            events = put_turn(both[number % 2].port, session, f"t{number}", question(number, 6, 7, padding=60))
            assert len([event for event in events if "delta" in event]) > 1, "streamed"
            assert str(events[-1]["reply"]).startswith(f"It is {number * 42}.")
        before = len(server.requests)
        again = put_turn(both[0].port, session, "t11", question(11, 6, 7, padding=60))
        assert again == [events[-1]] and len(server.requests) == before, "a retry asks no model"
        assert not server.refused and not server.overflowed
    names, compactions = asyncio.run(_read(store, session))
    assert names == [f"t{n}/{step}" for n in range(12) for step in ("say", "1", "1/0", "2", "2/0", "3")]
    assert compactions


async def _read(store: str, session: str) -> tuple[list[str], int]:
    async with SessionService(open_store(store)) as sessions:
        assert not check(list(await sessions.context(session)), "openai-chat")
        events = await sessions.events(session)
        ids = [event.id for event in events if event.kind == "message" and "~" not in event.id]
        return ids, sum(event.kind == "compaction" for event in events)


def test_h9_turn_retried_after_a_restart_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """The replica is killed between a call and its result: the other one runs that call, and asks with its result."""

    def kill_once(request: Request) -> Answer:
        if len(server.requests) == 2:
            both[0].kill()
        return multiplier(request)

    store = f"sqlite:///{tmp_path}/sessions.db"
    with ProviderServer(kill_once) as server, replicas(server, 2, STORE=store) as both:
        session = create(both[0].port)
        try:
            put_turn(both[0].port, session, "t", question(2, 3, 7))
        except OSError:
            pass
        except Exception as problem:
            assert type(problem).__module__ == "http.client"
        events = put_turn(both[1].port, session, "t", question(2, 3, 7))
        assert str(events[-1]["reply"]).startswith("It is 42.")
        assert not server.refused
        both[0].start()
        both[0].wait_until_ready()
        assert put_turn(both[0].port, session, "t", question(2, 3, 7)) == [events[-1]]
    names, _ = asyncio.run(_read(store, session))
    assert names == ["t/say", "t/1", "t/1/0", "t/2", "t/2/0", "t/3"]


def test_h9_web_service_compacts_after_an_overflow_and_names_what_it_cannot_do(tmp_path: Path) -> None:
    with (
        ProviderServer(multiplier, window=3_000) as server,
        replicas(server, 1, STORE=f"sqlite:///{tmp_path}/sessions.db") as (one,),
    ):
        session = create(one.port)
        for number in range(6):
            events = put_turn(one.port, session, f"t{number}", question(number, 6, 7, padding=120))
            assert "reply" in events[-1], json.dumps(events)
        assert server.overflowed == 1, "the window is learned"
        assert "No" not in str(put_turn(one.port, session, "t5", question(5, 6, 7, padding=120)))
        (event,) = put_turn(one.port, session, "huge", "word " * 9_000)
        assert "nothing more can be archived" in event["error"]
        (event,) = put_turn(one.port, "nobody", "t", "hello")
        assert "There is no session 'nobody'" in event["error"]
