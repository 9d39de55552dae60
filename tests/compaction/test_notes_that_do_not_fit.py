"""Earlier summaries and synthetic events are shortened where they do not fit, and never dropped without a word."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Outcome, SlidingWindow, TokenWindow, TurnWindow, compact
from holdfast.messages import encode_all, framed_message, is_framed
from holdfast.messages.codec import decode_payloads
from holdfast.triggers import always
from sized import Messages, assistant, user

FACTS = "\n".join(f"- Berth {at} was sounded at {at * 7} cm." for at in range(700))
SUMMARY = encode_all(
    [framed_message(f"Earlier: the task is to sound all berths.\n{FACTS}\nNext: berth 700.")], "openai-chat"
)
TALK: Messages = [*[user(60), assistant(300)] * 8, user(40)]
WINDOWS: dict[str, Any] = {"tokens": TokenWindow(4_000), "sliding": SlidingWindow(6), "turns": TurnWindow(2)}


def compacted(strategy: Any, **options: Any) -> Any:
    return compact([*SUMMARY, *TALK], strategy=strategy, trigger=always, estimator="chars/4", **options)


@pytest.mark.parametrize("budget", [1_000_000, 4_000], ids=["limit of the window", "budget"])
@pytest.mark.parametrize("name", WINDOWS)
def test_earlier_summary_is_shortened_to_what_the_window_leaves(name: str, budget: int) -> None:
    done = compacted(WINDOWS[name], budget=budget)
    assert done.outcome is Outcome.COMPACTED
    note = next(message for message in decode_payloads(list(done.messages), "openai-chat") if is_framed(message))
    assert note.text.startswith("Earlier: the task is to sound all berths.")
    if name == "tokens" or budget == 4_000:
        assert done.tokens_after <= 4_000 and "Next: berth 700." in note.text
        assert "A summary was shortened: it does not fit the target." in done.remarks


def test_summary_that_must_go_is_named_in_the_remarks_and_carried() -> None:
    done = compact(
        [*SUMMARY, *TALK[:-1], user(395)], strategy=TokenWindow(400), budget=400, trigger=always, estimator="chars/4"
    )
    assert done.outcome is Outcome.COMPACTED and len(done.messages) == 1
    assert any("Notes or a summary were left out" in remark for remark in done.remarks)
    assert "the task is to sound all berths" in (done.checkpoint.summary or "")
