"""The default compaction on long histories: its time, its memory, and how long it holds up an event loop."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import msgspec

from holdfast import acompact, compact, examples
from holdfast.boundaries import repair
from holdfast.messages import Message, Part, Text, ToolCall, ToolResult, decode_all, encode_all, profile_for
from holdfast.tokens import estimator_for
from holdfast.tokens.estimator import part_text
from holdfast.tokens.tokenizer import load
from holdfast.transcripts import read_transcript

from .alone import Measured, alone, report, seconds, tell, warm_up
from .measure import Options, Ratio
from .mixes import Json

SIZES = (250_000, 500_000, 1_000_000)
BUDGET, TARGET = 16_000, 8_000
MOST_PASSES, GROWTH, GAP = 15.0, 1.3, 0.05
TICK = 0.005
_LONG_WORD = re.compile(r"\b[^\W\d]{6,}\b")


def run(options: Options) -> Iterator[Ratio]:
    rounds = 2 if options.quick else 5
    with tempfile.TemporaryDirectory() as folder:
        files = {size: _written(Path(folder) / f"{size}.json", size) for size in SIZES}
        yield from _measured(files, rounds)


def _written(path: Path, size: int) -> str:
    path.write_bytes(msgspec.json.encode(history(size)))
    return str(path)


def _measured(files: dict[int, str], rounds: int) -> Iterator[Ratio]:
    passes: dict[int, float] = {}
    memory: dict[int, float] = {}
    for size, file in files.items():
        taken = sorted((alone(__name__, file, "compact") for _ in range(rounds)), key=_passes)
        middle, memory[size] = taken[rounds // 2], alone(__name__, file, "memory").result
        passes[size] = _passes(middle)
        yield Ratio(
            f"ledger at {size:,} tokens",
            f"compact() to {TARGET:,} / one pass of the tokenizer, {_passes(taken[0]):.1f} to {_passes(taken[-1]):.1f}"
            f" in {rounds} rounds; {memory[size] / 1e6:,.0f} MB at most",
            passes[size],
            MOST_PASSES,
            seconds={"compact": middle.seconds, "pass": middle.result},
        )
    yield from _growth(passes, memory)
    gap = median(alone(__name__, files[SIZES[-1]], "gap").result for _ in range(rounds))
    yield Ratio(
        f"ledger holds up the event loop, {SIZES[-1]:,} tokens",
        f"largest gap between ticks while acompact() runs / {GAP * 1000:.0f} ms",
        gap / GAP,
        1.0,
        seconds={"gap": gap},
    )


def _passes(compaction: Measured) -> float:
    """How many passes of the tokenizer it takes as long as, those that were made just before and after it."""
    return compaction.seconds / compaction.result


def _growth(passes: dict[int, float], memory: dict[int, float]) -> Iterator[Ratio]:
    small, large = SIZES[0], SIZES[-1]
    compares = f"a token's share at {large:,} / at {small:,}"
    yield Ratio("ledger, time grows in proportion", compares, passes[large] / passes[small], GROWTH)
    yield Ratio("ledger, memory grows in proportion", compares, memory[large] / memory[small] * small / large, GROWTH)


def history(tokens: int) -> list[Json]:
    """Sessions one behind the other, up to so many tokens; what comes again has other names in it."""
    count, whole, total, copy = estimator_for(None), list[Message](), 0, 0
    while True:
        for path in _sessions():
            script = read_transcript(path)
            for message in decode_all(script.messages, script.format)[0]:
                whole.append(_renamed(message, f"{copy}", path.name))
                total += count.measure(whole[-1])
                if total >= tokens and message.role == "assistant" and not message.calls:
                    return encode_all(repair(whole, profile_for("openai-chat")), "openai-chat")
        copy += 1


def _sessions() -> list[Path]:
    folder = os.environ.get("HOLDFAST_SESSIONS")
    real = sorted(Path(folder).rglob("*.jsonl*")) if folder else []
    return real or sorted(Path(str(examples.__file__)).parent.glob("*.json"))


def _renamed(message: Message, copy: str, session: str) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(Text(_other(part.text, copy)))
        elif isinstance(part, ToolCall):
            parts.append(ToolCall(f"{part.id}-{copy}-{session}", part.name, part.arguments))
        elif isinstance(part, ToolResult):
            parts.append(ToolResult(f"{part.call_id}-{copy}-{session}", (Text(_other(part.text, copy)),)))
    return Message(message.role, tuple(parts))


def _other(text: str, copy: str) -> str:
    return _LONG_WORD.sub(lambda word: word[0] + copy, text) if copy != "0" else text


def one_pass(texts: list[str]) -> float:
    return sum(map(load("o200k_base"), texts))


def most_memory(messages: list[Json]) -> float:
    """The most that a compaction has at a time, allocation by allocation: what was freed before does not hide any."""
    tracemalloc.start()
    compact(messages, budget=BUDGET, target=TARGET)
    return tracemalloc.get_traced_memory()[1]


async def largest_gap(messages: list[Json]) -> float:
    """How late a clock that should tick every few milliseconds was, at most."""
    work = asyncio.create_task(acompact(messages, budget=BUDGET, target=TARGET))
    gap = 0.0
    while not work.done():
        started = time.perf_counter()
        await asyncio.sleep(TICK)
        gap = max(gap, time.perf_counter() - started - TICK)
    return gap


def main(file: str, what: str) -> None:
    messages = msgspec.json.decode(Path(file).read_bytes())
    warm_up()
    gc.collect()  # what is left from starting is not the compaction's to clear away
    if what == "compact":
        texts = [part_text(part) for message in decode_all(messages)[0] for part in message.parts]
        before = seconds(lambda: one_pass(texts))
        taken = seconds(lambda: compact(messages, budget=BUDGET, target=TARGET))
        tell(Measured(taken, 0, (before + seconds(lambda: one_pass(texts))) / 2))
    elif what == "memory":
        report(lambda: most_memory(messages))
    else:
        report(lambda: asyncio.run(largest_gap(messages)))


if __name__ == "__main__":
    main(*sys.argv[1:])
