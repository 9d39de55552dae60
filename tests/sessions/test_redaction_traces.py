"""A redaction is verified: the text is nowhere that Holdfast can reach, or the result says where it is left (H13)."""

from __future__ import annotations

import base64
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from holdfast import MemoryStore, SessionService
from holdfast.context.events import Event
from holdfast.messages import check
from holdfast.sessions.text_scrubber import TextScrubber
from holdfast.stores import JSONLStore, Log, PostgresStore, Slice, SQLiteStore
from holdfast.strategies import KeepLedger
from holdfast.triggers import always

pytestmark = pytest.mark.anyio
SECRET = 'sk-live "7Hq2é/Zr9Wt4'
PLAIN = "sk-live-7Hq2Zr9Wt4"
LEFT_BY_POSTGRES = "VACUUM"


@pytest.fixture(params=["memory", "jsonl", "sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    match request.param:
        case "memory":
            return MemoryStore()
        case "jsonl":
            return JSONLStore(tmp_path / "log")
        case "sqlite":
            return SQLiteStore(tmp_path / "log.db")
    return PostgresStore(request.getfixturevalue("postgres"), tenant=str(tmp_path))


def left_in(store: Log, left: tuple[str, ...]) -> list[str]:
    """What a result reports, without the dead rows that PostgreSQL removes itself."""
    return [place for place in left if not (isinstance(store, PostgresStore) and LEFT_BY_POSTGRES in place)]


async def everything(service: SessionService) -> str:
    """All that the sessions of a service have, as a search of our own sees it."""
    names = [record.id for record in await service.list()]
    return json.dumps([[await service.export(name), str((await service.context(name)).messages)] for name in names])


CALL = {"id": "c1", "type": "function"}
MESSAGES: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [
        {"role": "user", "content": "Log in."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    **CALL,
                    "function": {"name": "f", "arguments": json.dumps({"id": PLAIN, "status": PLAIN, "kind": PLAIN})},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"id": PLAIN, "kind": [PLAIN]})},
    ],
    "anthropic": [
        {"role": "user", "content": "Log in."},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "c1",
                    "name": "f",
                    "input": {"id": PLAIN, "x": {"status": PLAIN, "kind": PLAIN}},
                }
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "in"}]},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "Log in."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"id": PLAIN, "kind": PLAIN}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"status": PLAIN, "id": PLAIN}}}]},
    ],
}


@pytest.mark.parametrize("format", MESSAGES)
async def test_h13_text_under_the_name_of_a_setting_is_gone(format: str) -> None:
    """In the arguments and results of tools, and in metadata, these names mean nothing."""
    async with SessionService(MemoryStore()) as service:
        about = {"id": PLAIN, "more": {"status": PLAIN, "kind": [PLAIN], "type": "x"}}
        await service.create(id="s", format=format, metadata=about)
        for message in MESSAGES[format]:
            await service.append("s", message)
        done = await service.redact_text("s", PLAIN)
        assert done.events > 0 and done.left == ()
        assert PLAIN not in await everything(service)
        assert check((await service.context("s")).messages, format) == []
        assert await service.verify("s") == []


@pytest.mark.parametrize("field", ["type", "status"])
async def test_h13_text_that_a_provider_lists_stays_and_is_reported(field: str) -> None:
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s", format="openai-responses")
        call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"}
        await service.append("s", {"role": "user", "content": "It says completed: function_call."})
        await service.append("s", call)
        done = await service.redact_text("s", call[field])
        assert done.events == 1
        assert [place for place in done.left if place.endswith(f"message.{field}")] == list(done.left) != []
        assert (await service.events("s"))[1].body["message"] == call


