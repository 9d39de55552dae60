"""The default compaction on long histories: its time, its memory, and how long it holds up an event loop."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec

from holdfast import acompact, compact, examples
from holdfast.boundaries import repair
from holdfast.messages import Message, Part, Text, ToolCall, ToolResult, decode_all, encode_all, profile_for
from holdfast.tokens import estimator_for
from holdfast.tokens.estimator import part_text
from holdfast.tokens.tokenizer import load
from holdfast.transcripts import read_transcript

from .alone import Measured, best_of, report, warm_up
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
    ours: dict[int, Measured] = {}
    memory: dict[int, float] = {}
    for size, file in files.items():
        whole, counted, once = best_of(rounds, __name__, (file, "compact"), (file, "count"), (file, "pass"))
        (traced,) = best_of(1, __name__, (file, "memory"))
        ours[size], memory[size] = whole, traced.result
        yield Ratio(
            f"ledger at {size:,} tokens",
            f"compact() to {TARGET:,} / one pass of the tokenizer; {traced.result / 1e6:,.0f} MB at most",
            whole.seconds / once.seconds,
            MOST_PASSES,
            seconds={"compact": whole.seconds, "decode and count": counted.seconds, "pass": once.seconds},
        )
    yield from _growth(ours, memory)
    (blocked,) = best_of(rounds, __name__, (files[SIZES[-1]], "gap"))
    yield Ratio(
        f"ledger holds up the event loop, {SIZES[-1]:,} tokens",
        f"largest gap between ticks while acompact() runs / {GAP * 1000:.0f} ms",
        blocked.result / GAP,
        1.0,
        seconds={"gap": blocked.result},
    )


def _growth(ours: dict[int, Measured], memory: dict[int, float]) -> Iterator[Ratio]:
    small, large = SIZES[0], SIZES[-1]
    few, many = ours[small], ours[large]
    compares = f"a token's share at {large:,} / at {small:,}"
    times = {f"at {small}": few.seconds, f"at {large}": many.seconds}
    yield Ratio(
        "ledger, time grows in proportion", compares, many.seconds / few.seconds * small / large, GROWTH, seconds=times
    )
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
    if what == "pass":
        texts = [part_text(part) for message in decode_all(messages)[0] for part in message.parts]
        report(lambda: one_pass(texts))
    elif what == "memory":
        report(lambda: most_memory(messages))
    elif what == "gap":
        report(lambda: asyncio.run(largest_gap(messages)))
    else:
        budget, target = (BUDGET, TARGET) if what == "compact" else (10**9, None)
        report(lambda: compact(messages, budget=budget, target=target).tokens_after)


if __name__ == "__main__":
    main(*sys.argv[1:])
