"""The data behind the pages: events, time travel, compactions, actions with the version that was seen, live news."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from web_harness import RunningInspector, compact, run_inspector, talk

from holdfast import SessionService, SlidingWindow
from holdfast.context.events import Event, EventKind, new_id, now
from holdfast.stores import Log, PostgresStore, Slice, open_store
from holdfast.strategies import KeepLedger
from holdfast.triggers import always

pytestmark = pytest.mark.anyio
HOSTILE = "<img src=x onerror=alert(1)>\"'</script><script>alert(1)</script>&amp;\u202e"


async def test_rows_have_number_role_line_and_whether_they_are_archived() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        seq = await compact(running.sessions)
        reply = await running.json("/api/s/s/rows?from=2&to=4")
        assert reply["version"] == seq
        assert [row[:3] for row in reply["rows"]] == [
            [2, "message", "user"],
            [3, "message", "assistant"],
            [4, "message", "user"],
        ]
        assert reply["rows"][0][3].startswith("Ship 0 of berth N0")
        assert [row[6] for row in reply["rows"]] == [True, True, True]
        (last,) = (await running.json(f"/api/s/s/rows?from={seq}&to={seq}"))["rows"]
        assert last[1] == "compaction" and "tokens" in last[3]


async def test_replies_are_bounded() -> None:
    async with run_inspector() as running:
        await running.sessions.create(id="s")
        await running.sessions.append("s", {"role": "user", "content": "ship " * 100_000})
        await running.sessions.append("s", [{"role": "user", "content": str(number)} for number in range(900)])
        assert len((await running.json("/api/s/s/rows"))["rows"]) == 400
        event = await running.json("/api/s/s/event/1")
        assert len(event["text"]) == event["next"] == 60_000
        rest = await running.json(f"/api/s/s/event/1?offset={event['next']}")
        assert (event["text"] + rest["text"]).startswith("ship ship")
        wire = await running.json("/api/s/s/at/901/wire")
        assert len(wire["text"]) == wire["next"] == 200_000 < wire["length"]
        for path in ("/api/s/s", "/api/s/s/rows", "/api/s/s/sizes", "/api/s/s/at/901", "/s/s", "/"):
            assert len((await running.get(path)).content) < 700_000


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/s/none", 404),
        ("/api/s/s/event/999", 404),
        ("/api/s/s/at/999", 404),
        ("/api/s/s/c/2", 400),
        ("/api/s/s/rows?from=x", 400),
        ("/api/s/s/preview?strategy=nonsense", 400),
        ("/api/search?q=", 400),
        ("/s/none", 404),
    ],
)
async def test_bad_requests_say_what_is_wrong(path: str, status: int) -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        reply = await running.get(path)
        assert reply.status_code == status
        assert "Traceback" not in reply.text


async def test_context_at_has_what_the_model_saw_and_the_difference() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        seq = await compact(running.sessions)
        before, after = [await running.json(f"/api/s/s/at/{at}") for at in (seq - 1, seq)]
        assert before["count"] == 25 and before["tokens"] > after["tokens"]
        assert after["messages"][0][1] == "system"
        context = await running.sessions.context("s", format="openai-chat")
        assert after["count"] == len(context)
        compared = (await running.json(f"/api/s/s/at/{seq}?vs={seq - 1}"))["diff"]
        assert {part["kind"] for part in compared} >= {"same", "removed"}
        wire = await running.json(f"/api/s/s/at/{seq}/wire")
        assert wire["next"] is None and '"messages":[{"role":"system"' in wire["text"]
        message = await running.json(f"/api/s/s/at/{seq}/message/{after['count'] - 1}")
        assert message["text"] == "Ship 11 is noted in berths/n11.csv." and message["number"] == 25


@pytest.mark.parametrize("url", ["sqlite:///{}/sessions.db", "jsonl:{}/sessions"])
async def test_compaction_is_explained_in_a_process_of_its_own(tmp_path: Path, url: str) -> None:
    url = url.format(tmp_path)
    async with run_inspector(open_store(url), store_url=url) as running:
        await talk(running.sessions)
        seq = await compact(running.sessions)
        found = await running.json(f"/api/s/s/c/{seq}")
        assert found["agrees"] is True and found["parameters"]["strategy"] == {"kind": "KeepLedger", "max_tokens": 500}
        assert found["remarks"] == [] and found["cut"] == max(line.get("rank", 0) for line in found["page"]["lines"])
        fates = {fate[0]: fate[1] for fate in found["fates"]}
        assert fates[1] == "kept" and fates[2] == "archived" and fates[25] == "kept"
        assert any(line.get("sources") == [2] for line in found["page"]["lines"])
        before = await running.sessions.store.read("s", Slice(any_lane=True))
        tried = await running.json("/api/s/s/preview?strategy=sliding:4&at=24")
        assert tried["outcome"] == "compacted" and tried["kept"] + tried["archived"] > 4
        assert (await running.json("/api/s/s/preview?preset=holdfast&budget=600&at=20"))["fallback"]
        assert await running.sessions.store.read("s", Slice(any_lane=True)) == before


async def test_session_page_tells_that_it_is_being_compacted() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        assert "being compacted" not in (await running.get("/s/s")).text
        assert await running.sessions.store.take("s", "compaction", "a worker", 30)
        assert "being compacted now" in (await running.get("/s/s")).text
        assert (await running.json("/api/s/s"))["compacting"] is True


async def test_sizes_and_cost() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        seq = await compact(running.sessions)
        sizes = await running.json("/api/s/s/sizes")
        mark = sizes["compactions"][0]
        assert mark[0] == seq and mark[1] > mark[2]
        at = sizes["seqs"].index(seq)
        assert sizes["sizes"][at : at + 2] == mark[1:3]
        cost = await running.json("/api/s/s/cost")
        assert cost["count"] == 12 and cost["usage"]["output"] == 120 and cost["price"] > 0
        assert cost["compactions"][0]["cost"]["rewritten"] > 0
        await running.sessions.undo("s")
        assert (await running.json("/api/s/s/sizes"))["compactions"][0][4] is True


async def test_event_has_its_parts_and_a_call_has_its_result() -> None:
    async with run_inspector() as running:
        await running.sessions.create(id="s", format="openai-chat")
        await running.sessions.append(
            "s",
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "See **this**."},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                    {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2Zz4="}},
                ],
            },
        )
        call = {"id": "c", "type": "function", "function": {"name": "edit", "arguments": '{"path": "a.py"}'}}
        await running.sessions.append("s", {"role": "assistant", "content": None, "tool_calls": [call]})
        await running.sessions.append("s", {"role": "tool", "tool_call_id": "c", "content": "done"})
        parts = (await running.json("/api/s/s/event/1"))["parts"]
        assert [one["kind"] for one in parts] == ["text", "image", "sentence"]  # an SVG can contain scripts
        assert parts[1]["src"] == "data:image/png;base64,iVBORw0KGgo="
        called = await running.json("/api/s/s/event/2")
        assert called["parts"] == [{"kind": "call", "text": '{"path":"a.py"}', "name": "edit"}]
        assert called["beside"][0] == 3 and called["beside"][1][0]["text"] == "done"
        assert (await running.json("/api/s/s/event/3"))["beside"][0] == 2
        saw = (await running.json("/api/s/s/at/3"))["messages"]
        assert [(row[1], row[2], row[5]) for row in saw[1:]] == [("call", "a.py", "edit"), ("result", "← done", "edit")]
        rows = (await running.json("/api/s/s/rows"))["rows"]
        assert [(row[2], row[3], row[9]) for row in rows[1:]] == [
            ("call", "a.py", "edit"),
            ("result", "← done", "edit"),
        ]


async def test_marks_of_the_log_are_sentences() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        seq = await compact(running.sessions)
        await running.sessions.undo("s")
        parts = (await running.json(f"/api/s/s/event/{seq}"))["parts"]
        assert [one["kind"] for one in parts] == ["sentence", "note", "data"]
        assert parts[0]["text"].startswith("Compacted from ") and "Ship" in parts[1]["text"]
        (undone, *_) = (await running.json(f"/api/s/s/event/{seq + 1}"))["parts"]
        assert undone["text"] == "Went back over a compaction: every message is visible again."


async def test_encrypted_summary_is_explained() -> None:
    from holdfast.web.content import sentences_of

    body = {"strategy": "codex", "tokens_before": 9, "tokens_after": 4, "archived": []}
    assert "is encrypted" in sentences_of(Event("x", EventKind.COMPACTION, now(), body))[1]


async def test_first_figures_of_a_preview_come_from_sizes_alone() -> None:
    async with run_inspector() as running:
        await talk(running.sessions, turns=40)
        size = await running.sessions.size("s")
        first = await running.json("/api/s/s/preview?quick=1&strategy=ledger&budget=1000&at=81")
        exact = await running.json("/api/s/s/preview?strategy=ledger&budget=1000&at=81")
        assert first["quick"] and first["tokens_before"] == size.tokens == exact["tokens_before"]
        assert first["kept"] + first["archived"] == 81 and first["tokens_after"] == 500
        assert exact["lines"] >= exact["archived"] > 0
        at_60 = await running.json("/api/s/s/at/60?quick=1")
        assert at_60["count"] == 60
        assert 0 < at_60["tokens"] < size.tokens
        await compact(running.sessions)
        assert (await running.json("/api/s/s/at/60?quick=1")) == {"count": 0}


async def test_preview_ends_when_the_browser_no_longer_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = anyio.Event()

    async def work_forever(*_: object) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with run_inspector() as running:
        await talk(running.sessions)
        monkeypatch.setattr(running.inspector.api.worker, "preview", work_forever)
        with anyio.move_on_after(0.5):
            await running.get("/api/s/s/preview?strategy=ledger&budget=1000")
        with anyio.fail_after(20):
            await ended.wait()


async def test_redacted_text_is_gone_from_an_explained_compaction() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        seq = await compact(running.sessions)
        assert "Osterhaven" in (await running.get(f"/api/s/s/c/{seq}")).text
        await running.sessions.redact_text("s", "Osterhaven")
        found = await running.get(f"/api/s/s/c/{seq}")
        assert found.status_code == 200 and "Osterhaven" not in found.text


async def test_sessions_are_listed_a_page_at_a_time_with_what_a_person_looks_for() -> None:
    async with run_inspector() as running:
        for number in range(25):
            imported = {"title": f"Ship {number}", "folder": "/harbour", "imported": {"from": "codex"}}
            await running.sessions.create(id=f"s{number}", metadata=imported, model="claude-sonnet-4-5")
            await anyio.sleep(0.002)  # sessions are sorted by the millisecond in which they were created
        await running.sessions.fork("s24", id="fork")
        first = await running.json("/api/sessions")
        assert first["count"] == 26 and len(first["sessions"]) == 20
        assert (first["sessions"][0]["id"], first["sessions"][0]["parent"]) == ("fork", "s24")
        rest = (await running.json("/api/sessions?from=20"))["sessions"]
        assert [one["id"] for one in rest] == [f"s{number}" for number in (5, 4, 3, 2, 1, 0)]
        assert [rest[0][name] for name in ("title", "folder", "tool", "model", "path")] == [
            "Ship 5",
            "/harbour",
            "codex",
            "claude-sonnet-4-5",
            "/s/s5",
        ]
        assert (await running.json("/api/sessions?from=26"))["sessions"] == []


async def test_session_that_cannot_be_read_does_not_hide_the_others() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        await running.sessions.create(id="broken")
        await running.sessions.store.append("broken", [Event("x", "message", "", {"message": {"role": 7}})])
        broken, good = (await running.json("/api/sessions"))["sessions"]
        assert "Ship 0 of berth N0" in good["title"] and good["state"] == "fine"
        assert "cannot be read" in broken["title"] and broken["state"] == "unreadable" and broken["size"] is None
        assert (await running.get("/s/broken")).status_code == 500
        assert (await running.get("/api/s/broken/rows")).json()["rows"][0][3] == "(cannot be read)"


async def test_search_finds_archived_events_in_all_sessions() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        await compact(running.sessions)
        hits = (await running.json("/api/search?q=N3 timber"))["hits"]
        (hit,) = (hit for hit in hits if hit["role"] != "compaction")  # its notes may have the words, too
        assert (hit["seq"], hit["archived"], hit["path"]) == (8, True, "/s/s")
        page = (await running.get("/search?q=timber")).text
        assert 'href="/s/s?e=8"' in page
        assert "<mark>timber</mark>" in page and "events in 1 session<" in page
        assert page.count("<h2>") == 1 and "Ship 0 of berth N0" in page
        assert "Search all sessions" in (await running.get("/search?q=timber&session=s")).text


async def test_actions_change_the_session() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        await compact(running.sessions)
        version = await running.sessions.get("s")
        assert (await running.act("restore", {"version": version.version, "event": "u1"})).json()["seq"] == 27
        assert (await running.act("pin", {"version": 27, "event": "u1"})).status_code == 200
        forked = (await running.act("fork", {"version": 28, "event": "a3"})).json()
        assert (await running.sessions.get(forked["session"])).parent_seq == 9
        assert (await running.act("undo", {"version": 28})).status_code == 200
        assert not (await running.sessions.size("s")).is_compacted
        done = await running.act("compact", {"version": 29, "strategy": "sliding:6"})
        assert done.json()["outcome"] == "compacted"
        assert (await running.act("explode", {"version": 30})).status_code == 400


async def test_undo_and_redo_say_what_will_be_there_and_go_both_ways() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        seq = await compact(running.sessions)
        before = await running.sessions.size("s")
        plan = await running.json("/api/s/s/before/undo")
        await running.sessions.append("s", {"role": "user", "content": "One more ship."})
        assert (await running.act("undo", {"version": seq})).status_code == 200
        undone = await running.sessions.size("s")
        added = undone.tokens - int(plan["facts"][0][1].split(" → ")[1].replace(",", ""))
        assert plan["title"] == f"Undo compaction #{seq}" and 0 < added < 20
        assert plan["facts"][1][1] == f"{before.count} → {undone.count - 1}" and "lines of notes" in plan["notes"][0]
        overview = await running.json("/api/s/s")
        assert overview["last"] is None and overview["undone"]["seq"] == seq
        redo = await running.json("/api/s/s/before/redo")
        assert redo["title"] == f"Redo compaction #{seq}"
        given = {"version": overview["version"], "event": overview["undone"]["id"]}
        assert (await running.act("redo", given)).status_code == 200
        again = await running.json("/api/s/s")
        assert again["last"]["seq"] == seq and again["undone"] is None
        assert redo["facts"][0][1].endswith(f" → {again['size']['tokens']:,}")
        texts = [str(message["content"]) for message in (await running.sessions.context("s")).messages]
        assert texts[-1] == "One more ship."
        assert (await running.json("/api/s/s/sizes"))["compactions"][0][4] is False


async def test_restore_and_fork_say_what_will_be_there() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        await compact(running.sessions)
        version = (await running.sessions.get("s")).version
        restore = await running.json("/api/s/s/before/restore?seq=4")
        assert restore["title"] == "Restore #4" and "quoted copy" in restore["notes"][0]
        fork = await running.json("/api/s/s/before/fork?seq=9")
        context = await running.sessions.context_at("s", "a3")
        assert fork["facts"] == [
            ["tokens of the fork", f"{context.tokens:,}"],
            ["messages of the fork", str(len(context))],
        ]
        assert (await running.get("/api/s/s/before/redo")).status_code == 400
        assert (await running.sessions.get("s")).version == version


@pytest.mark.parametrize("action", ["undo", "pin", "restore", "fork", "compact"])
async def test_action_on_an_older_version_is_a_conflict_and_loses_nothing(action: str) -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        seen = await compact(running.sessions)
        other = SessionService(running.sessions.store)
        await other.append("s", {"role": "user", "content": "One more ship."})
        await other.compact("s", always, SlidingWindow(2), "rebase")
        before = await running.sessions.store.read("s", Slice(any_lane=True))
        reply = await running.act(action, {"version": seen, "event": "u1", "strategy": "sliding:1"})
        assert reply.status_code == 409 and "meanwhile" in reply.json()["error"]
        assert await running.sessions.store.read("s", Slice(any_lane=True)) == before
        assert len(await running.sessions.list()) == 1


@pytest.fixture(params=["sqlite", "jsonl", "postgres"])
def open_again(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Log]:
    """Opens the same store, as another process does."""
    if request.param == "postgres":
        url, tenant = request.getfixturevalue("postgres"), f"web-{new_id()}"
        return lambda: PostgresStore(url, tenant=tenant)
    return lambda: open_store(f"sqlite:///{tmp_path}/s.db" if request.param == "sqlite" else f"jsonl:{tmp_path}/s")


async def test_live_stream_tells_of_an_append_elsewhere(open_again: Callable[[], Log]) -> None:
    async with run_inspector(open_again()) as running, SessionService(open_again()) as other:
        await talk(running.sessions)
        with anyio.fail_after(60):
            async with running.client.stream("GET", f"{running.url}/api/s/s/live") as stream:
                lines = stream.aiter_lines()
                assert await anext(lines) == "data: 25"
                await other.append("s", {"role": "user", "content": "One more ship."})
                with anyio.fail_after(20):
                    assert [await anext(lines), await anext(lines)] == ["", "data: 26"]
                rows = (await running.json("/api/s/s/rows?from=26"))["rows"]
                assert rows[0][3] == "One more ship."
        await running.sessions.close()


async def hostile_session(sessions: SessionService) -> str:
    """A session with a hostile text in every field that a client or a model writes."""
    session_id = f"../{HOSTILE}"
    call: dict[str, Any] = {
        "id": HOSTILE,
        "type": "function",
        "function": {"name": HOSTILE, "arguments": f'{{"{HOSTILE[0]}": 1}}'},
    }
    await sessions.create(
        id=session_id, format="openai-chat", model=HOSTILE, owner=HOSTILE, system=HOSTILE, metadata={"title": HOSTILE}
    )
    await sessions.append(session_id, {"role": "user", "content": HOSTILE}, id=HOSTILE)
    await sessions.append(session_id, {"role": "assistant", "content": HOSTILE, "tool_calls": [call]})
    await sessions.append(session_id, {"role": "tool", "tool_call_id": HOSTILE, "content": HOSTILE})
    await sessions.append(session_id, {"role": "user", "content": HOSTILE}, lane=HOSTILE)
    for number in range(12):
        await sessions.append(session_id, {"role": "user", "content": f"{HOSTILE} {number}"})
        await sessions.append(session_id, {"role": "assistant", "content": f"{HOSTILE} ok {number}"})
    await sessions.compact(session_id, always, KeepLedger(500), instructions=HOSTILE)
    body = {"outcome": "summary_failed", "why": HOSTILE, "failures": 1, "retry_at": 0, "calls": 1}
    await sessions.store.append(session_id, [Event(new_id(), EventKind.ATTEMPT, now(), body)])
    return session_id


async def open_everything(running: RunningInspector, path: str) -> list[str]:
    paths = ["/", f"/search?q={HOSTILE[1:4]}", path, f"{path}/at/9", f"{path}/at/9?vs=3", f"{path}/try", f"{path}/cost"]
    return [(await running.get(one)).text for one in paths]


async def test_hostile_text_stays_text_in_every_page() -> None:
    from holdfast.web.addresses import session_path

    async with run_inspector() as running:
        path = session_path(await hostile_session(running.sessions))
        assert path.startswith("/s/~")
        for page in await open_everything(running, path):
            assert "<title>" in page
            assert "<img" not in page and "<script>alert" not in page
            assert page.count("<script") <= 1
        reply = await running.get(f"/api{path}/rows")
        assert (
            reply.headers["content-type"] == "application/json" and reply.headers["x-content-type-options"] == "nosniff"
        )
