"""Limits of time in tests."""

from __future__ import annotations

GROWING_LIMITS = (0.2, 2.0, 20.0)
"""Seconds until work is stopped that must have begun by then: on a busy machine the next limit is tried."""
