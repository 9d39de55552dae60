"""Settings of all tests: how thorough property tests are, what they do not pay for, and that Ctrl-C works.

`HYPOTHESIS_PROFILE=thorough` tries more examples, `quick` fewer.
"""

from __future__ import annotations

import gc
import os
import signal
import ssl
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from servers.fixtures import new_database, postgres, postgres_server, valkey

__all__ = ["new_database", "postgres", "postgres_server", "valkey"]

# A shell that starts a job in the background makes it ignore SIGINT, and every process it starts would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)

quiet = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("thorough", **quiet)
settings.register_profile("usual", max_examples=15, **quiet)
settings.register_profile(
    "quick", max_examples=int(os.environ.get("EXAMPLES", "60")), phases=[Phase.explicit, Phase.generate], **quiet
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
gc.disable()  # until all tests are collected: what imports create stays


def pytest_collection_finish() -> None:
    """Excludes the collected tests and all imported modules from garbage collection: they live as long as the run."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000)  # the default of 700 takes one twentieth of the time


@pytest.fixture(scope="session", autouse=True)
def no_certificates() -> Iterator[None]:
    """Skips loading certificates: slow, done for every client of an SDK, and not needed for plain HTTP."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_args, **_named: None)
        yield


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
