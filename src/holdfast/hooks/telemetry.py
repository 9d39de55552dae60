"""OpenTelemetry spans and metrics of compactions, following its conventions for generative AI.

The API is the extra `otel`, imported when `Telemetry` is created.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ..compaction import Cost
from ..errors import InvalidInput
from ..io.installation import install_command
from .events import (
    CompactionCompleted,
    CompactionEvent,
    CompactionFailed,
    CompactionProgress,
    CompactionSkipped,
    CompactionStarted,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

_OPERATION = "compact"
_PROVIDERS = {"openai-responses": "openai", "gemini": "gcp.gemini", "google": "gcp.gemini"}
"""Provider names of the conventions, where they differ from ours."""
_DURATION_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKEN_BUCKETS = tuple(4**power for power in range(14))
"""Bucket boundaries of the conventions."""
Attributes = dict[str, str | int | float]


class _OpenSpan(NamedTuple):
    span: Span
    token: Any
    """Restores the enclosing span's context."""
    origin: str
    since: float


class Telemetry:
    """A listener, as in `Hooks(listen=Telemetry())`. Records sizes, durations and outcomes, never message content."""

    def __init__(
        self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        try:
            from opentelemetry import context, metrics, trace
        except ModuleNotFoundError:
            raise InvalidInput(f"Telemetry needs OpenTelemetry: {install_command('otel')}") from None
        self._trace, self._context = trace, context
        self._tracer = trace.get_tracer("holdfast", tracer_provider=tracer_provider)
        meter = metrics.get_meter("holdfast", meter_provider=meter_provider)
        self._count = meter.create_counter("holdfast.compactions", "{compaction}", "Compactions by outcome.")
        self._duration = meter.create_histogram(
            "holdfast.compaction.duration",
            "s",
            "Duration of compactions.",
            explicit_bucket_boundaries_advisory=_DURATION_BUCKETS,
        )
        self._before = meter.create_histogram(
            "holdfast.compaction.tokens.before",
            "{token}",
            "Of contexts.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )
        self._after = meter.create_histogram(
            "holdfast.compaction.tokens.after",
            "{token}",
            "Of contexts.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )
        self._usage = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens used to write summaries.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )
        self._running: dict[str, _OpenSpan] = {}

    def __call__(self, event: CompactionEvent) -> None:
        match event:
            case CompactionStarted():
                self._start(event)
            case CompactionProgress():
                self._note(event)
            case CompactionCompleted():
                self._complete(event)
            case CompactionSkipped() | CompactionFailed():
                self._end(event)

    def _start(self, event: CompactionStarted) -> None:
        attributes: Attributes = {
            "gen_ai.operation.name": _OPERATION,
            "gen_ai.conversation.id": event.session,
            "holdfast.origin": event.origin,
            "holdfast.tokens.before": event.tokens,
        }
        if event.lane is not None:
            attributes["holdfast.lane"] = event.lane
        span = self._tracer.start_span(_OPERATION, attributes=attributes)
        token = self._context.attach(self._trace.set_span_in_context(span))
        self._running[event.compaction] = _OpenSpan(span, token, event.origin, time.perf_counter())

    def _note(self, event: CompactionProgress) -> None:
        """Adds calls, waits and failures to the span, but not every delta."""
        running = self._running.get(event.compaction)
        if running is None or event.kind in (None, "delta"):
            return
        attributes: Attributes = {"holdfast.call": event.call, "holdfast.what": event.what}
        if event.seconds:
            attributes["holdfast.seconds"] = event.seconds
        running.span.add_event(f"holdfast.{event.kind}", attributes)

    def _complete(self, event: CompactionCompleted) -> None:
        self._before.record(event.tokens_before, {"holdfast.origin": event.origin})
        self._after.record(event.tokens_after, {"holdfast.origin": event.origin})
        attributes: Attributes = {
            "holdfast.tokens.after": event.tokens_after,
            "holdfast.archived": event.archived,
            "holdfast.kept": event.kept,
            "holdfast.round": event.round,
            "holdfast.strategy": event.strategy,
        }
        if event.fallback:
            attributes["holdfast.fallback"] = event.fallback
        model = _model_attributes(event.summarizer) if event.summarizer else {}
        if event.cost is not None and model:
            attributes |= model | _cost_attributes(event.cost)
            self._spend(event.cost, model)
        self._finish(event.compaction, event.outcome, attributes, name=event.summarizer)

    def _end(self, event: CompactionSkipped | CompactionFailed) -> None:
        attributes: Attributes = {"holdfast.why": event.why} if event.why else {}
        self._finish(event.compaction, event.outcome, attributes, failed=isinstance(event, CompactionFailed))

    def _finish(
        self, compaction: str, outcome: str, attributes: Attributes, *, name: str | None = None, failed: bool = False
    ) -> None:
        running = self._running.pop(compaction, None)
        counted: Attributes = {"holdfast.outcome": outcome}
        if running is not None:
            counted["holdfast.origin"] = running.origin
            self._duration.record(time.perf_counter() - running.since, counted)
            self._context.detach(running.token)
            running.span.set_attributes(attributes | {"holdfast.outcome": outcome})
            if name:
                running.span.update_name(f"{_OPERATION} {_model_attributes(name)['gen_ai.request.model']}")
            if failed:
                running.span.set_attribute("error.type", outcome)
                running.span.set_status(
                    self._trace.Status(self._trace.StatusCode.ERROR, str(attributes.get("holdfast.why", "")))
                )
            running.span.end()
        self._count.add(1, counted)

    def _spend(self, cost: Cost, model: Attributes) -> None:
        for kind, tokens in (("input", _input_tokens(cost)), ("output", cost.usage.output)):
            if tokens:
                attributes = {"gen_ai.operation.name": _OPERATION, "gen_ai.token.type": kind, **model}
                self._usage.record(tokens, attributes)


def _model_attributes(name: str) -> Attributes:
    provider, colon, model = name.partition(":")
    if not colon:
        provider, model = "_OTHER", name
    return {"gen_ai.provider.name": _PROVIDERS.get(provider, provider), "gen_ai.request.model": model}


def _input_tokens(cost: Cost) -> int:
    """Returns all input tokens, cached or not, as the conventions count them."""
    return cost.usage.input + cost.usage.cache_read + cost.usage.cache_write


def _cost_attributes(cost: Cost) -> Attributes:
    usage = cost.usage
    used: Attributes = {
        "gen_ai.usage.input_tokens": _input_tokens(cost),
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
    }
    price = {} if cost.price is None else {"holdfast.price_usd": cost.price}
    return {"holdfast.calls": cost.calls, **{name: count for name, count in used.items() if count}, **price}
