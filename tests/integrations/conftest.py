"""Cleans up after the frameworks' clients."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def close_what_sdks_leave_open() -> Iterator[None]:
    """Collects clients that a framework never closes here: their warnings would fail some later test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
