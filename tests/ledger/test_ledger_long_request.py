"""A long request that work has begun on is shown without its middle, and stays whole in the log (H1, H3)."""

from __future__ import annotations

import pytest
from ledger_helpers import Json, Messages, assistant, filler, page_of, tool_use, user

from holdfast import MemoryStore, SessionService, check, compact
from holdfast.strategies import KeepLedger
from holdfast.triggers import always

RULE = "Never touch the migrations folder."
POINTS = [f"- berth_{number} gets a new fender and a coat of paint before spring" for number in range(120)]
REQUEST = "\n".join(["Mend the harbour:", *POINTS[:60], RULE, *POINTS[60:], "Begin with the north pier."])


def begun(request: str = REQUEST, steps: int = 12, rows: int = 300) -> Messages:
    """Work on a request, with results that are full of names."""
    found = "\n".join(f"def mend_{row}(pier_{row}, rope_{row}):" for row in range(rows))
    survey = tool_use("s", "Read", found, file_path="/srv/harbour/mend.py")
    return [user("Hello."), assistant("Hello."), user(request), *survey, *filler(steps)]


def shown(messages: Messages) -> str:
    """The request as the context shows it."""
    (found,) = (one["content"] for one in messages if one["role"] == "user" and "Begin with" in one["content"])
    return str(found)


def test_long_request_keeps_its_head_rules_and_tail() -> None:
    result = compact(begun(), budget=3_000, target=2_000, estimator="chars/4")
    text = shown(list(result.messages))
    assert text.startswith("Mend the harbour:\n- berth_0 ") and text.endswith("Begin with the north pier.")
    assert RULE in text and "\n[cut: 3]\n" in text and len(text) < len(REQUEST) / 2
    assert all(line in REQUEST for line in text.splitlines() if line not in ("[cut: 3]", "[…]"))
    assert "A cut mark inside a user message stands for its middle." in page_of(list(result.messages))
    assert result.tokens_after <= 2_000 and not check(result.messages, "openai-chat")


def test_lines_of_the_middle_compete_with_the_notes() -> None:
    little = compact(begun(rows=0), budget=3_000, target=2_000, estimator="chars/4")
    much = compact(begun(), budget=3_000, target=2_000, estimator="chars/4")
    middles = [shown(list(one.messages)).partition("[cut: 3]")[2].partition("[…]")[0] for one in (little, much)]
    counts = [sum(point in middle for point in POINTS) for middle in middles]
    assert all(RULE in middle for middle in middles) and counts[0] > counts[1]


@pytest.mark.parametrize(
    "messages",
    [
        [user("Hello."), assistant("Hello."), *filler(12), user(REQUEST)],
        begun("\n".join(["Mend the harbour:", *POINTS[:10], "Begin with the north pier."])),
    ],
    ids=["without a reply", "short"],
)
def test_request_stays_whole(messages: Messages) -> None:
    request = next(one["content"] for one in messages if "Begin with" in str(one["content"]))
    assert shown(list(compact(messages, budget=3_200, target=3_000, estimator="chars/4").messages)) == request


def test_request_within_its_share_stays_whole() -> None:
    result = compact(begun(steps=80), budget=16_000, target=12_000, estimator="chars/4")
    assert result.removed and shown(list(result.messages)) == REQUEST


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_next_round_shows_the_same(with_checkpoint: bool) -> None:
    first = compact(begun(), budget=3_000, target=2_000, estimator="chars/4")
    more = [*first.messages, *filler(12, 100)]
    previous = first.checkpoint if with_checkpoint else None
    second = compact(more, budget=3_000, target=2_000, estimator="chars/4", previous=previous)
    assert second.removed and shown(list(second.messages)) == shown(list(first.messages))
    assert page_of(list(second.messages)).count("Mend the harbour:") == 0


async def prepared(sessions: SessionService) -> Json:
    await sessions.create(id="s", format="openai-chat")
    events = await sessions.append("s", begun())
    return {"request": events[2].id}


@pytest.mark.anyio
async def test_log_keeps_the_request_and_restore_brings_it_back() -> None:
    async with SessionService(MemoryStore(), estimator="chars/4") as sessions:
        ids = await prepared(sessions)
        await sessions.compact("s", always, KeepLedger(2_000))
        (compaction,) = (event for event in await sessions.events("s") if event.kind == "compaction")
        (fate,) = (one for one in (await sessions.explain("s", compaction.id)).events if one.id == ids["request"])
        assert (fate.fate, fate.rule) == ("shown", "the newest user message stays, without its middle")
        assert "[cut: 3]" in shown(list(await sessions.context("s")))
        reopened = SessionService(sessions.store, estimator="chars/4")
        assert list(await reopened.context("s")) == list(await sessions.context("s"))
        await sessions.restore("s", ids["request"])
        assert any(POINTS[45] in str(message) for message in await sessions.context("s"))


@pytest.mark.anyio
async def test_pinned_request_stays_whole() -> None:
    async with SessionService(MemoryStore(), estimator="chars/4") as sessions:
        ids = await prepared(sessions)
        await sessions.pin("s", ids["request"])
        await sessions.compact("s", always, KeepLedger(3_500))
        assert shown(list(await sessions.context("s"))) == REQUEST


@pytest.mark.anyio
async def test_redacted_request_is_gone_from_the_context() -> None:
    async with SessionService(MemoryStore(), estimator="chars/4") as sessions:
        ids = await prepared(sessions)
        await sessions.compact("s", always, KeepLedger(2_000))
        await sessions.redact("s", ids["request"])
        context = str(list(await sessions.context("s")))
        assert "fender" not in context and "north pier" not in context and "mend_1(" in context
