"""How long a provider asks to wait: in a header, or in Gemini's own way."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from .errorbody import find


def retry_after(headers: Mapping[str, str], body: Any = None) -> float | None:
    """Seconds to wait, where the provider says."""
    given = {name.lower(): value for name, value in headers.items()}
    if (milliseconds := _number(given.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    if (said := given.get("retry-after")) is not None:
        return _number(said) if _number(said) is not None else _until(said)
    delay = find(body, "retryDelay")
    return _number(delay.removesuffix("s")) if isinstance(delay, str) else None


def _number(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
    return max(moment - time.time(), 0.0)
