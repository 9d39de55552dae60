"""Sessions: pins, redaction, media, usage, export and import (H1, P3, L9, L10, L13)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, ClassVar

import pytest

from holdfast import (
    BlockingSessionService,
    MemoryStore,
    Outcome,
    PruneToolResults,
    SessionService,
    SlidingWindow,
    TokenCount,
    Truncate,
    check,
)
from holdfast.context.events import Event
from holdfast.errors import CorruptLog, InvalidInput, StoreClosed, UnknownEvent
from holdfast.messages import Message
from holdfast.stores import Log, Slice
from holdfast.tokens import CharsPerPiece
from holdfast.transcripts.importing import import_exported
from holdfast.triggers import always

pytestmark = pytest.mark.anyio


@pytest.fixture
async def service(store: Log) -> AsyncIterator[SessionService]:
    async with SessionService(store) as service:
        await service.create(id="s")
        yield service


async def append(service: SessionService, *names: str, session: str = "s") -> None:
    for name in names:
        role = "user" if name[0] == "u" else "assistant"
        await service.append(session, {"role": role, "content": f"{name} says something rather long"}, id=name)


async def visible_names(service: SessionService, session: str = "s") -> list[str]:
    return [str(message["content"]).partition(" ")[0] for message in await service.context(session)]


async def test_pinned_event_survives_compactions_until_unpinned(service: SessionService) -> None:
    await append(service, "u1", "a1", "u2", "a2", "u3", "a3")
    await service.pin("s", "u1")
    await service.compact("s", always, SlidingWindow(2))
    assert await visible_names(service) == ["u1", "u3", "a3"]
    await append(service, "u4", "a4")
    await service.compact("s", always, SlidingWindow(2))
    assert await visible_names(service) == ["u1", "u4", "a4"]
    assert await service.verify("s") == []
    await service.pin("s", "u1", pinned=False)
    await append(service, "u5", "a5")
    await service.compact("s", always, SlidingWindow(2))
    assert await visible_names(service) == ["u5", "a5"]
    assert await service.verify("s") == []
    with pytest.raises(UnknownEvent, match="nothing"):
        await service.pin("s", "nothing")


async def test_p10_fork_at_an_undo_has_the_restored_context(service: SessionService) -> None:
    await append(service, "u1", "a1", "u2", "a2", "u3", "a3")
    await service.compact("s", always, SlidingWindow(2))
    await service.undo("s")
    undone = (await service.events("s"))[-1]
    fork = await service.fork("s", undone.id)
    assert await visible_names(service, fork.id) == ["u1", "a1", "u2", "a2", "u3", "a3"]


async def test_h1_redaction_leaves_only_a_tombstone(service: SessionService) -> None:
    secret = "my password is swordfish-in-the-harbour"
    await service.append("s", {"role": "user", "content": secret}, id="u1")
    await service.append("s", {"role": "assistant", "content": "I will not write that down. " * 20})
    await append(service, "u2", "a2", "u3", "a3")
    await service.compact("s", always, Truncate(keep_tokens=30))
    assert "swordfish" in str((await service.context("s")).messages)
    before = (await service.events("s"))[0]
    await service.redact("s", "u1")
    assert "swordfish" not in str(await service.export("s"))
    assert "swordfish" not in str((await service.context("s")).messages)
    tombstone = (await service.events("s"))[0]
    assert (tombstone.id, tombstone.body["redacted"]) == ("u1", True)
    assert before.digest not in str(await service.export("s")), "a short text could be guessed from it"
    assert await service.verify("s") == []
    await service.undo("s")
    assert "[redacted]" in str((await service.context("s")).messages)


async def test_media_is_stored_once_and_restored(service: SessionService) -> None:
    picture = "iVBORw0KGgo" * 500
    block = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    message = {"role": "user", "content": [{"type": "text", "text": "look"}, block]}
    await service.append("s", message, id="u1")
    await service.append("s", message, id="u2")
    context = await service.context("s")
    assert context.messages == [message, message]
    assert (await SessionService(service.store).context("s")).messages == [message, message]
    raw = await service.store.read("s", Slice())
    assert all(picture not in str(event.body) for event in raw)
    copy = await service.import_(await service.export("s"), id="copy")
    assert (await service.context(copy.id)).messages == [message, message]


async def test_p3_reported_usage_is_the_size_until_a_compaction(service: SessionService) -> None:
    await append(service, "u1")
    usage = {"input_tokens": 900, "output_tokens": 60, "cache_read_input_tokens": 40}
    await service.append("s", {"role": "assistant", "content": "hello there"}, usage=usage)
    context = await service.context("s")
    assert (context.tokens, context.known) == (1_000, True)
    await append(service, "u2")
    assert 1_000 < (await service.context("s")).tokens < 1_030
    fired = await service.compact("s", TokenCount(1_000), SlidingWindow(1))
    assert fired.outcome is Outcome.COMPACTED
    after = await service.context("s")
    assert not after.known
    assert (await service.compact("s", TokenCount(1_000), SlidingWindow(1))).outcome is Outcome.NOT_NEEDED


async def test_l13_every_message_is_measured_once(store: Log) -> None:
    class Counting(CharsPerPiece):
        name = "counting"
        counted: ClassVar[list[str]] = []

        def measure(self, message: Message) -> int:
            self.counted.append(message.text)
            return super().measure(message)

    service = SessionService(store, estimator=Counting())
    await service.create(id="s")
    await append(service, "u1", "a1", "u2", "a2", "u3", "a3")
    for _ in range(3):
        await service.compact("s", TokenCount(10_000), SlidingWindow(2))
    await service.compact("s", always, SlidingWindow(2))
    await SessionService(store, estimator=Counting()).context("s")
    assert sorted(Counting.counted) == sorted(set(Counting.counted))
    await service.close()


async def test_l10_rounds_come_from_the_record_and_a_prune_adds_none(service: SessionService) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    await append(service, "u1")
    await service.append("s", {"role": "assistant", "content": None, "tool_calls": [call]})
    await service.append("s", {"role": "tool", "tool_call_id": "c1", "content": "found " * 300})
    await append(service, "a1", "u2", "a2")
    pruned = await service.prune("s", PruneToolResults(protect=0, minimum=10))
    assert (pruned.outcome, pruned.round, pruned.removed) == (Outcome.COMPACTED, 0, 0)
    assert [event.kind for event in pruned.edited] == ["message"]
    assert "found" not in str((await service.context("s")).messages)
    first = await service.compact("s", always, SlidingWindow(2))
    assert first.round == 1
    await append(service, "u3", "a3")
    assert (await SessionService(service.store).compact("s", always, SlidingWindow(2))).round == 2
    assert await service.round("s") == 2
    await service.undo("s")
    await service.undo("s")
    await service.undo("s")
    assert "found" in str((await service.context("s")).messages)


async def test_l9_compaction_writes_one_record_and_one_line_of_metrics(
    service: SessionService, caplog: pytest.LogCaptureFixture
) -> None:
    """A compaction that changes nothing writes neither."""
    await append(service, "u1", "a1", "u2", "a2")
    caplog.set_level(logging.INFO, "holdfast")
    unchanged = await service.compact("s", always, SlidingWindow(4))
    assert (unchanged.outcome, unchanged.version, caplog.messages) == (Outcome.NOTHING_TO_COMPACT, 4, [])
    result = await service.compact("s", always, SlidingWindow(2))
    (record,) = [event.body for event in await service.events("s", kind="compaction")]
    assert (record["tokens_before"], record["tokens_after"]) == (result.tokens_before, result.tokens_after)
    assert (record["carry"]["round"], record["archived"]) == (1, [{"first": "u1", "last": "a1", "count": 2}])
    (line,) = caplog.messages
    assert "round=1 " in line and f"tokens={result.tokens_before}->{result.tokens_after} archived=2 " in line


async def test_rebase_allows_plain_appends(service: SessionService) -> None:
    await append(service, "u1", "a1", "u2", "a2")
    other = SessionService(service.store)

    def strategy(request: Any) -> Any:
        return SlidingWindow(2)(request)

    view_before = await service.context("s")
    await other.append("s", {"role": "user", "content": "u3 meanwhile"}, id="u3")
    assert view_before.version == 4
    result = await service.compact("s", always, strategy, on_conflict="rebase")
    assert result.outcome is Outcome.COMPACTED
    assert (await visible_names(service))[-1] == "u3"


async def test_export_and_import_keep_everything(service: SessionService) -> None:
    await append(service, "u1", "a1", "u2", "a2")
    await service.append("s", {"role": "user", "content": "sub"}, "lane.one", id="q1")
    await service.compact("s", always, SlidingWindow(2))
    await append(service, "u3")
    await service.undo("s")
    await append(service, "a3")
    copy = await service.import_(await service.export("s"), id="copy")
    assert (await service.context("copy")).messages == (await service.context("s")).messages
    assert (await service.context("copy", "lane.one")).messages == (await service.context("s", "lane.one")).messages
    assert await service.verify("copy") == []
    assert copy.version == (await service.get("s")).version
    with pytest.raises(InvalidInput, match="not an exported session"):
        await service.import_([{"kind": "message"}])


@pytest.mark.parametrize(
    ("kind", "change", "why"),
    [
        ("message", lambda body: body.pop("message"), r"Line 2 .* event 'u1' is no valid message"),
        ("message", lambda body: body.update(message=7), "Line 2"),
        ("compaction", lambda body: body.update(head=7), "is no valid compaction"),
        ("compaction", lambda body: body.update(boundary="gone"), "not complete: .* gone"),
        ("undo", lambda body: body.update(to="gone"), "not complete: undo"),
    ],
)
async def test_h1_malformed_export_is_refused_and_leaves_no_session(
    service: SessionService, kind: str, change: Callable[[dict[str, Any]], Any], why: str
) -> None:
    await append(service, "u1", "a1", "u2", "a2")
    await service.compact("s", always, SlidingWindow(2))
    await service.undo("s")
    lines = await service.export("s")
    change(next(line for line in lines if line["kind"] == kind)["body"])
    with pytest.raises(InvalidInput, match=why):
        await service.import_(lines, id="copy")
    assert [record.id for record in await service.list()] == ["s"]


@pytest.mark.parametrize("record", [7, "text", None, [1], True, {"kind": "message", "body": 7}])
@pytest.mark.parametrize("line", [1, 2, 4])
async def test_h1_record_that_is_no_event_is_refused_with_its_line(
    service: SessionService, record: Any, line: int
) -> None:
    await append(service, "u1", "a1")
    lines: list[Any] = await service.export("s")
    lines.insert(line - 1, record)
    for import_lines in (service.import_, partial(import_exported, service)):
        with pytest.raises(InvalidInput, match=rf"[Ll]ine {line}\b"):
            await import_lines(lines, id="copy")
    assert [record.id for record in await service.list()] == ["s"]


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "message", "body": {"message": "text"}},
        {"kind": "message", "body": {"message": [1]}},
        {"kind": "undo", "body": {"to": [1]}},
        {"kind": "policy", "body": {"policy": 3}},
    ],
)
async def test_h1_event_that_no_session_could_show_is_not_imported(service: SessionService, event: Any) -> None:
    await append(service, "u1")
    lines = [*await service.export("s"), {"id": "e2", "time": "2026-01-01T00:00:00Z", **event}]
    for import_lines in (service.import_, partial(import_exported, service)):
        with pytest.raises(InvalidInput, match=f"Line 3 .* is no valid {event['kind']}"):
            await import_lines(lines, id="copy")
    assert [record.id for record in await service.list()] == ["s"]


async def test_h1_event_that_cannot_be_read_is_one_clear_error(service: SessionService) -> None:
    await append(service, "u1")
    await service.store.append("s", [Event("e1", "message", "2026-01-01T00:00:00Z", {"format": "anthropic"})])
    for _ in range(2):
        with pytest.raises(CorruptLog, match=r"Event 'e1' \(#2\) of session 's' cannot be read"):
            await service.context("s")
    assert "cannot be built" in str(await service.verify("s"))


async def test_messages_of_another_format_are_converted(service: SessionService) -> None:
    await service.create(id="mixed", format="anthropic")
    await service.append("mixed", {"role": "user", "content": "go"})
    await service.create(id="free")
    gemini = {"role": "user", "parts": [{"text": "hello"}]}
    await service.append("free", gemini)
    await service.append("free", {"role": "assistant", "content": "in another tongue"})
    context = await service.context("free")
    assert context.format == "gemini"
    assert check(context, "gemini") == []


async def test_invalid_input_writes_nothing(service: SessionService) -> None:
    for bad in (42, [], {}, {"role": "wizard"}, [{"role": "user", "content": "fine"}, {"nothing": 1}]):
        with pytest.raises(InvalidInput):
            await service.append("s", bad)
    assert (await service.get("s")).version == 0
    with pytest.raises(InvalidInput, match="skip"):
        await service.compact("s", always, SlidingWindow(2), on_conflict="explode")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no compaction to undo"):
        await service.undo("s")
    await service.close()
    with pytest.raises(StoreClosed):
        await service.context("s")


def test_blocking_service_has_the_same_methods(store: Log) -> None:
    public = {name for name in dir(SessionService) if not name.startswith("_")}
    assert public <= {name for name in vars(BlockingSessionService) if not name.startswith("_")}
    with BlockingSessionService(store) as sessions:
        session = sessions.create()
        sessions.append(session.id, [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}])
        assert len(sessions.context(session.id)) == 2
        assert sessions.compact(session.id, always, SlidingWindow(1)).removed == 1
        assert sessions.verify(session.id) == []


async def test_use_preset_switches_preset_and_estimator(store: Log) -> None:
    async with SessionService(store, preset="holdfast") as service:
        await service.create(id="s")
        await append(service, "u1", "a1", "u2", "a2")
        await service.context("s")
        service.use_preset("claude_code")
        opened_with_it = SessionService(store, preset="claude_code")
        assert (await service.context("s")).tokens == (await opened_with_it.context("s")).tokens
        with pytest.raises(InvalidInput, match="did you mean"):
            service.use_preset("claude_cod")
        assert service.preset is not None and service.preset.name == "claude_code"


def test_use_preset_keeps_an_explicit_estimator() -> None:
    given = CharsPerPiece()
    with BlockingSessionService(MemoryStore(), estimator=given, preset="holdfast") as service:
        service.use_preset("claude_code")
        assert service.estimator is given


async def test_verify_while_the_same_service_appends_finds_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    service = SessionService(store)
    await service.create(id="s")
    await service.append("s", {"role": "user", "content": "Hello."})
    await service.context("s")
    read, appended = store.read, False

    async def overtaken(session_id: str, which: Slice) -> list[Event]:
        nonlocal appended
        if not which.any_lane and not appended:  # the log is read to rebuild the context
            appended = True
            await service.append("s", {"role": "user", "content": "Meanwhile."})
        return await read(session_id, which)

    monkeypatch.setattr(store, "read", overtaken)
    assert await service.verify("s") == []
    assert appended
