"""Fixtures: a Valkey server, and queue settings with a queue name for each test."""

from __future__ import annotations

import pytest

from holdfast.context.events import new_id
from holdfast.jobs import QueueSettings
from servers.fixtures import valkey

__all__ = ["valkey"]


@pytest.fixture
def redis_url(valkey: str) -> str:
    return valkey


@pytest.fixture
def settings() -> QueueSettings:
    """Short times, for tests."""
    return QueueSettings(name=f"test-{new_id()}", backoff=0.05, lock=1.0, grace=5.0)
