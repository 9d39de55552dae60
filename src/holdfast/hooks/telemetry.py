"""Compactions as spans and metrics of OpenTelemetry, in the words of its conventions for generative AI where they fit.

Its API is an extra, imported when telemetry is made: `pip install 'holdfast[otel]'`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ..compaction import Cost
from ..errors import InvalidInput
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
"""Where the conventions have another name for a provider than we."""
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(4**power for power in range(14))
"""The conventions' own steps for durations and for tokens."""

Attributes = dict[str, str | int | float]


class _Running(NamedTuple):
    span: Span
    token: Any
    """Gives the context back to the span around this one."""
    origin: str
    since: float


class Telemetry:
    """A listener: `Hooks(listen=Telemetry())`. It records sizes, times and outcomes, never what was said."""

    def __init__(
        self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        try:
            from opentelemetry import context, metrics, trace
        except ModuleNotFoundError:
            raise InvalidInput("Telemetry needs OpenTelemetry: pip install 'holdfast[otel]'.") from None
        self._trace, self._context = trace, context
        self._tracer = trace.get_tracer("holdfast", tracer_provider=tracer_provider)
        meter = metrics.get_meter("holdfast", meter_provider=meter_provider)
        self._count = meter.create_counter("holdfast.compactions", "{compaction}", "Compactions by their outcome.")
        self._duration = meter.create_histogram(
            "holdfast.compaction.duration", "s", "How long they took.", explicit_bucket_boundaries_advisory=_SECONDS
        )
        self._before = meter.create_histogram(
            "holdfast.compaction.tokens.before", "{token}", "Of contexts.", explicit_bucket_boundaries_advisory=_TOKENS
        )
        self._after = meter.create_histogram(
            "holdfast.compaction.tokens.after", "{token}", "Of contexts.", explicit_bucket_boundaries_advisory=_TOKENS
        )
        self._usage = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens that writing the summaries took.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._running: dict[str, _Running] = {}

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
        about: Attributes = {
            "gen_ai.operation.name": _OPERATION,
            "gen_ai.conversation.id": event.session,
            "holdfast.origin": event.origin,
            "holdfast.tokens.before": event.tokens,
        }
        if event.lane is not None:
            about["holdfast.lane"] = event.lane
        span = self._tracer.start_span(_OPERATION, attributes=about)
        token = self._context.attach(self._trace.set_span_in_context(span))
        self._running[event.compaction] = _Running(span, token, event.origin, time.perf_counter())

    def _note(self, event: CompactionProgress) -> None:
        """What a person who looks at a slow one would ask for; not every word that is written."""
        running = self._running.get(event.compaction)
        if running is None or event.kind in (None, "delta"):
            return
        about: Attributes = {"holdfast.call": event.call, "holdfast.what": event.what}
        if event.seconds:
            about["holdfast.seconds"] = event.seconds
        running.span.add_event(f"holdfast.{event.kind}", about)

    def _complete(self, event: CompactionCompleted) -> None:
        self._before.record(event.tokens_before, {"holdfast.origin": event.origin})
        self._after.record(event.tokens_after, {"holdfast.origin": event.origin})
        about: Attributes = {
            "holdfast.tokens.after": event.tokens_after,
            "holdfast.archived": event.archived,
            "holdfast.kept": event.kept,
            "holdfast.round": event.round,
            "holdfast.strategy": event.strategy,
        }
        if event.fallback:
            about["holdfast.fallback"] = event.fallback
        model = _model(event.summarizer) if event.summarizer else {}
        if event.cost is not None and model:
            about |= model | _spent(event.cost)
            self._spend(event.cost, model)
        self._finish(event.compaction, event.outcome, about, name=event.summarizer)

    def _end(self, event: CompactionSkipped | CompactionFailed) -> None:
        about: Attributes = {"holdfast.why": event.why} if event.why else {}
        self._finish(event.compaction, event.outcome, about, failed=isinstance(event, CompactionFailed))

    def _finish(
        self, compaction: str, outcome: str, about: Attributes, *, name: str | None = None, failed: bool = False
    ) -> None:
        running = self._running.pop(compaction, None)
        counted: Attributes = {"holdfast.outcome": outcome}
        if running is not None:
            counted["holdfast.origin"] = running.origin
            self._duration.record(time.perf_counter() - running.since, counted)
            self._context.detach(running.token)
            running.span.set_attributes(about | {"holdfast.outcome": outcome})
            if name:
                running.span.update_name(f"{_OPERATION} {_model(name)['gen_ai.request.model']}")
            if failed:
                running.span.set_attribute("error.type", outcome)
                running.span.set_status(
                    self._trace.Status(self._trace.StatusCode.ERROR, str(about.get("holdfast.why", "")))
                )
            running.span.end()
        self._count.add(1, counted)

    def _spend(self, cost: Cost, model: Attributes) -> None:
        for kind, tokens in (("input", _read(cost)), ("output", cost.usage.output)):
            if tokens:
                about = {"gen_ai.operation.name": _OPERATION, "gen_ai.token.type": kind, **model}
                self._usage.record(tokens, about)


def _model(name: str) -> Attributes:
    provider, colon, model = name.partition(":")
    if not colon:
        provider, model = "_OTHER", name
    return {"gen_ai.provider.name": _PROVIDERS.get(provider, provider), "gen_ai.request.model": model}


def _read(cost: Cost) -> int:
    """All that a model read, from a cache or not: this is what the conventions call input."""
    return cost.usage.input + cost.usage.cache_read + cost.usage.cache_write


def _spent(cost: Cost) -> Attributes:
    usage = cost.usage
    used: Attributes = {
        "gen_ai.usage.input_tokens": _read(cost),
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
    }
    price = {} if cost.price is None else {"holdfast.price_usd": cost.price}
    return {"holdfast.calls": cost.calls, **{name: count for name, count in used.items() if count}, **price}
