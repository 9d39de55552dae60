"""`holdfast compact` and `holdfast inspect` count the same: the provider's usage, and an estimate of the rest (P3)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_files import Run, claude_code, codex, loaded, pi, write_lines

from holdfast import BlockingSessionService, SQLiteStore

Records = Callable[[], list[dict[str, Any]]]
REAL = sorted(Path(os.environ.get("HOLDFAST_SESSIONS", os.devnull)).glob("*/*.jsonl.gz"), key=os.path.getsize)[:2]


def counts(run: Run, file: Any) -> tuple[int, int]:
    inspected = loaded(run("inspect", file, "--json").stdout)
    compacted = loaded(run("compact", file, "--budget", "10m", "--json").stdout)
    return inspected["tokens"], compacted["tokens_before"]


@pytest.mark.parametrize("records", [claude_code, codex, pi])
def test_compact_and_inspect_count_a_tools_session_alike(records: Records, run: Run, tmp_path: Path) -> None:
    inspected, compacted = counts(run, write_lines(tmp_path / "session.jsonl", records()))
    assert inspected == compacted


@pytest.mark.parametrize("file", REAL, ids=lambda file: file.name)
def test_compact_and_inspect_count_a_real_session_alike(file: Path, run: Run) -> None:
    inspected, compacted = counts(run, file)
    assert inspected == compacted


def test_compact_and_inspect_count_a_stored_session_alike(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with BlockingSessionService(SQLiteStore(path)) as sessions:
        session = sessions.create(model="gpt-5")
        sessions.append(session.id, {"role": "user", "content": "Mend the pier."})
        sessions.append(session.id, {"role": "assistant", "content": "Done."}, usage={"input": 900, "output": 100})
        sessions.append(session.id, {"role": "user", "content": "word " * 300})
        tokens = sessions.context(session.id).tokens
    assert counts(run, path) == (tokens, tokens)


def test_reported_usage_decides_whether_the_command_compacts(run: Run, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "session.jsonl", claude_code())
    facts = loaded(run("compact", file, "--budget", "990", "--json").stdout)
    assert facts["tokens_before"] == 1_000
    assert facts["outcome"] != "not_needed"
