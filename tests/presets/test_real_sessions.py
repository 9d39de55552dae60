"""Every preset on every session, twice in a row, with a model behind a real server and the real SDKs (H1, H2).

What a preset keeps, shows and asks for is what its document says.
"""

from __future__ import annotations

import os
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal

from holdfast import CompactionResult, Outcome, always, check
from holdfast.boundaries import cut_at_or_before, unfinished
from holdfast.messages import Message, decode_all
from holdfast.presets import PRESETS
from holdfast.summaries import PREFIX
from holdfast.tokens import estimator_for
from judge import judge
from presets.honest import limit_of, summarise
from providers import ProviderServer
from real_sessions import FILES, format_of, transcript

Json = dict[str, Any]
NOTHING = {Outcome.NOTHING_TO_COMPACT, Outcome.NO_PROGRESS}
ALLOWED = {"pi": 13_107, "layer": 1_000, "workstream": 16_384, "holdfast": 8_192, "amp": 8_192}
"""The longest reply that a preset allows; the others' is pi's."""
MOST_CALLS = 24
LONG = 80
"""So many messages of a long session are enough for most."""
WHOLE = bool(os.environ.get("HOLDFAST_WHOLE"))
"""Every preset, all of every session, and both rounds: several minutes."""
PAIRS = [
    pytest.param(path, name, id=f"{path.name[:13]}-{name}")
    for place, path in enumerate(FILES)
    for turn, name in enumerate(PRESETS, place)
    if WHOLE or turn % 2 == 0
]


class Told:
    """What a preset was given: messages of a format, of which the first may stand there since the round before."""

    def __init__(self, messages: list[Json], format: str, lead: int = 0) -> None:
        self.messages, self.format = messages, format
        self.live: list[Message] = decode_all(messages, format)[0][lead:]
        self.newest = next((m for m in reversed(self.live) if m.role == "user"), None)
        self.running = len(self.live) - unfinished(self.live)
        """Messages of a loop that still runs."""
        self.valid = check(messages, format) == []


@lru_cache(maxsize=4)
def halves(path: Path, most: int | None) -> tuple[list[Json], list[Json]]:
    """A session, or so many messages of it, cut where the user speaks, after some three fifths of it."""
    messages, format = transcript(path).messages[:most], format_of(path)
    for stop in range(int(0.6 * len(messages)), len(messages)):
        spoken = decode_all(messages[stop : stop + 1], format)[0]
        if spoken and spoken[0].role == "user" and not check(messages[:stop], format, ready=True):
            return messages[:stop], messages[stop:]
    return messages, []


def texts(messages: list[Json], format: str) -> list[str]:
    return [m.text for m in decode_all(messages, format)[0]]


@pytest.mark.parametrize(("path", "name"), PAIRS)
def test_a_preset_on_a_session(
    path: Path, name: str, server: ProviderServer, portal: BlockingPortal, models: Json
) -> None:
    """Every session is seen by every second preset, in turns, a long one only in part; half of them go on in a second
    round, each ninth to its end. With HOLDFAST_WHOLE set, every preset sees all of it."""
    format = format_of(path)
    model = models["anthropic" if format == "anthropic" else "openai"]
    server.script = summarise
    turn = FILES.index(path) + list(PRESETS).index(name)
    given, rest = halves(path, LONG if turn % 9 and not WHOLE else None)
    compacted = partial(PRESETS[name].acompact, trigger=always, summarizer=model, format=format)
    server.requests.clear()
    first: CompactionResult = portal.call(partial(compacted, given))
    told = Told(given, format)
    assert len(first.kept) + first.removed == len(given)
    sound(name, told, first, server)
    as_documented(name, told, first)
    if (turn % 4 and not WHOLE) or not rest or first.checkpoint is None:
        return
    given = [*first.messages, *rest]
    server.requests.clear()
    second: CompactionResult = portal.call(partial(compacted, given, previous=first.checkpoint))
    told = Told(given, format, first.checkpoint.lead)
    sound(name, told, second, server)
    as_documented(name, told, second)
    if name == "pi" and second.outcome is Outcome.COMPACTED:
        shared = [m for m in second.kept if m in first.kept and m not in rest]
        assert len(shared) <= 1, "P7: nothing that the first round kept, but for the user's message of a split turn"
    if first.summary and server.requests:
        told_again = [request.prompt.count(first.summary.strip()) for request in server.requests]
        assert (told_again[0], sum(told_again)) == (1, 1), "the summary before is told once"


