"""Compacts a session file with a local model as summarizer: llama.cpp, Ollama, vLLM or LM Studio, no key needed.

    pip install '.[openai]'
    SUMMARIZER=http://localhost:8080/v1#qwen2.5-coder python examples/local_model.py session.jsonl 20000

SUMMARIZER is the base URL of any server with OpenAI's Chat Completions API, and its model after #. The file is a
session of Claude Code, Codex, pi or OpenCode, or a JSON list of messages; the number is the token budget.
"""

from __future__ import annotations

import os
import sys

from holdfast import Outcome, compact
from holdfast.models import Limits
from holdfast.transcripts import live_context, read_transcript

SUMMARIZER = os.environ.get("SUMMARIZER", "http://localhost:8080/v1")
LIMITS = Limits(timeout=600, deadline=1_800)  # reading a long prompt takes minutes on a small machine


def main(path: str, budget: int) -> int:
    context = live_context(read_transcript(path))
    result = compact(
        context.messages,
        budget=budget,
        summarizer=SUMMARIZER,
        instructions="Keep every number and every file name.",
        limits=LIMITS,
    )
    print(f"{result.outcome}: {result.tokens_before:,} -> {result.tokens_after:,} tokens")
    print(f"{len(result.archived)} of {len(context.messages)} messages archived")
    if result.fallback:  # the model did not answer, or not with a summary
        print(f"written by the {result.fallback} instead of the model")
    for remark in result.remarks:  # what the model forgot or made up
        print(f"- {remark}")
    print(result.summary or "")
    return 0 if result.outcome in (Outcome.COMPACTED, Outcome.NOT_NEEDED) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
