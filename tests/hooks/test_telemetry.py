"""Telemetry: spans and metrics of compactions, with the real OpenTelemetry SDK (P11)."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from compaction_session import SUMMARY, SUMMARY_TEXT, make_message, make_turns, never_answering, open_session
from holdfast import SessionService, TokenCount
from holdfast.hooks import Hooks, Telemetry, Veto
from holdfast.io.installation import install_command
from holdfast.models import Failure, Limits, Reply
from holdfast.strategies import KeepLast
from holdfast.tokens import Usage
from holdfast.triggers import EventCount, always

pytestmark = pytest.mark.anyio


class Sdk:
    """Spans and metrics that the OpenTelemetry SDK received."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracing = TracerProvider()
        self.tracing.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.telemetry = Telemetry(self.tracing, MeterProvider([self.reader]))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def points(self, name: str) -> list[tuple[dict[str, Any], float]]:
        """The data points of a metric: attributes, and count or sum."""
        data = self.reader.get_metrics_data()
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data else []
        points = [point for metric in metrics if metric.name == name for point in metric.data.data_points]
        return [(dict(point.attributes), getattr(point, "value", getattr(point, "sum", 0))) for point in points]


@pytest.fixture
def sdk() -> Sdk:
    return Sdk()


async def open_with_telemetry(sdk: Sdk, **options: Any) -> SessionService:
    return await open_session(Hooks(listen=sdk.telemetry), **options)


class Named:
    """A function that answers under a provider's name."""

    name = "gemini:gemini-9-pro"

    async def __call__(self, call: Any, on_delta: Any) -> Reply:
        return Reply(SUMMARY_TEXT, usage=Usage(input=900, output=12, cache_read=100, cache_write=7))


async def test_telemetry_span_follows_the_conventions(sdk: Sdk) -> None:
    service = await open_with_telemetry(sdk)
    result = await service.compact("s", EventCount(2), SUMMARY, summarizer=Named())
    (span,) = sdk.spans
    assert span.name == "compact gemini-9-pro"
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "compact",
        "gen_ai.conversation.id": "s",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-9-pro",
        "gen_ai.usage.input_tokens": 1_007,
        "gen_ai.usage.output_tokens": 12,
        "gen_ai.usage.cache_read.input_tokens": 100,
        "gen_ai.usage.cache_creation.input_tokens": 7,
        "holdfast.origin": "auto",
        "holdfast.outcome": "compacted",
        "holdfast.tokens.before": result.tokens_before,
        "holdfast.tokens.after": result.tokens_after,
        "holdfast.archived": 8,
        "holdfast.kept": 4,
        "holdfast.round": 1,
        "holdfast.strategy": result.strategy,
        "holdfast.calls": 1,
    }
    assert [event.name for event in span.events] == ["holdfast.calling", "holdfast.answered"]


async def test_telemetry_records_no_content(sdk: Sdk) -> None:
    service = await open_with_telemetry(sdk)
    await service.compact("s", always, SUMMARY, instructions="mind the ships")
    (span,) = sdk.spans
    assert not [word for word in (SUMMARY_TEXT, "harbour", "mind the ships") if word in span.to_json()]


async def test_telemetry_without_model_has_no_model_attributes(sdk: Sdk) -> None:
    service = await open_with_telemetry(sdk)
    await service.append("s", [make_message("u7"), make_message("a7")], lane="tests")
    await service.compact("s", always, KeepLast(4), lane="tests")
    (span,) = sdk.spans
    assert (span.name, span.events, (span.attributes or {})["holdfast.lane"]) == ("compact", (), "tests")
    assert not [name for name in span.attributes or {} if name.startswith(("gen_ai.request", "gen_ai.usage"))]
    assert sdk.points("gen_ai.client.token.usage") == []


async def test_telemetry_failure_is_an_error_with_type_and_reason(sdk: Sdk) -> None:
    """P9."""
    service = await open_with_telemetry(
        sdk, says=Failure("transport", "Overloaded"), limits=Limits(attempts=2, backoff=0.001)
    )
    result = await service.compact("s", always, SUMMARY)
    (span,) = sdk.spans
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == result.why
    assert (span.attributes or {})["error.type"] == (span.attributes or {})["holdfast.outcome"] == "summary_failed"
    names = ["calling", "failed", "waiting", "calling", "failed"]
    assert [event.name for event in span.events] == [f"holdfast.{name}" for name in names]
    assert "Overloaded" in str((span.events[1].attributes or {})["holdfast.what"])