def sound(name: str, told: Told, result: CompactionResult, server: ProviderServer) -> None:
    """Compacted or a named reason; valid; smaller; the newest of what the user said word for word; calls bounded."""
    format = told.format
    assert result.outcome is Outcome.COMPACTED or (result.outcome in NOTHING and result.why)
    assert (result.fallback, [remark for remark in result.remarks if "broke" in remark]) == ("", [])
    assert check(result.messages, format) == []
    assert judge(list(result.messages), format) == []
    if result.outcome is Outcome.COMPACTED:
        assert result.tokens_after < result.tokens_before
        assert result.summary or result.strategy == "pruning"
    elif told.valid:
        assert result.messages == told.messages
    if told.newest is not None:
        assert any(told.newest.text in text for text in texts(result.messages, format))
    assert len(server.requests) <= (MOST_CALLS if name == "workstream" else 1)
    for request in server.requests:
        assert "tools" not in request.body
        assert limit_of(request) == ALLOWED.get(name, 13_107)
        assert request.body.get("temperature") == (0.3 if name == "layer" else None)


def as_documented(name: str, told: Told, result: CompactionResult) -> None:
    """The numbers of each document: what is kept, and how the summary is shown."""
    if result.outcome is not Outcome.COMPACTED or not told.valid:
        return
    format, loop = told.format, told.running
    shown = [m.text for m in decode_all(result.messages, format)[0] if m.role != "system" or "Compacted" in m.text]
    kept = [m for m in decode_all(result.kept, format)[0] if m.role != "system"]
    last = partial(assert_last, told=told, kept=kept, cut_short="token window" in result.strategy)
    counter = estimator_for(PRESETS[name].estimator or "o200k_base")
    size = counter.tokens(sum(map(counter.measure, kept)))
    asked = counter.tokens(counter.measure(told.newest)) if told.newest else 0
    match name:
        case "spring":
            assert len(kept) <= max(10, loop + 1)
            assert shown[0].startswith("Please summarise")
        case "pi" | "holdfast" | "amp":
            assert loop or size <= 20_000 + asked
        case "codex":
            assert {m.role for m in kept[: len(kept) - loop]} <= {"user"}
            assert loop or size <= 20_000 + asked
            assert loop or PREFIX in shown[-1]
        case "layer":
            assert any(f"## Session Summary (Compaction Round {result.round})" in text for text in shown[:2])
            last(10)
        case "workstream":
            assert any("Compacted context summary:" in text for text in shown[:2])
            last(6)
        case "goat":
            last(max(1, int(0.4 * len(told.live))))
        case "claude_code":
            assert len(kept) <= loop + 1
        case "opencode":
            assert result.strategy in ("pruning", "opencode summary", "pruning+opencode summary")
            if result.strategy == "pruning":
                assert result.edited
                assert result.archived == []


def assert_last(count: int, *, told: Told, kept: list[Message], cut_short: bool) -> None:
    """The last so many messages; more only where a tool's result would have lost its call; and the newest user's."""
    cut = cut_at_or_before(told.live, max(0, len(told.live) - count))
    staying = [m for m in told.live[cut:] if m.role != "system"]
    assert cut_short or len(staying) <= len(kept) <= len(staying) + 1


def test_the_layers_heading_counts_its_rounds(server: ProviderServer, portal: BlockingPortal, models: Json) -> None:
    """L10, L15: the round comes from the record."""
    server.script = summarise
    words = "about the harbour and its ships " * 20
    said = [{"role": ("user", "assistant")[n % 2], "content": f"m{n} {words}"} for n in range(30)]
    previous, given = None, said
    for round in (1, 2, 3):
        work = partial(PRESETS["layer"].acompact, given, trigger=always, summarizer=models["openai"], previous=previous)
        result = portal.call(work)
        assert result.messages[0]["role"] == "assistant"
        assert result.messages[0]["content"].startswith(f"## Session Summary (Compaction Round {round})")
        assert result.messages[1:] == given[-10:]
        previous, given = result.checkpoint, [*result.messages, *said]
