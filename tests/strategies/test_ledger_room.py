"""Notes in little room: they are shortened or carried on, never silently lost (H3)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Outcome, SessionService, compact
from holdfast.stores import MemoryStore
from holdfast.strategies import KeepLedger
from holdfast.triggers import always

Json = dict[str, Any]
TASK = "TASK: build Zebra-42. Never touch customers_gold."


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


def history() -> list[Json]:
    turns = [[assistant("ok " * 80), user(f"rule {at}: use file_{at}.py " + "lorem " * 50)] for at in range(60)]
    return [user(TASK), *(message for turn in turns for message in turn), assistant("hm")]


LONG = user("paste " * 5_000)


@pytest.mark.parametrize(
    ("newest", "budget", "options"),
    [
        (LONG, 10_000, {}),
        (user("go"), 8_000, {"system": "rule " * 4_000}),
        (user("go"), 8_000, {"tools": [{"name": "sail", "description": "rule " * 4_000}]}),
        (user("go"), 32_000, {"system": "rule " * 20_000}),
    ],
)
def test_notes_get_part_of_budget_when_fixed_content_takes_the_target(newest: Json, budget: int, options: Json) -> None:
    messages = history() * 3 if budget == 32_000 else history()
    result = compact([*messages, newest], budget=budget, **options)
    assert result.outcome is Outcome.COMPACTED and result.tokens_after <= budget
    assert "Zebra-42" in str(result.messages)


def test_explicit_target_is_respected() -> None:
    result = compact([*history(), LONG], budget=10_000, target=5_200)
    assert result.tokens_after <= 5_200


def test_notes_without_room_appear_on_the_next_page() -> None:
    first = compact([*history(), LONG], budget=10_000, target=5_010)
    assert "Zebra-42" not in str(first.messages)
    assert any("carried to the next round" in remark for remark in first.remarks)
    more = [assistant("read"), *history()[1:], user("And now?")]
    again = compact([*first.messages, *more], budget=10_000, target=5_000, previous=first.checkpoint)
    assert "Zebra-42" in str(again.messages)


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_notes_too_long_are_shortened_not_dropped(with_checkpoint: bool) -> None:
    first = compact([*history(), user("paste " * 1_000)], budget=6_000)
    previous = first.checkpoint if with_checkpoint else None
    again = compact(first.messages, budget=2_500, target=2_500, previous=previous)
    assert again.tokens_after <= 2_500 < first.tokens_after
    assert "Zebra-42" in str(again.messages)


@pytest.mark.anyio
async def test_notes_in_a_session_are_shortened() -> None:
    async with SessionService(MemoryStore()) as sessions:
        await sessions.create(id="s", format="openai-chat")
        await sessions.append("s", [*history(), user("go")])
        await sessions.compact("s", always, KeepLedger(6_000))
        await sessions.compact("s", always, KeepLedger(3_000))
        assert "Zebra-42" in str(list(await sessions.context("s")))


@pytest.mark.parametrize("budget", range(300, 800, 40))
def test_page_is_rendered_in_very_little_room(budget: int) -> None:
    """A coarse history gives the same page for many sizes: then the renderer tries much less room."""
    wishes = [user(f"WISH_{at} " + "never touch this or that part of it please " * 30) for at in range(6)]
    turns = [message for wish in wishes for message in (assistant("bla bla common words again " * 60), wish)]
    result = compact([user("Task: build importer"), *turns, assistant("fin"), user("next")], budget=budget)
    assert "Task: build importer" in str(result.messages) and result.tokens_after <= budget


def test_long_task_is_clipped_before_the_page_is_dropped() -> None:
    task = user("Build the importer. " + "Mind the tides of Osterhaven well. " * 25)
    result = compact([task, *history(), user("go")], budget=8_000, system="rule " * 7_400)
    assert "Build the importer." in str(result.messages) and result.tokens_after <= 8_000
