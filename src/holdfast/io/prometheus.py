"""Metrics in Prometheus' text format, as the worker and the gateway serve them at `/metrics`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Sample(msgspec.Struct, frozen=True):
    """One value of a metric."""

    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""
    """`_bucket`, `_sum` or `_count` of a histogram."""


class Metric(msgspec.Struct, frozen=True):
    """A metric with all its values."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    about: str
    samples: tuple[Sample, ...]


def labelled(label: str, counts: Mapping[str, float]) -> tuple[Sample, ...]:
    """Returns a sample for each count, in order."""
    return tuple(Sample(count, {label: name}) for name, count in sorted(counts.items()))


def render_metrics(metrics: Iterable[Metric], common: Mapping[str, str] = {}) -> str:
    """Returns the metrics as text, with common labels; every name begins with `holdfast_`."""
    lines: list[str] = []
    for metric in metrics:
        name = f"holdfast_{metric.name}"
        lines += [f"# HELP {name} {metric.about}", f"# TYPE {name} {metric.kind}"]
        for sample in metric.samples:
            labels = ",".join(
                f'{key}="{value.translate(_ESCAPES)}"' for key, value in {**common, **sample.labels}.items()
            )
            lines.append(f"{name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {sample.value}")
    return "\n".join(lines) + "\n"
