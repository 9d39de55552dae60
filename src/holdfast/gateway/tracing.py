"""OpenTelemetry spans of requests, parts of the client's trace if it sends one; nothing where the API is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from ..io.http_messages import Headers

_PREFIX = "holdfast."


class RequestTracer:
    """Opens a span for each request; compactions that the request waits for are spans inside it."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        try:
            from opentelemetry import propagate, trace
        except ModuleNotFoundError:
            self._trace = None
            return
        self._trace, self._propagate = trace, propagate
        self._tracer = trace.get_tracer("holdfast.gateway", tracer_provider=provider)

    @contextmanager
    def span(self, method: str, path: str, headers: Headers) -> Iterator[dict[str, Any]]:
        """Yields a dict whose facts become attributes of the span: `status`, and what a reply says of its request."""
        facts: dict[str, Any] = {}
        if self._trace is None:
            yield facts
            return
        with self._tracer.start_as_current_span(
            f"{method} {path}",
            context=self._propagate.extract(dict(headers.items())),
            kind=self._trace.SpanKind.SERVER,
            attributes={"http.request.method": method, "url.path": path},
            record_exception=False,
        ) as span:
            yield facts
            status = facts.pop("status")
            span.set_attribute("http.response.status_code", status)
            span.set_attributes({_PREFIX + name.replace("-", "_"): value for name, value in facts.items()})
            if status >= 500:
                span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))