async def test_h13_ids_that_have_the_text_stay_joined(stored: Log) -> None:
    async with SessionService(stored) as service:
        await service.create(id="s", format="openai-chat")
        id = f"call_{PLAIN}_1"
        call = {"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        await service.append("s", {"role": "user", "content": "Look."})
        await service.append("s", {"role": "assistant", "content": None, "tool_calls": [call]})
        await service.append("s", {"role": "tool", "tool_call_id": id, "content": "Done."})
        done = await service.redact_text("s", PLAIN)
        shown = (await service.context("s")).messages
        assert (done.events, left_in(stored, done.left)) == (2, [])
        assert shown[1]["tool_calls"][0]["id"] == shown[2]["tool_call_id"] == "call_hidden_1"
        assert check(shown, "openai-chat") == []
        assert PLAIN not in await everything(service)


async def test_h13_text_in_the_id_of_an_event_is_reported(stored: Log) -> None:
    async with SessionService(stored) as service:
        await service.create(id="s")
        await service.append("s", {"role": "user", "content": "Hello."}, id=f"u-{PLAIN}")
        done = await service.redact_text("s", PLAIN)
        assert left_in(stored, done.left) == ["event #1 of session s, in id"]


FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "in JSON": json.dumps,
    "in JSON as it is": lambda text: json.dumps(text, ensure_ascii=False),
    "in JSON with slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "in JSON in JSON": lambda text: json.dumps(json.dumps({"a": text})),
    "in JSON in JSON in JSON": lambda text: json.dumps(json.dumps(json.dumps([text]))),
    "in a URL": lambda text: "https://h/?q=" + quote(text, safe=""),
    "in a URL, in small letters": lambda text: quote(text).lower() if text.islower() else quote(text, safe="/"),
    "in a form": lambda text: quote(text, safe=" ").replace(" ", "+"),
    "in base64": lambda text: base64.b64encode(text.encode()).decode(),
    "in base64 of more": lambda text: base64.urlsafe_b64encode(f"ab{text}, and more".encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS)
async def test_h13_text_is_found_in_every_form(form: str) -> None:
    written = FORMS[form](SECRET)
    scrub = TextScrubber(SECRET)
    assert scrub.finds(f"before {written} after")
    clean = scrub(f"before {written} after")
    assert "7Hq2" not in clean and clean.startswith("before ") and clean.endswith(" after")
    assert not scrub.finds(clean)
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s")
        await service.append("s", {"role": "user", "content": f"It is {written}."})
        assert (await service.redact_text("s", SECRET)).left == ()
        assert written not in str((await service.context("s")).messages)


@pytest.mark.parametrize("secret", ["act", "redacted", "[", "]", "e", "█", "x", "red]"])
async def test_h13_text_of_the_mark_itself_is_gone(secret: str) -> None:
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s")
        await service.append("s", {"role": "user", "content": f"{secret}{secret} so {secret}"})
        await service.redact_text("s", secret)
        assert secret not in (await service.context("s")).messages[0]["content"] or secret == "█"


async def test_h13_text_in_an_attachment_is_reported(stored: Log) -> None:
    data = base64.b64encode(f"{'The water is deep. ' * 300} {PLAIN}".encode()).decode()
    block = {"type": "file", "file": {"file_data": f"data:text/plain;base64,{data}", "filename": "a.txt"}}
    async with SessionService(stored) as service:
        await service.create(id="s", format="openai-chat")
        await service.append("s", {"role": "user", "content": [{"type": "text", "text": "Read."}, block]}, id="u")
        done = await service.redact_text("s", PLAIN)
        [place] = left_in(stored, done.left)
        assert "attachment of event #1" in place
        await service.redact("s", "u")
        assert left_in(stored, (await service.redact_text("s", PLAIN)).left) == []


async def test_h13_siblings_of_a_deleted_parent_are_redacted(stored: Log) -> None:
    """Each has a copy of what it shared; a grandparent deleted before, a sibling's fork, and a later fork, too."""
    async with SessionService(stored) as service:
        await service.create(id="g")
        await service.append("g", {"role": "user", "content": f"The key is {PLAIN}."}, id="u1")
        await service.append("g", {"role": "assistant", "content": f"I note {PLAIN}."}, id="a1")
        await service.fork("g", id="p")
        await service.fork("g", id="uncle")
        await service.append("p", {"role": "user", "content": f"Again: {PLAIN}!"}, id="u2")
        for name in ("a", "b", "c"):
            await service.fork("p", id=name)
        await service.fork("b", id="below")
        await service.store.delete("g")
        await service.store.delete("p")
        await service.fork("c", id="late")
        await service.create(id="other")
        await service.append("other", {"role": "user", "content": f"Mine is {PLAIN}."})
        await service.redact("a", "u1")
        for name in ("a", "b", "c", "below", "late", "uncle"):
            assert "The key is" not in str(await service.export(name)), name
            assert await service.verify(name) == []
        done = await service.redact_text("b", PLAIN)
        assert left_in(stored, done.left) == []
        for name in ("a", "b", "c", "below", "late", "uncle"):
            assert PLAIN not in str(await service.export(name)), name
            assert await service.verify(name) == []
        assert PLAIN in str(await service.export("other")), "a session of its own"


async def test_h13_text_in_a_handoff_is_gone(stored: Log) -> None:
    async with SessionService(stored) as service:
        await service.create(id="s")
        await service.append("s", {"role": "user", "content": f"Deploy with the key {PLAIN} to the harbour."}, id="u")
        await service.append("s", {"role": "assistant", "content": f"I use {PLAIN}."})
        draft = await service.handoff("s", f"Deploy again with {PLAIN}.")
        assert PLAIN in draft.message
        next_one = await service.create()
        await service.append(next_one.id, {"role": "user", "content": draft.message})
        done = await service.redact_text("s", PLAIN)
        assert left_in(stored, done.left) == []
        assert PLAIN not in await everything(service)


async def test_h13_text_of_a_message_that_another_repeats_is_reported(stored: Log) -> None:
    async with SessionService(stored) as service:
        await service.create(id="s")
        for name in ("u1", "u2"):
            await service.append("s", {"role": "user", "content": f"The word is {PLAIN}."}, id=name)
        done = await service.redact("s", "u1")
        assert (done.events, left_in(stored, done.left)) == (1, ["event #2 of session s, in body.message.content"])
        done = await service.redact("s", "u2")
        assert (done.events, left_in(stored, done.left)) == (1, [])


async def test_h13_redacted_event_appended_again_stays_redacted(stored: Log) -> None:
    """Its digest is gone, since a short text could be guessed from it: no retry brings it back."""
    async with SessionService(stored) as service:
        await service.create(id="s")
        [event] = await service.append("s", {"role": "user", "content": PLAIN}, id="u")
        await service.redact("s", "u")
        await service.append("s", {"role": "user", "content": PLAIN}, id="u")
        assert PLAIN not in await everything(service)
        assert event.digest not in await everything(service)


async def test_h13_redaction_succeeds_while_others_append(stored: Log) -> None:
    """What was appended is read; what was read before is not read again."""
    async with SessionService(stored) as service:
        await service.create(id="s")
        for number in range(30):
            await service.append("s", {"role": "user", "content": f"{number}: {PLAIN}"})
        real, left = stored.rewrite, [5]

        async def overtaken(changes: Any) -> bool:
            if left[0]:
                left[0] -= 1
                await stored.append(
                    "s", [Event(f"x{left[0]}", "message", "t", {"message": {"role": "user", "content": PLAIN}})]
                )
            return await real(changes)

        stored.rewrite = overtaken  # type: ignore[method-assign]
        done = await service.redact_text("s", PLAIN)
        assert (done.events, left_in(stored, done.left)) == (35, [])
        assert PLAIN not in await everything(service)


async def test_h13_what_is_appended_before_the_last_look_is_redacted_too(stored: Log) -> None:
    async with SessionService(stored) as service:
        await service.create(id="s")
        await service.append("s", {"role": "user", "content": PLAIN})
        real, late = stored.rewrite, [Event("late", "message", "t", {"message": {"role": "user", "content": PLAIN}})]

        async def rewritten(changes: Any) -> bool:
            done = await real(changes)
            if done and late:
                await stored.append("s", [late.pop()])
            return done

        stored.rewrite = rewritten  # type: ignore[method-assign]
        done = await service.redact_text("s", PLAIN)
        assert (done.events, left_in(stored, done.left)) == (2, [])
        assert PLAIN not in await everything(service)


@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
async def test_h13_redaction_of_a_long_log_takes_little_memory(kind: str, tmp_path: Path) -> None:
    store = JSONLStore(tmp_path / "log") if kind == "jsonl" else SQLiteStore(tmp_path / "log.db", "NORMAL")
    async with SessionService(store) as service:
        await service.create(id="s")
        for start in range(0, 5_000, 1_000):
            bodies = [
                {"message": {"role": "user", "content": f"{n} " + "The water is deep. " * 40}} for n in range(1_000)
            ]
            bodies[500]["message"]["content"] += PLAIN
            await store.append("s", [Event(f"e{start + n}", "message", "t", body) for n, body in enumerate(bodies)])
        assert len(await store.read("s", Slice(any_lane=True, limit=1))) == 1
        tracemalloc.start()
        try:
            done = await service.redact_text("s", PLAIN)
            await service.redact("s", "e7")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (done.events, done.left) == (5, ())
        assert peak < 4_000_000, f"{peak:,} bytes for a log of 5 MB"
        assert (await service.compact("s", always, KeepLedger(900))).archived


async def test_h13_same_id_twice_is_one_redaction(stored: Log) -> None:
    async with SessionService(stored) as service:
        await service.create(id="s")
        await service.append("s", {"role": "user", "content": PLAIN}, id="u")
        assert (await service.redact("s", "u")).events == 1
        version = (await service.get("s")).version
        assert left_in(stored, (await service.redact("s", "u")).left) == []
        assert (await service.redact_text("s", PLAIN)).events == 0
        assert (await service.get("s")).version == version
