"""Every preset keeps a context inside its window while something may still be archived (L4, W1, G2, L11)."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keeper_conversations import Json, user_message

from holdfast import Keeper, MemoryStore, Outcome, SessionService, check
from holdfast.compaction.presets import PRESETS
from holdfast.messages import Links, decode_all
from holdfast.models import Failure, Limits, ScriptedModel
from holdfast.tokens import estimator_for

pytestmark = pytest.mark.anyio
EXAMPLES = 1_000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 10
ESTIMATOR = estimator_for("chars/4")
MARGIN = 60
"""Tokens for the prompt to continue, and for messages that a wire format requires."""
SHORTENED = 12
"""Tokens of a result of which only the reference is left."""
WINDOWS = (200, 400, 1_500, 8_000)
MODELS: dict[str, Any] = {
    "none": None,
    "summary": "They mended the pier and read the tide tables.",
    "failure": Failure("transport", "the line is dead"),
    "too long": "They mended the pier at the far berth again. " * 300,
    "blank": "",
}


def silent_calls(first: int, results: list[int], arguments: int) -> list[Json]:
    """Calls without a word of the assistant, and results of so many tokens."""
    ids = [f"c{first + place}" for place in range(len(results))]
    path = "p" * (4 * arguments)
    made = [
        {"id": id, "type": "function", "function": {"name": "read", "arguments": f'{{"path": "/{id}{path}"}}'}}
        for id in ids
    ]
    answers = [
        {"role": "tool", "tool_call_id": id, "content": f"depth at {id}, " * max(1, tokens // 3)}
        for id, tokens in zip(ids, results, strict=True)
    ]
    return [{"role": "assistant", "content": None, "tool_calls": made}, *answers]


def smallest(history: list[Json], system: str) -> int:
    """Tokens of what always stays: system prompt, newest user message, unfinished calls with shortened results."""
    messages = decode_all(history, "openai-chat")[0]
    newest = max(index for index, message in enumerate(messages) if message.role == "user")
    loop = messages[max(Links(messages).open_tool_loop_start, newest + 1) :]
    sizes = (min(SHORTENED, _measure(message)) if message.results else _measure(message) for message in loop)
    return ESTIMATOR.measure_text(system) + _measure(messages[newest]) + sum(sizes)


def _measure(message: Any) -> int:
    return ESTIMATOR.measure(message)


def sizes() -> st.SearchStrategy[float]:
    """Shares of the window: mostly small, some large, a few larger than all of it."""
    return st.one_of(st.floats(0, 0.05), st.floats(0, 0.05), st.floats(0.05, 0.5), st.floats(0.5, 2))


steps = st.one_of(
    st.tuples(st.just("calls"), st.lists(sizes(), min_size=1, max_size=4), st.floats(0, 0.1)),
    st.tuples(st.just("user"), sizes()),
    st.tuples(st.just("reply"), sizes()),
)


@pytest.mark.timeout(3_600)  # a thousand conversations in the thorough profile
@settings(max_examples=EXAMPLES)
@given(
    preset=st.sampled_from(list(PRESETS)),
    model=st.sampled_from(list(MODELS)),
    window=st.sampled_from(WINDOWS),
    system=st.sampled_from(["", "Answer briefly. "]),
    stored=st.booleans(),
    steps=st.lists(steps, min_size=4, max_size=16),
)
async def test_prepare_step_never_exceeds_the_window_while_something_may_be_archived(
    preset: str, model: str, window: int, system: str, stored: bool, steps: list[Any]
) -> None:
    sessions = SessionService(MemoryStore(), estimator="chars/4", limits=Limits(attempts=1, backoff=0.0))
    answer = MODELS[model]
    options: Any = {
        "window": window,
        "preset": preset,
        "summarizer": None if answer is None else ScriptedModel(answer, repeat=True),
    }
    if stored:
        record = await sessions.create(system=system or None, format="openai-chat")
        keeper = Keeper(sessions, record.id, **options)
    else:
        keeper = Keeper(sessions, system=system or None, format="openai-chat", **options)
    history: list[Json] = []
    for number, (kind, *amounts) in enumerate([("user", 0.01), *steps]):
        if kind == "calls":
            results, arguments = amounts
            new = silent_calls(10 * number, [int(window * share) for share in results], int(window * arguments))
        elif kind == "user":
            new = [user_message(f"Mend pier {number}. " + "w" * int(4 * window * amounts[0]))]
        else:
            new = [
                {"role": "assistant", "content": f"Pier {number} is mended. " + "w" * int(4 * window * amounts[0])},
                user_message(f"And pier {number}?"),
            ]
        history += new
        if stored:
            await sessions.append(keeper.session_id, new)
        context = await keeper.prepare_step(None if stored else history)
        if smallest(history, system) + MARGIN <= window:
            assert context.tokens <= window
        assert not check(context.messages, "openai-chat")


async def test_w4_silent_tool_loop_is_compacted_round_after_round() -> None:
    """Calls of tools that the transcript leaves out: the ledger notes them, and the summary stays."""
    sessions = SessionService(MemoryStore(), estimator="chars/4")
    record = await sessions.create(format="openai-chat")
    model = ScriptedModel("The pier is mended.", repeat=True)
    keeper = Keeper(sessions, record.id, window=2_000, preset="workstream", summarizer=model)
    await sessions.append(record.id, user_message())
    largest = 0
    for number in range(16):
        await sessions.append(record.id, silent_calls(number, [300], 5))
        largest = max(largest, (await keeper.prepare_step()).tokens)
    assert largest <= 2_000 * 0.7
    assert await sessions.round(record.id) > 2
    assert "The pier is mended." in str((await keeper.context()).messages)


async def test_l11_failing_model_leaves_the_context_unchanged_only_inside_the_window() -> None:
    """Below the window the preset's own answer to a failure holds; above it, the ledger compacts."""
    sessions = SessionService(MemoryStore(), estimator="chars/4", limits=Limits(attempts=1, backoff=0.0))
    record = await sessions.create(format="openai-chat")
    dead = ScriptedModel(Failure("transport", "the line is dead"), repeat=True)
    keeper = Keeper(sessions, record.id, window=8_000, preset="layer", summarizer=dead)
    loop = [message for number in range(20) for message in silent_calls(number, [200], 0)]
    await sessions.append(record.id, [user_message(), *loop])
    assert (await keeper.compact()).outcome is Outcome.SUMMARY_FAILED
    before = (await keeper.context()).tokens
    assert 4_000 < before < 8_000
    assert (await keeper.prepare_step()).tokens == before
    await sessions.append(record.id, silent_calls(90, [4_000], 0))
    assert (await keeper.prepare_step()).tokens <= 8_000
    assert len(await sessions.events(record.id, kind="compaction")) == 1


async def test_context_over_the_window_is_not_compacted_where_automatic_compaction_is_off() -> None:
    sessions = SessionService(MemoryStore(), estimator="chars/4")
    record = await sessions.create(format="openai-chat")
    await sessions.append(record.id, [user_message(), *silent_calls(0, [900] * 10, 0)])
    keeper = Keeper(sessions, record.id, window=8_000, auto=False)
    assert (await keeper.prepare_step()).tokens > 8_000
