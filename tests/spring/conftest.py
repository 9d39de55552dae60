from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from spring_story import SpringFormat, Story

from holdfast import MemoryStore, SessionService


@pytest.fixture
async def story() -> AsyncIterator[Story]:
    async with SessionService(MemoryStore(), estimator=SpringFormat()) as service:
        session = await service.create(owner="someone")
        yield Story(service, session.id)
