"""Reading commands work on a PostgreSQL store."""

from __future__ import annotations

import subprocess
import sys

from holdfast import BlockingSessionService, PostgresStore


def holdfast(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "holdfast", *words], capture_output=True, text=True, check=False)


def test_postgres_session_is_inspected_searched_and_verified(postgres: str) -> None:
    with BlockingSessionService(PostgresStore(postgres)) as sessions:
        record = sessions.create()
        sessions.append(record.id, {"role": "user", "content": "Mend the tide tables of Osterhaven."})
    shown = holdfast("inspect", postgres, "--session", record.id)
    assert shown.returncode == 0 and record.id in shown.stdout, shown.stderr
    assert "Osterhaven" in holdfast("search", "osterhaven", postgres, "--session", record.id).stdout
    assert holdfast("verify", postgres, "--session", record.id).returncode == 0
