"""How thorough the property tests are: `HYPOTHESIS_PROFILE=thorough` for a long look, `quick` for a first one."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

from servers.fixtures import new_database, postgres, postgres_server, valkey

__all__ = ["new_database", "postgres", "postgres_server", "valkey"]

quiet = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("thorough", **quiet)
settings.register_profile("usual", max_examples=30, **quiet)
settings.register_profile(
    "quick", max_examples=int(os.environ.get("EXAMPLES", "60")), phases=[Phase.explicit, Phase.generate], **quiet
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
