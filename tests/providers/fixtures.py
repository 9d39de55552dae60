"""Fixtures to import into a `conftest.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tests.providers.server import ProviderServer, Script


@pytest.fixture
def serve() -> Iterator[Callable[..., ProviderServer]]:
    """Starts a server with a script; it stops after the test."""
    with ExitStack() as running:

        def start(script: Script = "a reply", **settings: object) -> ProviderServer:
            return running.enter_context(ProviderServer(script, **settings))  # type: ignore[arg-type]

        yield start