async def test_telemetry_span_ends_after_exception_and_cancellation(sdk: Sdk) -> None:
    service = await open_with_telemetry(sdk)
    failed = await service.compact("s", always, lambda request: 1 / 0)  # type: ignore[arg-type, return-value]
    assert failed.why == "the strategy failed: division by zero"
    with anyio.CancelScope() as scope:
        await service.compact("s", always, SUMMARY, summarizer=never_answering(scope.cancel))
    assert [(span.attributes or {})["error.type"] for span in sdk.spans] == ["summary_failed", "aborted"]
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_telemetry_veto_is_no_error(sdk: Sdk) -> None:
    service = await open_session(Hooks(before=lambda before: Veto("not now"), listen=sdk.telemetry))
    await service.compact("s", always, SUMMARY)
    (span,) = sdk.spans
    assert span.status.status_code is StatusCode.UNSET
    assert (span.attributes or {})["holdfast.why"] == "not now"
    assert sdk.points("holdfast.compactions") == [({"holdfast.outcome": "vetoed", "holdfast.origin": "manual"}, 1)]


async def test_telemetry_spans_are_nested(sdk: Sdk, caplog: pytest.LogCaptureFixture) -> None:
    """Spans of an instrumented SDK are children of the compaction's span."""
    tracer = sdk.tracing.get_tracer("agent")

    async def instrumented(text: str) -> str:
        with tracer.start_as_current_span("chat"):
            return SUMMARY_TEXT

    service = await open_with_telemetry(sdk)
    with tracer.start_as_current_span("step"), caplog.at_level(logging.ERROR):
        await service.compact("s", always, SUMMARY, summarizer=instrumented)
        with tracer.start_as_current_span("next"):
            pass
    parents = {span.name: span.parent.span_id if span.parent else None for span in sdk.spans}
    ids = {span.name: span.context.span_id for span in sdk.spans}
    compact = next(name for name in ids if name.startswith("compact"))
    assert parents == {"chat": ids[compact], compact: ids["step"], "next": ids["step"], "step": None}
    assert caplog.text == "", "the context is restored without an error"


async def test_telemetry_concurrent_compactions_have_separate_spans(sdk: Sdk) -> None:
    service = await open_with_telemetry(sdk)
    await service.create(id="t", format="openai-chat")
    await service.append("t", make_turns())
    both, started = anyio.Event(), []

    async def wait_for_both(text: str) -> str:
        started.append(text)
        if len(started) == 2:
            both.set()
        await both.wait()
        return SUMMARY_TEXT

    async with anyio.create_task_group() as group:
        for session in "st":
            group.start_soon(
                lambda session=session: service.compact(session, always, SUMMARY, summarizer=wait_for_both)
            )
    assert sorted(str((span.attributes or {})["gen_ai.conversation.id"]) for span in sdk.spans) == ["s", "t"]
    assert all([event.name for event in span.events] == ["holdfast.calling", "holdfast.answered"] for span in sdk.spans)


async def test_telemetry_metrics(sdk: Sdk) -> None:
    service = await open_with_telemetry(sdk, says=Reply(SUMMARY_TEXT, usage=Usage(900, 12)))
    result = await service.compact("s", always, SUMMARY)
    await service.compact("s", EventCount(2), SUMMARY)
    await service.compact("s", TokenCount(100_000), SUMMARY)
    manual = {"holdfast.origin": "manual"}
    nothing = {"holdfast.outcome": "nothing_to_compact", "holdfast.origin": "auto"}
    assert sdk.points("holdfast.compactions") == [({"holdfast.outcome": "compacted"} | manual, 1), (nothing, 1)]
    assert sdk.points("holdfast.compaction.tokens.before") == [(manual, result.tokens_before)]
    assert sdk.points("holdfast.compaction.tokens.after") == [(manual, result.tokens_after)]
    assert [attributes["holdfast.outcome"] for attributes, _ in sdk.points("holdfast.compaction.duration")] == [
        "compacted",
        "nothing_to_compact",
    ]
    model = {
        "gen_ai.operation.name": "compact",
        "gen_ai.provider.name": "_OTHER",
        "gen_ai.request.model": "scripted",
    }
    assert sdk.points("gen_ai.client.token.usage") == [
        (model | {"gen_ai.token.type": "input"}, 900),
        (model | {"gen_ai.token.type": "output"}, 12),
    ]


async def test_telemetry_open_breaker_is_counted_without_a_span(sdk: Sdk) -> None:
    service = await open_with_telemetry(sdk, says=" ")
    for _ in range(2):
        await service.compact("s", EventCount(2), SUMMARY)
    assert len(sdk.spans) == 1
    assert ({"holdfast.outcome": "breaker_open"}, 1) in sdk.points("holdfast.compactions")


def test_telemetry_uses_global_providers_by_default() -> None:
    Telemetry()


def test_telemetry_without_the_extra_raises_with_install_command() -> None:
    """Other hooks work without it."""
    blocked = """
import sys
sys.modules["opentelemetry"] = None
from holdfast.hooks import Hooks, Telemetry
Hooks()
try:
    Telemetry()
except ValueError as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=True)
    assert done.stdout == f"Telemetry needs OpenTelemetry: {install_command('otel')}\n"
