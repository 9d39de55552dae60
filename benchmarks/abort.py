"""Latency of an abort during a streamed summary, relative to the time between two chunks."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio

from benchmarks.measure import Options, Ratio
from holdfast import Abort, BlockingSessionService, MemoryStore, SessionService, acompact, compact
from holdfast.models import Anthropic, Gemini, Notice, OpenAIChat, OpenAIResponses
from holdfast.transcripts import read_transcript
from holdfast.transcripts.examples import example_path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from providers import ProviderServer, Say

DELTA = 1.0
"""Seconds between two chunks of the server."""
AIM = 0.1
"""As a share of DELTA: 100 milliseconds."""
ROUNDS = 3
_MODELS: dict[str, Callable[[ProviderServer], Any]] = {
    "OpenAI Chat": lambda server: OpenAIChat("gpt-test", base_url=server.openai_url),
    "OpenAI Responses": lambda server: OpenAIResponses("gpt-test", base_url=server.openai_url),
    "Anthropic": lambda server: Anthropic("claude-test", base_url=server.anthropic_url),
    "Gemini": lambda server: Gemini("gemini-test", base_url=server.gemini_url),
}


def run(options: Options) -> Iterator[Ratio]:
    history = read_transcript(example_path("harbor"))
    with ProviderServer(Say("a word and another one. " * 40, pieces=20, delay=DELTA)) as server:
        for name, make in _MODELS.items():
            for entry_point, call in _entry_points(history.messages, history.format, make(server)).items():
                slowest = max(_time_abort(call) for _ in range(1 if options.quick else ROUNDS))
                yield Ratio(
                    f"abort, {name}, {entry_point}",
                    "slowest time from abort() to its return / time between two chunks",
                    slowest / DELTA,
                    AIM,
                    seconds={"abort": slowest, "words": DELTA},
                )


AbortableCall = Callable[[Abort, Callable[[Notice], None]], str]


def _entry_points(messages: list[Any], format: str | None, model: Any) -> dict[str, AbortableCall]:
    """The four entry points: with and without a session, async and blocking."""
    options: dict[str, Any] = {"budget": 20_000, "summarizer": model, "format": format}

    def blocking(abort: Abort, notify: Callable[[Notice], None]) -> str:
        return compact(messages, abort=abort, notify=notify, **options).outcome

    def asynchronous(abort: Abort, notify: Callable[[Notice], None]) -> str:
        async def main() -> str:
            return (await acompact(messages, abort=abort, notify=notify, **options)).outcome

        return anyio.run(main)

    def session(abort: Abort, notify: Callable[[Notice], None]) -> str:
        async def main() -> str:
            async with SessionService(MemoryStore(), summarizer=model) as service:
                await service.create(id="s", format=format)
                await service.append("s", messages)
                return (await service.compact("s", budget=20_000, abort=abort, notify=notify)).outcome

        return anyio.run(main)

    def blocking_session(abort: Abort, notify: Callable[[Notice], None]) -> str:
        with BlockingSessionService(MemoryStore(), summarizer=model) as service:
            service.create(id="s", format=format)
            service.append("s", messages)
            return service.compact("s", budget=20_000, abort=abort, notify=notify).outcome

    return {"blocking": blocking, "async": asynchronous, "session": session, "blocking session": blocking_session}


def _time_abort(call: AbortableCall) -> float:
    """Seconds from an abort after the first chunk until the call returns."""
    abort, streaming = Abort(), threading.Event()
    aborted_at: list[float] = []

    def on_notice(notice: Notice) -> None:
        if notice.kind == "delta":
            streaming.set()

    def stop() -> None:
        streaming.wait()
        time.sleep(0.05)
        aborted_at.append(time.perf_counter())
        abort()

    stopper = threading.Thread(target=stop)
    stopper.start()
    gc.disable()  # four SDKs are loaded here: a collection alone can take a fifth of a second
    try:
        outcome = call(abort, on_notice)
        returned = time.perf_counter()
    finally:
        gc.enable()
    stopper.join()
    assert outcome == "aborted", outcome
    return returned - aborted_at[0]
