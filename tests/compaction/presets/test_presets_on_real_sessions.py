"""Every preset on every session, in two rounds, with a model behind a real server and the real SDKs (H1, H2).

Kept messages, presentation and limits match the preset's document.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal

from holdfast import CompactionResult, Outcome, acompact, check, preset
from holdfast.compaction.presets import PRESETS
from holdfast.context.events import message_in
from holdfast.ledger.text import unquote_structure
from holdfast.messages import Links, Message, decode_all, is_framed, is_note
from holdfast.summaries import SUMMARY_PREFIX
from holdfast.tokens import estimator_for
from holdfast.triggers import always
from judge import judge
from providers import ProviderServer
from real_sessions import FILES, WHOLE, format_of, transcript
from summarizing_model import limit_of, summarize

Json = dict[str, Any]
NOTHING = {Outcome.NOTHING_TO_COMPACT, Outcome.NO_PROGRESS}
ALLOWED = {"pi": 13_107, "layer": 1_000, "workstream": 16_384, "holdfast": 8_192, "amp": 8_192}
"""Maximum summary tokens; pi's for the others."""
QUOTES_ANSWERED = ("claude_code", "opencode")
"""Their summary archives an answered request with its reply and quotes both; lines like its structure are marked."""
MAX_CALLS = 24
ITEM_ID = re.compile(r"\[[a-z]\d{1,4}\] ")
"""Names an item of the previous summary, so that the answer can refer to it."""
LONG = 80
"""Messages of a long session used by most tests."""
PAIRS = [
    pytest.param(path, name, id=f"{path.name[:13]}-{name}")
    for place, path in enumerate(FILES)
    for turn, name in enumerate(PRESETS, place)
    if WHOLE or turn % 10 == 0
]


class PresetInput:
    """Input of a preset: messages of a format, of which the first `lead` are from the previous round."""

    def __init__(self, messages: list[Json], format: str, lead: int = 0) -> None:
        self.messages, self.format = messages, format
        self.live: list[Message] = decode_all(messages, format)[0][lead:]
        self.newest = next((m for m in reversed(self.live) if m.role == "user" and not is_note(m)), None)
        self.running = len(self.live) - Links(self.live).open_tool_loop_start
        """Number of messages in an unfinished tool loop."""
        self.valid = check(messages, format) == []


@lru_cache(maxsize=4)
def halves(path: Path, most: int | None) -> tuple[list[Json], list[Json]]:
    """Splits a session, or its first `most` messages, at a user message after about 60 %."""
    messages, format = transcript(path).messages[:most], format_of(path)
    for stop in range(int(0.6 * len(messages)), len(messages)):
        spoken = decode_all(messages[stop : stop + 1], format)[0]
        if spoken and spoken[0].role == "user" and not check(messages[:stop], format, ready=True):
            return messages[:stop], messages[stop:]
    return messages, []


def texts(messages: list[Json], format: str) -> list[str]:
    return [m.text for m in decode_all(messages, format)[0]]


@pytest.mark.sampled
@pytest.mark.parametrize(("path", "name"), PAIRS)
def test_preset_on_a_real_session(
    path: Path, name: str, server: ProviderServer, portal: BlockingPortal, models: Json
) -> None:
    """Each session is compacted by every fifth preset in turns, a long one only in part, and some in a second round.

    With HOLDFAST_WHOLE set, every preset compacts every whole session twice.
    """
    format = format_of(path)
    model = models["anthropic" if format == "anthropic" else "openai"]
    server.script = summarize
    turn = FILES.index(path) + list(PRESETS).index(name)
    given, rest = halves(path, LONG if turn % 9 and not WHOLE else None)
    compacted = partial(acompact, preset=name, trigger=always, summarizer=model, format=format)
    server.requests.clear()
    first: CompactionResult = portal.call(partial(compacted, given))
    source = PresetInput(given, format)
    assert len(first.kept) + first.removed == len(given)
    assert_sound(name, source, first, server)
    assert_as_documented(name, source, first)
    if (turn % 4 and not WHOLE) or not rest or first.checkpoint is None:
        return
    given = [*first.messages, *rest]
    server.requests.clear()
    second: CompactionResult = portal.call(partial(compacted, given, previous=first.checkpoint))
    source = PresetInput(given, format, first.checkpoint.lead)
    assert_sound(name, source, second, server)
    assert_as_documented(name, source, second)
    if name == "pi" and second.outcome is Outcome.COMPACTED:
        instructions = ("system", "developer")  # kept by every cut
        before = [event.message for event in first.kept if event.message.get("role") not in instructions]
        shared = [event for event in second.kept if event.message in before and event.message not in rest]
        assert len(shared) <= 1, "P7: nothing that the first round kept, except the user message of a split turn"
    if first.summary and server.requests:
        prompts = [ITEM_ID.sub("", request.prompt) for request in server.requests]
        counts = [prompt.count(first.summary.strip()) for prompt in prompts]
        assert (counts[0], sum(counts)) == (1, 1), "the previous summary is sent once"


