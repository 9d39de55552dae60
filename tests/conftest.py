"""Settings of all tests: how thorough they are, what they do not pay for, and that Ctrl-C works.

`HYPOTHESIS_PROFILE=thorough` tries more examples of property tests, `quick` fewer; `HOLDFAST_WHOLE=1` runs all cases of
the tests marked `sampled`, and those marked `thorough`.
"""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import ssl
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from real_sessions import WHOLE
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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves a sample of the cases of tests marked `sampled` and no `thorough` test, unless HOLDFAST_WHOLE is set."""
    if WHOLE:
        return
    tests: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sampled") and hasattr(item, "callspec"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = {item for item in items if item.get_closest_marker("thorough")}
    left_out |= {case for cases in tests.values() for case in set(cases) - _sample(cases)}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


def _sample(cases: list[pytest.Function]) -> set[pytest.Function]:
    """Cases that together have each value of each parameter, or as many as the mark says; the same in every run."""
    marker = cases[0].get_closest_marker("sampled")
    most = marker.args[0] if marker and marker.args else 0
    seen: set[tuple[str, int]] = set()
    adding, others = list[pytest.Function](), list[pytest.Function]()
    for case in sorted(cases, key=lambda case: hashlib.sha256(case.nodeid.encode()).digest()):
        values = set(case.callspec.indices.items())
        (others if values <= seen else adding).append(case)
        seen |= values
    return set((adding + others)[:most] if most else adding)


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
