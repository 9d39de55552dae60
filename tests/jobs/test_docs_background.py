"""docs/background.md is correct: its first example runs, and its numbers are those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from job_sessions import talk

from holdfast import SessionService, SQLiteStore
from holdfast.jobs import JobStats, QueueSettings

pytestmark = pytest.mark.anyio
PAGE = Path(__file__).resolve().parents[2] / "docs" / "background.md"
if not PAGE.exists():
    pytest.skip("the documentation is not here", allow_module_level=True)
TEXT = PAGE.read_text(encoding="utf-8")


async def test_docs_background_first_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(context: Any) -> dict[str, str]:
        return {"role": "assistant", "content": f"I have read {len(context)} messages."}

    monkeypatch.chdir(tmp_path)
    async with SessionService(SQLiteStore("agent.db")) as sessions:
        await talk(sessions, turns=2)
    code = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert code is not None
    body = "\n".join(f"    {line}" for line in code[1].splitlines())
    given: dict[str, Any] = {"ask": ask, "session_id": "s", "model": None}
    exec(f"async def example():\n{body}", given)
    await given["example"]()
    async with SessionService(SQLiteStore("agent.db")) as sessions:
        assert (await sessions.context("s"))[-1]["content"] == "I have read 4 messages."


def test_docs_background_lists_every_queue_setting() -> None:
    lines = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]+?)`? \|", TEXT, re.MULTILINE))
    settings = QueueSettings()
    defaults = {name: getattr(settings, name) for name in settings.__struct_fields__}
    assert lines == {name: f"{value:,}" if isinstance(value, int) else str(value) for name, value in defaults.items()}


def test_docs_background_metrics_match_the_report() -> None:
    metrics = JobStats().report()
    shown = re.search(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert shown is not None
    assert set(json.loads(shown[1])) == {"status", "why", *metrics}
