"""The default compaction of long histories: time, memory, and event loop delay."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import msgspec

from benchmarks import compressors
from benchmarks.alone import Measurement, print_measurement, report_call, run_alone, seconds, warm_up
from benchmarks.measure import Options, Ratio
from benchmarks.mixes import Json
from holdfast import acompact, compact
from holdfast.messages import (
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    decode_all,
    encode_all,
    repair_messages,
    rules_for,
)
from holdfast.tokens import estimator_for
from holdfast.tokens.estimators import load_vocabulary, part_text
from holdfast.transcripts import examples, read_transcript

SIZES = (250_000, 500_000, 1_000_000)
BUDGET, TARGET = 16_000, 8_000
MOST_PASSES, GROWTH, GAP = 15.0, 1.3, 0.05
TICK = 0.005
_LONG_WORD = re.compile(r"\b[^\W\d]{6,}\b")


def run(options: Options) -> Iterator[Ratio]:
    rounds = 2 if options.quick else 5
    with tempfile.TemporaryDirectory() as folder:
        files = {size: _write_history(Path(folder) / f"{size}.json", size) for size in SIZES}
        yield from _measure(files, rounds)


def _write_history(path: Path, size: int) -> str:
    path.write_bytes(msgspec.json.encode(history(size)))
    return str(path)


def _measure(files: dict[int, str], rounds: int) -> Iterator[Ratio]:
    passes: dict[int, float] = {}
    memory: dict[int, float] = {}
    for size, file in files.items():
        taken = sorted((run_alone(__name__, file, "compact") for _ in range(rounds)), key=_passes)
        middle, memory[size] = taken[rounds // 2], run_alone(__name__, file, "memory").result
        passes[size] = _passes(middle)
        yield Ratio(
            f"ledger at {size:,} tokens",
            f"compact() to {TARGET:,} / one pass of the tokenizer, {_passes(taken[0]):.1f} to {_passes(taken[-1]):.1f}"
            f" in {rounds} rounds; {memory[size] / 1e6:,.0f} MB peak",
            passes[size],
            MOST_PASSES,
            seconds={"compact": middle.seconds, "pass": middle.result},
        )
        for name in compressors.NAMES:
            if ratio := _other(name, size, file, middle.seconds):
                yield ratio
    yield from _growth(passes, memory)
    gap = median(run_alone(__name__, files[SIZES[-1]], "gap").result for _ in range(rounds))
    yield Ratio(
        f"ledger, event loop delay, {SIZES[-1]:,} tokens",
        f"largest gap between ticks while acompact() runs / {GAP * 1000:.0f} ms",
        gap / GAP,
        1.0,
        seconds={"gap": gap},
    )


def _other(name: str, size: int, file: str, ours: float) -> Ratio | None:
    """Another package's compression of the same history, if its program is on the PATH."""
    program = shutil.which(name)
    if program is None:
        print(f"{name} is not installed: left out", file=sys.stderr)
        return None
    command = [str(Path(program).with_name("python")), str(compressors.__file__), name, file, str(TARGET)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    measured = msgspec.json.decode(done.stdout.splitlines()[-1])
    return Ratio(
        f"{name} at {size:,} tokens",
        f"its compress(), which leaves about {measured['characters'] // 4:,} tokens / compact() to {TARGET:,}",
        measured["seconds"] / ours,
        seconds={name: measured["seconds"], "compact": ours},
    )


def _passes(compaction: Measurement) -> float:
    """Duration in tokenizer passes, relative to the passes right before and after it."""
    return compaction.seconds / compaction.result


def _growth(passes: dict[int, float], memory: dict[int, float]) -> Iterator[Ratio]:
    small, large = SIZES[0], SIZES[-1]
    compares = f"per token at {large:,} / at {small:,}"
    yield Ratio("ledger, time grows linearly", compares, passes[large] / passes[small], GROWTH)
    yield Ratio("ledger, memory grows linearly", compares, memory[large] / memory[small] * small / large, GROWTH)


def history(tokens: int) -> list[Json]:
    """Concatenated sessions up to a number of tokens; repeated ones get other names."""
    count, whole, total, copy = estimator_for(None), list[Message](), 0, 0
    while True:
        for path in _sessions():
            script = read_transcript(path)
            for message in decode_all(script.messages, script.format)[0]:
                whole.append(_renamed(message, f"{copy}", path.name))
                total += count.measure(whole[-1])
                if total >= tokens and message.role == "assistant" and not message.calls:
                    return encode_all(repair_messages(whole, rules_for("openai-chat")), "openai-chat")
        copy += 1


def _sessions() -> list[Path]:
    folder = os.environ.get("HOLDFAST_SESSIONS")
    real = sorted(Path(folder).rglob("*.jsonl*")) if folder else []
    return real or sorted(Path(str(examples.__file__)).parent.glob("*.json"))


def _renamed(message: Message, copy: str, session: str) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(Text(_with_other_words(part.text, copy)))
        elif isinstance(part, ToolCall):
            parts.append(ToolCall(f"{part.id}-{copy}-{session}", part.name, part.arguments))
        elif isinstance(part, ToolResult):
            parts.append(ToolResult(f"{part.call_id}-{copy}-{session}", (Text(_with_other_words(part.text, copy)),)))
    return Message(message.role, tuple(parts))


def _with_other_words(text: str, copy: str) -> str:
    return _LONG_WORD.sub(lambda word: word[0] + copy, text) if copy != "0" else text


def one_pass(texts: list[str], encode: Callable[[str], list[int]]) -> int:
    """The tokenizer package's ordinary call on every text; counting for a compaction is faster, and part of it."""
    return sum([len(encode(text)) for text in texts])


def peak_memory(messages: list[Json]) -> float:
    """Peak of traced allocations during a compaction."""
    tracemalloc.start()
    compact(messages, budget=BUDGET, target=TARGET)
    return tracemalloc.get_traced_memory()[1]


async def largest_gap(messages: list[Json]) -> float:
    """Maximum delay of a periodic tick while acompact() runs."""
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
    gc.collect()  # startup garbage must not be collected during the compaction
    if what == "compact":
        texts = [part_text(part) for message in decode_all(messages)[0] for part in message.parts]
        encode = load_vocabulary("o200k_base").encode_ordinary
        before = seconds(lambda: one_pass(texts, encode))
        taken = seconds(lambda: compact(messages, budget=BUDGET, target=TARGET))
        print_measurement(Measurement(taken, 0, (before + seconds(lambda: one_pass(texts, encode))) / 2))
    elif what == "memory":
        report_call(lambda: peak_memory(messages))
    else:
        report_call(lambda: asyncio.run(largest_gap(messages)))


if __name__ == "__main__":
    main(*sys.argv[1:])
