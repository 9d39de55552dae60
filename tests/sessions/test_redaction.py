"""Redaction: what is redacted is gone, from every file, index, fork and context, and for every process (H1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast import Outcome, SessionService, SlidingWindow
from holdfast.errors import Conflict, InvalidInput, UnknownSession
from holdfast.models import ScriptedModel
from holdfast.sessions.redaction import Redaction
from holdfast.sessions.scrubbing import NotesScrubber
from holdfast.sessions.text_scrubber import REDACTED
from holdfast.stores import JSONLStore, MemoryStore, PostgresStore, Slice, SQLiteStore
from holdfast.strategies import KeepLast, KeepLedger, Summary
from holdfast.summaries import AsUser, FreeText
from holdfast.triggers import always
from stores.databases import raw_connection

pytestmark = pytest.mark.anyio
SECRET = "sk-live-7Hq2Zr9Wt4"
SUMMARY = Summary(KeepLast(1), FreeText(), AsUser(), verify=False)
KINDS = ("jsonl", "sqlite", "postgres")


@pytest.fixture(params=KINDS)
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """A function that opens the same store, as another process would."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres")
        return lambda: PostgresStore(url, tenant=str(tmp_path))
    return lambda: JSONLStore(tmp_path / "log") if request.param == "jsonl" else SQLiteStore(tmp_path / "log.db")


def call(id: str, **arguments: str) -> dict[str, Any]:
    tool = {"id": id, "type": "function", "function": {"name": "bash", "arguments": str(arguments)}}
    return {"role": "assistant", "content": None, "tool_calls": [tool]}


async def fill(service: SessionService, session: str = "s", turns: int = 6) -> None:
    """A session whose second result has the secret in an error line."""
    for turn in range(turns):
        await service.append(session, {"role": "user", "content": f"Go on with part {turn} of the harbour."})
        await service.append(session, call(f"c{turn}", command=f"make part{turn}"))
        output = f"ERROR in /srv/deploy_{turn}.py: part{turn} failed, exit 1\n" + "The water is deep. " * 60
        if turn == 1:
            output = f"ERROR {output}\nERROR denied: API_TOKEN={SECRET} for vault_7Hq2.example\n"
        await service.append(session, {"role": "tool", "tool_call_id": f"c{turn}", "content": output}, id=f"r{turn}")
        await service.append(session, {"role": "assistant", "content": f"Part {turn} is done."})


