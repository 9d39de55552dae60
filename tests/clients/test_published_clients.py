"""A published client on a task that overflows; `python -m tests.clients` runs all of them."""

from __future__ import annotations

import os
import shutil

import pytest
from tests.clients.commands import CLIENTS
from tests.clients.packages import NotInstalled
from tests.clients.runs import run_client


@pytest.mark.timeout(300)
def test_codex_compacts_over_an_upstream_without_compaction_protocols() -> None:
    if shutil.which("npm") is None or "HOLDFAST_CLIENTS" not in os.environ:
        pytest.skip("needs npm, and HOLDFAST_CLIENTS: the folder in which clients are installed")
    codex = next(client for client in CLIENTS if client.name == "codex-remote")
    try:
        codex.install()
    except NotInstalled as problem:
        pytest.skip(str(problem))
    direct = run_client(codex, through_gateway=False)
    assert not direct.finished and "Error running remote compact task" in direct.outcome
    gateway = run_client(codex, through_gateway=True)
    assert gateway.finished, gateway.output
    assert gateway.compactions and not gateway.refused and not gateway.problems