def assert_sound(name: str, source: PresetInput, result: CompactionResult, server: ProviderServer) -> None:
    """Compacted or a named outcome; valid; smaller; the newest user message verbatim; calls bounded."""
    format = source.format
    assert result.outcome is Outcome.COMPACTED or (result.outcome in NOTHING and result.why)
    assert (result.fallback, [remark for remark in result.remarks if "broke" in remark]) == ("", [])
    assert check(result.messages, format) == []
    assert judge(list(result.messages), format) == []
    if result.outcome is Outcome.COMPACTED:
        assert result.tokens_after < result.tokens_before
        assert result.summary or result.strategy == "pruning"
    elif source.valid:
        assert result.messages == source.messages
    if source.newest is not None:
        shown = texts(result.messages, format)
        if name in QUOTES_ANSWERED and not any(source.newest.text in text for text in shown):
            assert any(source.newest.text.strip() in unquote_structure(text) for text in shown)
        else:
            assert any(source.newest.text in text for text in shown)
    assert len(server.requests) <= (MAX_CALLS if name == "workstream" else 1)
    for request in server.requests:
        assert "tools" not in request.body
        assert limit_of(request) == ALLOWED.get(name, 13_107)
        assert request.body.get("temperature") == (0.3 if name == "layer" else None)


def assert_as_documented(name: str, source: PresetInput, result: CompactionResult) -> None:
    """The numbers of each document: kept messages and presentation of the summary."""
    if result.outcome is not Outcome.COMPACTED or not source.valid:
        return
    format, loop = source.format, source.running
    shown = [m.text for m in decode_all(result.messages, format)[0] if m.role != "system" or "Compacted" in m.text]
    kept = [m for m in map(message_in, result.kept) if m.role != "system"]
    last = partial(assert_last, source=source, kept=kept, cut_short="token window" in result.strategy)
    counter = estimator_for(preset(name).estimator or "o200k_base")
    size = counter.tokens(sum(map(counter.measure, kept)))
    asked = counter.tokens(counter.measure(source.newest)) if source.newest else 0
    match name:
        case "spring":
            assert len(kept) <= max(10, loop + 1)
            assert shown[0].startswith("Please summarise")
        case "holdfast" | "amp":
            trail = [m for m in decode_all(result.messages, format)[0] if m.role != "system" and not is_framed(m)]
            assert loop or counter.tokens(sum(map(counter.measure, trail))) <= 20_000 + asked
        case "pi":
            assert loop or size <= 20_000 + asked
        case "codex":
            assert {m.role for m in kept[: len(kept) - loop]} <= {"user"}
            assert loop or size <= 20_000 + asked
            assert loop or SUMMARY_PREFIX in shown[-1]
        case "layer":
            assert any(f"## Session Summary (Compaction Round {result.round})" in text for text in shown[:2])
            last(10)
        case "workstream":
            assert any("Compacted context summary:" in text for text in shown[:2])
            last(6)
        case "goat":
            last(max(1, int(0.4 * len(source.live))))
        case "claude_code":
            assert len(kept) <= loop + 1
        case "claude_code_ts":
            last(max(1, int(0.5 * len(source.live))))
        case "opencode":
            assert result.strategy in ("pruning", "opencode summary", "pruning+opencode summary")
            if result.strategy == "pruning":
                assert result.edited
                assert result.archived == []


def assert_last(count: int, *, source: PresetInput, kept: list[Message], cut_short: bool) -> None:
    """Asserts the last `count` messages, more only to keep a result with its call, and the newest user message."""
    cut = Links(source.live).cut_at_or_before(max(0, len(source.live) - count))
    staying = [m for m in source.live[cut:] if m.role != "system"]
    assert cut_short or len(staying) <= len(kept) <= len(staying) + 1


def test_layer_heading_counts_rounds(server: ProviderServer, portal: BlockingPortal, models: Json) -> None:
    """L10, L15: the round comes from the record."""
    server.script = summarize
    words = "about the harbour and its ships " * 20
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"m{n} {words}"} for n in range(30)]
    previous, given = None, messages
    for round in (1, 2, 3):
        work = partial(acompact, given, preset="layer", trigger=always, summarizer=models["openai"], previous=previous)
        result = portal.call(work)
        assert result.messages[0]["role"] == "assistant"
        assert result.messages[0]["content"].startswith(f"## Session Summary (Compaction Round {round})")
        assert result.messages[1:] == given[-10:]
        previous, given = result.checkpoint, [*result.messages, *messages]
