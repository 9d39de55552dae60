"""Numbers as a person reads them at a glance."""

from __future__ import annotations


def short(count: int) -> str:
    """12.3k, 200k, 1.2M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= size * 0.9995:
            value = count / size
            return f"{value:.1f}".removesuffix(".0") + letter if value < 100 else f"{value:.0f}{letter}"
    return str(count)


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.0f} %"
