"""LiteLLM's compression: `litellm.compression.compress` of the released package, by BM25, without embeddings.

It counts with its own tokenizer and ignores tool calls. To hold it to the common limit, its target is lowered once
if the result is too large; a result that is still too large is reported as over the limit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it fetches prices from the network

from litellm.compression import compress

from ...messages import Json, Message, decode_all, encode_all, repair_messages, rules_for
from .base import Contestant, ContestantResult, ContestantTask, Stopwatch, count_message_tokens, result_from_payloads

FORMAT = "anthropic"
MODEL = "gpt-4o"
ATTEMPTS = 2


def compact_with_litellm(
    new: Sequence[Message], task: ContestantTask, previous: ContestantResult | None
) -> ContestantResult:
    payloads = _strict_payloads([*(previous.messages if previous else ()), *new])
    target, best = task.budget, None
    for _ in range(ATTEMPTS):
        watch = Stopwatch()
        given = compress(
            payloads,
            MODEL,
            call_type="anthropic_messages",
            compression_trigger=target,
            compression_target=target,
        )
        seconds = watch.seconds
        size = count_message_tokens(decode_all(given["messages"], FORMAT)[0], task.estimator)
        if best is None or size < best[0]:
            best = (size, given["messages"], seconds)
        if size <= task.budget:
            break
        target = max(1, int(target * min(0.8, task.budget / size)))
    assert best is not None
    return result_from_payloads(best[1], FORMAT, best[2])


def _strict_payloads(messages: Sequence[Message]) -> list[Json]:
    """Normalises for LiteLLM, which else does nothing: one message per reply, directly followed by all its results."""
    out: list[Message] = []
    for message in repair_messages(list(messages), rules_for(FORMAT)):
        if out and message.role == "assistant" == out[-1].role:
            message = Message("assistant", out.pop().parts + message.parts)
        out.append(message)
    while out and out[-1].calls:
        out.pop()
    return encode_all(out, FORMAT)


LITELLM = (
    Contestant(
        "LiteLLM compress",
        "peer",
        compact_with_litellm,
        "litellm.compression.compress, BM25, target lowered once to fit",
    ),
)