def files_with(folder: Path, text: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


async def rows_with(request: pytest.FixtureRequest, tenant: Path, text: str) -> list[str]:
    """Tables of PostgreSQL that have the text in a row of this tenant."""
    found = []
    async with raw_connection(request.getfixturevalue("postgres")) as connection:
        tables = await connection.fetch(
            "SELECT table_name, bool_or(column_name = 'session') FROM information_schema.columns "
            "WHERE table_schema = 'holdfast' GROUP BY 1 HAVING bool_or(column_name IN ('session', 'tenant'))"
        )
        for table, of_session in tables:
            own = (
                "t.session IN (SELECT key FROM holdfast.sessions WHERE tenant = $2)" if of_session else "t.tenant = $2"
            )
            query = f'SELECT count(*) FROM holdfast."{table}" AS t WHERE {own} AND t::text LIKE $1'
            if await connection.fetchval(query, f"%{text}%", str(tenant)):
                found.append(table)
        await connection.execute("SET enable_seqscan = off")
        if await connection.fetchval(
            "SELECT count(*) FROM holdfast.search WHERE words @@ $1::tsquery", f"'{text.lower()}'"
        ):
            found.append("search_by_words")
    return found


def assert_nothing_left(service: SessionService, done: Redaction) -> None:
    """PostgreSQL keeps dead rows, which it removes itself."""
    [*left] = done.left
    if isinstance(service.store, PostgresStore):
        assert "VACUUM" in left.pop(0)
    assert left == []


async def test_h1_redacted_result_is_gone_from_notes_index_export_and_files(
    reopen: Callable[[], Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The ledger had quoted the line, its names and its error."""
    async with SessionService(reopen()) as service:
        await service.create(id="s")
        await fill(service)
        assert (await service.compact("s", always, KeepLedger(900))).outcome == Outcome.COMPACTED
        assert SECRET in str((await service.context("s")).messages)
        await service.redact("s", "r1")
        everything = str([await service.export("s"), (await service.context("s")).messages])
        for word in (SECRET, "vault_7Hq2", "7Hq2Zr9Wt4"):
            assert word not in everything
            assert await service.store.search(word) == []
        assert "deploy_0.py" in everything, "what other messages have stays"
        assert await service.verify("s") == []
        assert not files_with(tmp_path, SECRET)
        if isinstance(service.store, PostgresStore):
            assert not await rows_with(request, tmp_path, SECRET)
    assert not files_with(tmp_path, SECRET)


async def test_h1_redaction_after_a_compaction_by_another_process(reopen: Callable[[], Any], tmp_path: Path) -> None:
    async with SessionService(reopen()) as service, SessionService(reopen()) as worker:
        await service.create(id="s")
        await fill(service)
        await service.context("s")
        await worker.compact("s", always, KeepLedger(900))
        await service.redact("s", "r1")
        for reader in (service, worker):
            assert SECRET not in str([await reader.export("s"), (await reader.context("s")).messages])
            assert await reader.verify("s") == []
            assert await reader.store.search(SECRET) == []


async def test_h1_redaction_reaches_forks_lanes_copies_and_memory(reopen: Callable[[], Any], tmp_path: Path) -> None:
    async with SessionService(reopen(), summarizer=ScriptedModel([f"It used {SECRET}."], repeat=True)) as service:
        await service.create(id="s")
        await fill(service, turns=3)
        await service.append("s", {"role": "user", "content": "Look."}, lane="sub")
        await service.append("s", {"role": "assistant", "content": "I look."}, lane="sub")
        fork = await service.fork("s", id="f")
        grandchild = await service.fork("f", id="g")
        for session, lane in (("s", None), ("s", "sub"), ("f", None), ("g", None)):
            await service.compact(session, always, SUMMARY, lane=lane)
        await service.restore("f", "r1")
        assert SECRET in str([await service.export(fork.id), await service.export(grandchild.id)])
        await service.redact("g", "r1")
        for session in ("s", "f", "g"):
            assert SECRET not in str([await service.export(session), (await service.context(session)).messages])
            assert await service.verify(session) == []
        assert await service.store.search(SECRET) == []
        assert not files_with(tmp_path, SECRET)


async def test_h1_redacted_text_is_gone_from_every_path(
    reopen: Callable[[], Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """System prompt, metadata, message, arguments, result, reasoning, memory, summary, lane, fork, search, export."""
    secret = 'p"ä\\ss-w0rd-Zr9Wt4'
    async with SessionService(reopen(), summarizer=ScriptedModel([f"The word is {secret}."], repeat=True)) as service:
        await service.create(id="s", system=f"Use {secret}.", metadata={"title": secret, secret: 1}, format="anthropic")
        thinking = {"type": "thinking", "thinking": f"It is {secret}.", "signature": "c2ln"}
        use = {"type": "tool_use", "id": "t", "name": "login", "input": {secret: [secret]}}
        result = {"type": "tool_result", "tool_use_id": "t", "content": f"welcome {secret}"}
        await service.append("s", {"role": "user", "content": f"My word is {secret}, ok?"})
        await service.append("s", {"role": "assistant", "content": [thinking, use]})
        await service.append("s", {"role": "user", "content": [result]})
        await service.append("s", {"role": "assistant", "content": "Done."})
        await service.remember("s", f"The user's word is {secret}")
        await service.append("s", {"role": "user", "content": f"in a lane: {secret}"}, lane="sub")
        await service.fork("s", id="f")
        await service.append("f", {"role": "user", "content": f"in a fork: {secret}"})
        for session in ("s", "f"):
            await service.compact(session, always, SUMMARY)
        done = await service.redact_text("s", secret)
        assert done.events == 8
        assert_nothing_left(service, done)
        shown = str([[await service.export(name), (await service.context(name)).request] for name in ("s", "f")])
        assert "Zr9Wt4" not in shown
        assert "[redacted]" in str((await service.get("s")).system)
        assert await service.store.search("Zr9Wt4") == []
        assert await service.verify("s") == await service.verify("f") == []
        assert not files_with(tmp_path, "Zr9Wt4")
        if isinstance(service.store, PostgresStore):
            assert not await rows_with(request, tmp_path, "Zr9Wt4")
        assert await service.redact_text("s", secret) == Redaction()
        with pytest.raises(InvalidInput, match="nothing to redact"):
            await service.redact_text("s", "  ")


@pytest.mark.parametrize("shown_thinking", ["the same thinking", "another block of thinking", "thinking alone"])
async def test_h1_a_kept_reply_stays_when_its_thinking_is_redacted(shown_thinking: str) -> None:
    """A compaction drops signed thinking by edits; those count parts, of which the redaction drops some."""
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s", format="anthropic")
        for turn in range(6):
            await service.append("s", {"role": "user", "content": f"Part {turn}. " + "The water is deep. " * 30})
            thinking = [{"type": "thinking", "thinking": f"It is {SECRET}.", "signature": "c2ln"}]
            if shown_thinking == "another block of thinking":
                thinking.insert(0, {"type": "thinking", "thinking": "Something else.", "signature": "c2ln"})
            words = (
                [] if shown_thinking == "thinking alone" and turn == 5 else [{"type": "text", "text": f"Done {turn}."}]
            )
            await service.append("s", {"role": "assistant", "content": thinking + words})
        await service.compact("s", always, KeepLast(3), budget=1_000)
        before = (await service.context("s")).messages
        assert "thinking" not in str(before)
        await service.redact_text("s", SECRET)
        assert (await service.context("s")).messages == before
        assert await service.verify("s") == []


async def test_h1_media_of_a_redacted_message_is_gone(
    reopen: Callable[[], Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    picture = "iVBORw0KGgo" * 300
    block = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    async with SessionService(reopen()) as service:
        await service.create(id="s")
        await service.append("s", {"role": "user", "content": [block]}, id="u1")
        await service.append("s", {"role": "assistant", "content": "A harbour."})
        await service.redact("s", "u1")
        assert picture not in str(await service.export("s"))
        assert not files_with(tmp_path, picture[:100])
        if isinstance(service.store, PostgresStore):
            assert not await rows_with(request, tmp_path, picture[:100])


class Interrupted:
    """A store that cancels the caller at its nth call, before or after it took effect."""

    def __init__(self, store: Any, at: int, *, after: bool) -> None:
        self._store, self._left, self._after = store, at, after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)

        async def run(*args: Any, **fields: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise asyncio.CancelledError
            done = await found(*args, **fields)
            if self._left == 0:
                raise asyncio.CancelledError
            return done

        return run if callable(found) else found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("act", ["redact", "pin", "undo"])
async def test_h1_cancelled_mark_can_be_repeated(reopen: Callable[[], Any], act: str) -> None:
    """Cancelled before and after each call of the store: the second call finishes it, and no live view is behind."""
    acts: dict[str, Callable[[SessionService], Awaitable[Any]]] = {
        "redact": lambda service: service.redact("s", "r1"),
        "pin": lambda service: service.pin("s", "r1", id="p"),
        "undo": lambda service: service.undo("s"),
    }
    async with AsyncExitStack() as stack:
        store, other = reopen(), await stack.enter_async_context(SessionService(reopen()))
        stack.push_async_callback(store.close)
        points = [(at, after) for at in range(1, 7) for after in (False, True)]
        for number, (at, after) in enumerate(points):
            await other.create(id="s")
            await fill(other, turns=3)
            await other.compact("s", always, KeepLedger(500))
            caller = SessionService(Interrupted(store, at, after=after))
            with suppress(asyncio.CancelledError):
                await acts[act](caller)
            again = SessionService(store)
            if act != "undo" or await again.round("s"):
                await acts[act](again)
            for reader in (other, again):
                shown = str((await reader.context("s")).messages)
                assert await reader.verify("s") == []
                assert (SECRET in shown) == (act != "redact"), number
            kinds = [event.kind for event in await other.events("s")]
            assert kinds.count({"redact": "redaction"}.get(act, act)) == 1
            await other.delete("s")


async def test_a_stale_pin_takes_no_compaction_away(reopen: Callable[[], Any]) -> None:
    async with AsyncExitStack() as stack:
        service, worker, fresh = [await stack.enter_async_context(SessionService(reopen())) for _ in range(3)]
        await service.create(id="s")
        await fill(service, turns=10)
        await worker.compact("s", always, SlidingWindow(3))
        await service.pin("s", "r9")
        for reader in (service, worker, fresh):
            assert len(await reader.context("s")) < 4
            assert await reader.verify("s") == []
        with pytest.raises(Conflict) as raised:
            await service.pin("s", "r8", after=40)
        assert raised.value.outcome == Outcome.CONFLICT


async def test_an_undo_takes_away_only_what_its_caller_saw(reopen: Callable[[], Any]) -> None:
    async with SessionService(reopen()) as service, SessionService(reopen()) as worker:
        await service.create(id="s")
        await fill(service, turns=4)
        await service.compact("s", always, SlidingWindow(6))
        seen = (await service.context("s")).version
        await fill(worker, turns=2)
        await worker.compact("s", always, SlidingWindow(3))
        with pytest.raises(Conflict, match="Another writer"):
            await service.undo("s")
        assert await worker.round("s") == await service.round("s") == 2
        with pytest.raises(Conflict):
            await service.undo("s", after=seen)
        await service.undo("s")
        assert await worker.round("s") == await service.round("s") == 1
        assert await service.verify("s") == await worker.verify("s") == []


async def test_appends_of_others_are_no_conflict_for_marks() -> None:
    store = MemoryStore()
    service, other = SessionService(store), SessionService(store)
    await service.create(id="s")
    await fill(service, turns=4)
    await service.compact("s", always, SlidingWindow(6))
    seen = (await service.context("s")).version
    await fill(other, turns=1)
    await service.pin("s", "r3", after=seen)
    await service.undo("s")
    assert await other.round("s") == 0


async def test_a_compaction_made_from_the_old_text_is_refused(reopen: Callable[[], Any]) -> None:
    """In a fork, too: it shares the redacted message."""
    async with SessionService(reopen()) as service, SessionService(reopen()) as worker:
        await service.create(id="s")
        await fill(service, turns=4)
        await service.fork("s", id="f")

        async def summarize(prompt: str) -> str:
            await service.redact("s", "r1")
            return f"It used {SECRET}."

        result = await worker.compact("f", always, SUMMARY, "rebase", summarizer=summarize)
        assert result.outcome == Outcome.CONFLICT
        assert SECRET not in str([await worker.export("f"), (await worker.context("f")).messages])


async def test_h1_log_with_half_a_redaction_is_completed() -> None:
    """As written before redaction was one step: the text is gone, but no process was told."""
    service = SessionService(MemoryStore())
    await service.create(id="s")
    await fill(service, turns=2)
    [event] = await service.store.read("s", Slice(any_lane=True, ids=("r1",)))
    await service.redact("s", "r1")
    await service.redact("s", "r1")
    assert [each.kind for each in await service.events("s")].count("redaction") == 1
    assert event.digest not in str(await service.export("s")), "a short text could be guessed from it"
    with pytest.raises(UnknownSession):
        await service.redact("none", "r1")


class Overtaken:
    """A store that lets another writer act once, right before a given call."""

    def __init__(self, store: Any, call: str, act: Callable[[], Awaitable[Any]]) -> None:
        self._store, self._call, self._act = store, call, act

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)

        async def run(*args: Any, **fields: Any) -> Any:
            if name == self._call:
                self._call = ""
                await self._act()
            return await found(*args, **fields)

        return run if name == self._call else found


async def test_h1_copy_made_from_the_old_text_is_refused(reopen: Callable[[], Any], tmp_path: Path) -> None:
    """Restored messages and forks: the text was read before another process redacted it, and written after."""
    async with SessionService(reopen()) as other, AsyncExitStack() as stack:
        await other.create(id="s", system=f"Use {SECRET}.")
        await other.fork("s", id="empty")
        await fill(other, turns=3)
        await other.compact("s", always, SlidingWindow(2))
        store = reopen()
        stack.push_async_callback(store.close)
        with pytest.raises(InvalidInput, match="was redacted"):
            await SessionService(Overtaken(store, "append", lambda: other.redact("s", "r1"))).restore("s", "r1")
        redact = Overtaken(store, "create", lambda: other.redact_text("s", SECRET))
        await SessionService(redact).fork("s", id="f")
        for session in ("s", "f", "empty"):
            assert SECRET not in str([await other.export(session), await other.get(session)])
            assert await other.verify(session) == []
    assert not files_with(tmp_path, SECRET)


async def test_h1_first_compaction_of_a_lane_made_from_the_old_text_is_refused() -> None:
    service, worker = SessionService(store := MemoryStore()), SessionService(store)
    await service.create(id="s")
    await fill(service, turns=3)

    async def summarize(prompt: str) -> str:
        await service.redact("s", "r1")
        return f"It used {SECRET}."

    result = await worker.compact("s", always, SUMMARY, "rebase", lane="new", summarizer=summarize)
    assert result.outcome == Outcome.CONFLICT
    assert SECRET not in str(await service.export("s"))


async def test_h1_redacted_pin_of_a_tool_result_leaves_a_valid_context() -> None:
    service = SessionService(MemoryStore())
    await service.create(id="s", format="openai-chat")
    await fill(service)
    await service.pin("s", "r1")
    await service.compact("s", always, SlidingWindow(2))
    assert SECRET in str((await service.context("s")).messages)
    await service.redact("s", "r1")
    shown = (await service.context("s")).messages
    assert SECRET not in str(shown) and "[redacted]" in str(shown[0])
    assert await service.verify("s") == []


async def test_h1_redaction_leaves_checkpoints_from_before_the_message_alone(reopen: Callable[[], Any]) -> None:
    """They cannot quote it, and a fork from before it shares them: its open view would differ from the log."""
    summarizer = ScriptedModel(["The lighthouse is lit."], repeat=True)
    async with SessionService(reopen(), summarizer=summarizer) as service, SessionService(reopen()) as other:
        await service.create(id="s")
        await fill(service, turns=3)
        await service.compact("s", always, SUMMARY)
        await service.fork("s", id="f")
        before = (await other.context("f")).messages
        await service.append("s", {"role": "user", "content": "Put out the lighthouse."}, id="late")
        await service.redact("s", "late")
        assert (await other.context("f")).messages == before
        assert "lighthouse" in str((await service.context("s")).messages)
        assert await other.verify("f") == await service.verify("s") == []


def test_h1_headings_of_a_page_survive_the_redaction_of_their_words() -> None:
    page = "[Notes on the earlier conversation: 3]\n\n## Commands\nrelevant\n\n## Open work [3]\n- excerpts (open)"
    scrub = NotesScrubber(["Commands, relevant excerpts, Open work, verbatim"], [])
    assert scrub(page).splitlines()[2:] == ["## Commands", REDACTED, "", "## Open work [3]", f"- {REDACTED} (open)"]
