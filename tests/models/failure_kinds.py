"""Asserts the failure kinds of provider faults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from holdfast.models.calls import Failure
from providers import ProviderServer


def assert_failure_kinds(
    faults: Sequence[tuple[Any, str]], server: ProviderServer, ask: Callable[[], Awaitable[Any]]
) -> None:
    """Runs all faults with one client, since making one is slow; each takes one request."""

    async def mismatches() -> list[tuple[Any, Any]]:
        found = []
        for fault, kind in faults:
            server.script = fault
            answer = await ask()
            if not isinstance(answer, Failure) or answer.kind != kind or not answer.why:
                found.append((fault, answer))
        return found

    found = anyio.run(mismatches)
    assert not found, found
    assert len(server.requests) == len(faults)
