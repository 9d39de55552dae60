"""Compresses a history with another package, in its own environment: `python compressors.py NAME FILE TARGET`.

Prints the seconds and the size of what is left in characters. Needs nothing but the package. headroom runs without its
model, which it would fetch from a hub.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Messages = list[dict[str, Any]]
NAMES = ("litellm", "headroom")


def main(name: str, file: str, target: int) -> None:
    messages = [{**message, "content": message.get("content") or ""} for message in json.loads(Path(file).read_bytes())]
    compress = _litellm(target) if name == "litellm" else _headroom()
    compress(messages[:20])  # what is loaded once is not counted
    started = time.perf_counter()
    left = compress(messages)
    print(json.dumps({"seconds": time.perf_counter() - started, "characters": len(json.dumps(left))}))


def _litellm(target: int) -> Callable[[Messages], Messages]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from litellm.compression import compress

    return lambda messages: compress(messages, "gpt-4o", compression_trigger=target, compression_target=target)[
        "messages"
    ]


def _headroom() -> Callable[[Messages], Messages]:
    os.environ["HF_HUB_OFFLINE"] = "1"
    from headroom import compress

    return lambda messages: compress(messages, model="gpt-4o", kompress_model="disabled").messages


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
