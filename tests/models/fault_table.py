"""Faults of a provider, and the kinds of failure that they must become."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from holdfast.calls import Failure
from providers import ProviderServer


def each_has_its_kind(
    faults: Sequence[tuple[Any, str]], server: ProviderServer, ask: Callable[[], Awaitable[Any]]
) -> None:
    """One client for all of them: to make one takes longer than to ask. Each is asked for once."""

    async def wrong() -> list[tuple[Any, Any]]:
        found = []
        for fault, kind in faults:
            server.script = fault
            answer = await ask()
            if not isinstance(answer, Failure) or answer.kind != kind or not answer.why:
                found.append((fault, answer))
        return found

    assert anyio.run(wrong) == []
    assert len(server.requests) == len(faults)
