from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from spring_helpers import Scenario, SpringFormat

from holdfast import MemoryStore, SessionService


@pytest.fixture
async def scenario() -> AsyncIterator[Scenario]:
    async with SessionService(MemoryStore(), estimator=SpringFormat()) as service:
        session = await service.create(owner="someone")
        yield Scenario(service, session.id)
