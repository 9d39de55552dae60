"""Counters of the gateway: for Prometheus, and what it has done for each owner."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from ..hooks.events import CompactionCompleted, CompactionEvent, CompactionFailed, CompactionSkipped
from ..io.prometheus import Metric, Sample, labelled, render_metrics
from ..tokens import Usage

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds of added latency, in seconds."""
_RECENT = 200
"""Compactions that the status page can show."""


class OwnerCounts(msgspec.Struct):
    """What the gateway has done for one owner since the start."""

    requests: int = 0
    compacted: int = 0
    recovered: int = 0
    failed: int = 0
    tokens_saved: int = 0


class RecentCompaction(msgspec.Struct, frozen=True):
    """A compaction that was committed."""

    time: str
    owner: str
    session: str
    tokens_before: int
    tokens_after: int
    seconds: float
    strategy: str
    summarizer: str | None


class GatewayMetrics:
    """Requests, added latency, compactions, tokens and failures since the start."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        """By wire format and outcome."""
        self.replies: Counter[str] = Counter()
        """By status."""
        self.compactions: Counter[str] = Counter()
        """By outcome."""
        self.failures: Counter[str] = Counter()
        """By kind."""
        self.owners: dict[str, OwnerCounts] = {}
        self.recent: deque[RecentCompaction] = deque(maxlen=_RECENT)
        self.active = 0
        self.tokens_saved = 0
        self.lookups = 0
        self.usage = Counter[str]()
        """Tokens that upstreams reported, by kind."""
        self.started = clock()
        self._clock = clock
        self._latency = [0] * (len(_BUCKETS) + 1)
        self._latency_sum = 0.0

    def count_request(self, format: str, outcome: str, added: float, tokens_saved: int, owner: str = "") -> None:
        """Counts a request with the seconds that the decision took."""
        saved = max(0, tokens_saved)
        self.requests[format, outcome] += 1
        self.tokens_saved += saved
        self._latency[next((at for at, bound in enumerate(_BUCKETS) if added <= bound), len(_BUCKETS))] += 1
        self._latency_sum += added
        counts = self.owners.setdefault(owner, OwnerCounts())
        counts.requests += 1
        counts.compacted += outcome == "compacted"
        counts.failed += outcome == "failed"
        counts.tokens_saved += saved

    def count_recovery(self, format: str, tokens_saved: int, owner: str = "") -> None:
        """Counts a request that was sent again, smaller, after the provider refused it as too long."""
        saved = max(0, tokens_saved)
        self.requests[format, "recovered"] += 1
        self.tokens_saved += saved
        counts = self.owners.setdefault(owner, OwnerCounts())
        counts.recovered += 1
        counts.tokens_saved += saved

    def count_compaction(self, event: CompactionEvent, owner: str = "") -> None:
        """Counts the end of a compaction."""
        match event:
            case CompactionCompleted():
                self.compactions[event.outcome.value] += 1
                self.recent.append(
                    RecentCompaction(
                        self._clock().isoformat(timespec="seconds"),
                        owner,
                        event.session,
                        event.tokens_before,
                        event.tokens_after,
                        event.seconds,
                        event.strategy,
                        event.summarizer,
                    )
                )
            case CompactionSkipped() | CompactionFailed():
                self.compactions[event.outcome] += 1

    def count_usage(self, usage: Usage | None) -> None:
        if usage is not None:
            for name in usage.__struct_fields__:
                self.usage[name] += getattr(usage, name)

    def render(self, worker: str = "") -> str:
        """Returns all counters as text, labelled with the process that counted if there are several."""
        requests = tuple(Sample(n, {"format": a, "outcome": b}) for (a, b), n in sorted(self.requests.items()))
        total, buckets = 0, list[Sample]()
        for bound, count in zip((*map(str, _BUCKETS), "+Inf"), self._latency, strict=True):
            total += count
            buckets.append(Sample(total, {"le": bound}, "_bucket"))
        latency = (*buckets, Sample(self._latency_sum, suffix="_sum"), Sample(total, suffix="_count"))
        about = "Time from the end of a request to its forwarding."
        saved = "Tokens not sent because of compactions, by estimate."
        return render_metrics(
            (
                Metric("gateway_requests_total", "counter", "Model calls by wire format and outcome.", requests),
                Metric("gateway_requests_active", "gauge", "Requests being forwarded.", (Sample(self.active),)),
                Metric("gateway_replies_total", "counter", "Replies by status.", labelled("status", self.replies)),
                Metric("gateway_added_seconds", "histogram", about, latency),
                Metric(
                    "gateway_compactions_total",
                    "counter",
                    "Compactions by outcome.",
                    labelled("outcome", self.compactions),
                ),
                Metric(
                    "gateway_lookups_total",
                    "counter",
                    "Replies in which the model looked up archived messages.",
                    (Sample(self.lookups),),
                ),
                Metric("gateway_tokens_saved_total", "counter", saved, (Sample(self.tokens_saved),)),
                Metric(
                    "gateway_tokens_total", "counter", "Tokens reported by upstreams.", labelled("kind", self.usage)
                ),
                Metric("gateway_failures_total", "counter", "Failures by kind.", labelled("kind", self.failures)),
            ),
            {"worker": worker} if worker else {},
        )
