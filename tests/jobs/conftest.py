"""A server for the queue, and a queue of its own on it for each test."""

from __future__ import annotations

import pytest

from holdfast.events import new_id
from holdfast.jobs import QueueSettings
from servers.fixtures import valkey

__all__ = ["valkey"]


@pytest.fixture
def redis_url(valkey: str) -> str:
    return valkey


@pytest.fixture
def settings() -> QueueSettings:
    """Times that a test can wait for."""
    return QueueSettings(name=f"test-{new_id()}", backoff=0.05, lock=1.0, grace=5.0)
