"""The page in docs/ledger.md equals the one rendered from the shipped session."""

from __future__ import annotations

from pathlib import Path

from holdfast import compact
from holdfast.transcripts import read_transcript
from holdfast.transcripts.examples import example_path

DOCS = Path(__file__).parents[2] / "docs" / "ledger.md"


def test_docs_example_equals_rendered_page() -> None:
    session = read_transcript(example_path())
    done = compact(session.messages, budget=2_400, target=2_400, estimator="chars/4", format=session.format)
    page, turn, reply = done.messages
    text = DOCS.read_text(encoding="utf-8")
    shown = text.partition("````text\n")[2].partition("\n````")[0]
    assert shown == page["content"]
    assert reply == session.messages[-1] and turn in session.messages
    assert f"{len(session.messages)} messages and {done.tokens_before:,} tokens" in text
    assert f"leaves {done.tokens_after:,} tokens" in text
