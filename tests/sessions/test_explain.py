"""`explain` computes a compaction again from the log: it equals what is stored, and says why each line is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import MemoryStore, Outcome, SessionService, SlidingWindow, Summary
from holdfast.context import Checkpoint
from holdfast.context.events import Event
from holdfast.errors import InvalidInput
from holdfast.hooks import Hooks
from holdfast.ledger import is_ledger_page
from holdfast.messages import strip_frame
from holdfast.models import ScriptedModel
from holdfast.sessions import Explanation
from holdfast.strategies import KeepLast, KeepLedger, Pipeline, PruneToolResults, Truncate
from holdfast.summaries import AsUser, FreeText
from holdfast.triggers import always
from real_sessions import FILES, each_nth_session, transcript

pytestmark = pytest.mark.anyio
STRATEGIES: dict[str, dict[str, Any]] = {
    "ledger": {"strategy": KeepLedger(3_000)},
    "ledger for a budget": {"budget": 8_000},
    "default": {"strategy": "default"},
    "window": {"strategy": SlidingWindow(20)},
    "last": {"strategy": KeepLast(10)},
    "truncation": {"strategy": Truncate(2_000)},
    "pipeline": {"strategy": Pipeline(PruneToolResults(2_000, 100), SlidingWindow(30))},
}


async def compacted(path: Path, rounds: int = 2, preset: str | None = None, **options: Any) -> SessionService:
    """A service with a session `s` that was compacted so many times."""
    given = transcript(path)
    service = SessionService(MemoryStore(), preset=preset, window=8_000 if preset else None)
    await service.create(id="s", format=given.format)
    messages = given.messages[:160]
    for number in range(rounds):
        await service.append("s", messages[number * len(messages) // rounds : (number + 1) * len(messages) // rounds])
        await service.compact("s", always, **options)
    return service


async def explanations(service: SessionService) -> list[Explanation]:
    return [await service.explain("s", event.id) for event in await service.events("s", kind="compaction")]


def stored_page(event: Event) -> str:
    head = msgspec.convert(event.body, Checkpoint).head
    return "\n".join(strip_frame(item.message) for item in head if item.message and is_ledger_page(item.message))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", STRATEGIES)
@each_nth_session(200)
async def test_explain_agrees_with_the_stored_compaction(path: Path, name: str) -> None:
    service = await compacted(path, **STRATEGIES[name])
    for found in await explanations(service):
        assert (found.agrees, found.why) == (True, "")


@each_nth_session(60)
async def test_explain_page_is_the_stored_page(path: Path) -> None:
    service = await compacted(path, strategy=KeepLedger(3_000))
    events = await service.events("s", kind="compaction")
    for event, found in zip(events, await explanations(service), strict=True):
        assert found.agrees
        assert "\n".join(line.text for line in found.page.lines) == stored_page(event)
        ranked = [line for line in (*found.page.lines, *found.page.result_lines) if line.rank is not None]
        assert len(ranked) > 0 or found.page.taken == 0
        assert all(line.sources and (line.score or 0) >= (found.page.last_score or 0) for line in ranked)
        assert found.page.taken + len(found.page.left_out) <= found.page.candidates


async def test_explain_agrees_for_a_preset_that_falls_back_to_the_ledger() -> None:
    service = await compacted(transcript_path("harbor"), preset="holdfast")
    found = await explanations(service)
    assert found and all(one.agrees for one in found)
    assert found[0].parameters and found[0].parameters.strategy["kind"] == "StructuredSummary"


def transcript_path(name: str) -> Path:
    return next(path for path in FILES if path.name.startswith(name))


async def talk() -> SessionService:
    service = SessionService(MemoryStore())
    await service.create(id="s", format="openai-chat")
    await service.append("s", {"role": "system", "content": "You keep the harbour's files."}, id="system")
    for number in range(12):
        await service.append("s", {"role": "user", "content": f"Ship {number} has arrived."}, id=f"u{number}")
        await service.append("s", {"role": "assistant", "content": f"Ship {number} is noted."}, id=f"a{number}")
    return service


async def test_explain_names_the_rule_of_each_event() -> None:
    service = await talk()
    await service.pin("s", "u2")
    await service.compact("s", always, SlidingWindow(6))
    (found,) = await explanations(service)
    fates = {one.id: (one.fate, one.rule) for one in found.events}
    assert fates["system"] == ("kept", "system messages stay")
    assert fates["u2"] == ("kept", "it is pinned")
    assert fates["a3"] == ("archived", "it lies before #20, the cut")
    assert fates["a11"] == ("kept", "it lies after the cut")
    assert len(found.events) == 25
    assert sum(one.tokens for one in found.events) <= found.tokens_before


async def test_explain_while_messages_were_appended_uses_what_the_compaction_read() -> None:
    service = await talk()
    strategy = SlidingWindow(6)

    async def slow(view: Any) -> Any:
        await service.append("s", {"role": "user", "content": "A late ship."}, id="late")

    service.hooks = Hooks(before=(slow,))
    result = await service.compact("s", always, strategy, "rebase")
    assert result.outcome is Outcome.COMPACTED
    (found,) = await explanations(service)
    assert found.agrees
    assert "late" not in {one.id for one in found.events}


async def test_explain_of_a_model_s_summary_says_that_it_cannot_be_computed() -> None:
    service = await talk()
    model = ScriptedModel("## Goal\nKeep the harbour, see [4].", repeat=True)
    await service.compact("s", always, Summary(KeepLast(4), FreeText(), AsUser(), verify=False), summarizer=model)
    (found,) = await explanations(service)
    assert found.agrees is None
    assert found.why == "it was written by scripted"
    (line,) = [line for line in found.page.lines if "Keep the harbour" in line.text]
    assert (line.section, line.rule, line.sources) == ("Goal", "written by scripted", (4,))


async def test_explain_of_a_function_says_that_it_belongs_to_the_application() -> None:
    service = await talk()
    await service.compact("s", always, lambda request: request.plan.archive(10).made_by("half"))
    (found,) = await explanations(service)
    assert (found.agrees, found.why) == (None, "FunctionStrategy is a strategy of the application")
    assert [one.fate for one in found.events].count("archived") == 9


async def changed_copy(service: SessionService, change: Any) -> SessionService:
    lines = await service.export("s")
    for line in lines:
        if line.get("kind") == "compaction":
            change(line["body"])
    other = SessionService(MemoryStore())
    await other.import_(lines)
    return other


async def test_explain_of_an_older_log_says_that_its_parameters_are_missing() -> None:
    service = await talk()
    await service.compact("s", always, SlidingWindow(6))
    older = await changed_copy(service, lambda body: body.pop("parameters"))
    (found,) = await explanations(older)
    assert found.agrees is None and found.parameters is None
    assert "its parameters are not recorded" in found.why
    assert {one.fate for one in found.events} == {"kept", "archived"}


async def test_explain_of_a_changed_checkpoint_says_that_it_differs() -> None:
    service = await talk()
    await service.compact("s", always, KeepLedger(120))
    (honest,) = await explanations(service)
    assert honest.agrees

    def forge(body: dict[str, Any]) -> None:
        for item in body["head"]:
            for part in (item.get("message") or {}).get("parts", ()):
                part["text"] = part["text"].replace("Ship", "Boat")

    (found,) = await explanations(await changed_copy(service, forge))
    assert found.agrees is False
    assert "it shows something else" in found.why


async def test_explain_of_a_message_is_an_error() -> None:
    service = await talk()
    with pytest.raises(InvalidInput, match="#2 is a message, not a compaction"):
        await service.explain("s", "u0")


async def test_preview_tells_what_a_compaction_then_does() -> None:
    service = await talk()
    preview = await service.preview("s", SlidingWindow(6))
    assert (await service.get("s")).version == 25
    result = await service.compact("s", always, SlidingWindow(6))
    assert (preview.outcome, preview.tokens_after) == (result.outcome, result.tokens_after)
    assert preview.archived == tuple(event.seq for event in result.archived)
    earlier = await service.preview("s", SlidingWindow(2), at="a3")
    assert earlier.kept == (1, 8, 9)


async def test_line_says_which_later_call_has_its_name() -> None:
    (path, *_) = (file for file in FILES if file.name.startswith("harbor"))
    (found, *_) = await explanations(await compacted(path, 1, strategy=KeepLedger(3_000)))
    events = {fate.seq: fate for fate in found.events}
    named = [line for line in found.page.lines if line.named_in]
    assert named and all(line.names and line.named_in[0] in events for line in named if line.named_in)
    assert all(line.named_in[0] not in line.sources for line in named if line.named_in)


async def test_first_figures_agree_with_the_exact_ones_on_what_there_is() -> None:
    (path, *_) = (file for file in FILES if file.name.startswith("harbor"))
    service = await compacted(path, 0)
    await service.append("s", transcript(path).messages[:160])
    first, exact = await service.estimate("s", budget=8_000), await service.preview("s", budget=8_000)
    assert first is not None and first.tokens_before == exact.tokens_before
    assert first.tokens_after == 4_000 >= exact.tokens_after and first.kept + first.archived == 160
    await service.compact("s", always, budget=8_000)
    assert await service.estimate("s", at=100) is None
