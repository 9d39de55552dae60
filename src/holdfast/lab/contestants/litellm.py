"""LiteLLM's compression: `litellm.compression.compress` of the released package, by BM25, without embeddings.

It counts with a tokenizer of its own, and not what stands in tool calls. So that it is held to the same limit as all
others, its target is lowered once where the result is too large; what still is, is reported over the limit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it would ask the network for prices

from litellm.compression import compress

from ...boundaries import repair
from ...messages import Json, Message, decode_all, encode_all, profile_for
from .contestant import Compacted, Contestant, Job, Stopwatch, from_payloads, tokens_of

FORMAT = "anthropic"
MODEL = "gpt-4o"
TRIES = 2


def run(new: Sequence[Message], job: Job, previous: Compacted | None) -> Compacted:
    payloads = _strict([*(previous.messages if previous else ()), *new])
    target, best = job.budget, None
    for _ in range(TRIES):
        watch = Stopwatch()
        given = compress(
            payloads,
            MODEL,
            call_type="anthropic_messages",
            compression_trigger=target,
            compression_target=target,
        )
        seconds = watch.seconds
        size = tokens_of(decode_all(given["messages"], FORMAT)[0], job.estimator)
        if best is None or size < best[0]:
            best = (size, given["messages"], seconds)
        if size <= job.budget:
            break
        target = max(1, int(target * min(0.8, job.budget / size)))
    assert best is not None
    return from_payloads(best[1], FORMAT, best[2])


def _strict(messages: Sequence[Message]) -> list[Json]:
    """As LiteLLM wants it, or it does nothing: one message a reply, and the results of all its calls right after it."""
    out: list[Message] = []
    for message in repair(list(messages), profile_for(FORMAT)):
        if out and message.role == "assistant" == out[-1].role:
            message = Message("assistant", out.pop().parts + message.parts)
        out.append(message)
    while out and out[-1].calls:
        out.pop()
    return encode_all(out, FORMAT)


LITELLM = (
    Contestant("LiteLLM compress", "peer", run, "litellm.compression.compress, BM25, target lowered once to fit"),
)
