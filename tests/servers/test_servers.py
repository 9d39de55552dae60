"""Test servers end with the process that started them, however that ends."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

HOLDER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from servers.server import Server
print(Server("postgres").url, flush=True)
time.sleep(600)
"""


def test_server_ends_with_killed_test_run() -> None:
    command = [sys.executable, "-c", HOLDER, str(Path(__file__).parents[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        folder = Path(parse_qs(urlsplit(holder.stdout.readline().strip()).query)["host"][0])
        assert (folder / "postmaster.pid").exists()
        holder.kill()
    until = time.monotonic() + 30
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not folder.exists()
