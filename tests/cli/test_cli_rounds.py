"""`holdfast compact one.json -o two.json`, then the same on two.json: the file carries the earlier rounds (H3, L10)."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_files import Run, conversation, loaded, write_json
from cli_models import SUMMARY, Serve, at

TASK = "Question 0: what about berth 0?"


@pytest.mark.parametrize("preset", ["holdfast", "layer", "pi", "workstream"])
def test_h3_second_file_keeps_the_task_and_counts_the_round(
    preset: str, run: Run, chat: Path, tmp_path: Path, serve: Serve
) -> None:
    two, summarizer = tmp_path / "two.json", at(serve(SUMMARY))
    run("compact", chat, "--preset", preset, "--now", "--summarizer", summarizer, "-o", two)
    more = write_json(two, [*loaded(two), *conversation("openai-chat", 80)[8:]])
    facts = loaded(run("compact", more, "--preset", preset, "--now", "--summarizer", summarizer, "--json").stdout)
    note = next(text for message in facts["messages"] if "[holdfast:" in (text := str(message["content"])))
    assert (facts["outcome"], facts["round"]) == ("compacted", 2)
    assert TASK in note and "Compaction round 2" in note


def test_h3_ledger_counts_the_round_from_the_file(run: Run, chat: Path, tmp_path: Path) -> None:
    two = tmp_path / "two.json"
    run("compact", chat, "--budget", "20k", "-o", two)
    more = write_json(two, [*loaded(two), *conversation("openai-chat", 400)[8:]])
    facts = loaded(run("compact", more, "--budget", "20k", "--json").stdout)
    page = facts["messages"][0]["content"]
    assert facts["round"] == 2 and TASK in page and page.count("[holdfast:") == 1
