"""The context in docs/ledger.md equals the one compacted from the shipped session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast import compact
from holdfast.messages import Message, Text, ToolCall, ToolResult, decode_all
from holdfast.transcripts import read_transcript
from holdfast.transcripts.examples import example_path

DOCS = Path(__file__).parents[2] / "docs" / "ledger.md"


def blocks(text: str) -> list[str]:
    """The fenced blocks of the example."""
    return [block.partition("\n````")[0] for block in text.split("````text\n")[1:]]


def transcript(messages: list[Message]) -> str:
    """Messages as the docs show them: calls with their arguments, results behind an arrow."""
    return "\n".join(line for message in messages for line in shown(message))


def shown(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield f"{message.role}: {part.text}"
        elif isinstance(part, ToolCall):
            yield f"call: {part.name} {part.arguments_json}"
        elif isinstance(part, ToolResult):
            yield f"result: {part.text}"


def test_docs_example_equals_compacted_context() -> None:
    session = read_transcript(example_path())
    done = compact(session.messages, budget=2_400, target=2_400, estimator="chars/4", format=session.format)
    page, *trail = decode_all(done.messages)[0]
    text = DOCS.read_text(encoding="utf-8")
    assert blocks(text) == [page.text, transcript(trail)]
    assert done.messages[-1] == session.messages[-1]
    assert f"{len(session.messages)} messages and {done.tokens_before:,} tokens" in text
    assert f"leaves {done.tokens_after:,} tokens" in text
