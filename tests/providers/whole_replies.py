"""Replies that are not streamed: the events of the stream put together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.providers.protocol import Json


def whole_reply(protocol: str, frames: Iterable[bytes]) -> Json:
    """Returns the JSON of a reply whose stream would have these frames."""
    events = [json.loads(line[6:]) for frame in frames for line in frame.splitlines() if line.startswith(b"data: {")]
    if protocol == "anthropic":
        return _message(events)
    assert protocol == "openai-responses", protocol
    response: Json = events[-1]["response"]
    return response


def _message(events: list[Any]) -> Json:
    message: Json = {}
    written = ""
    for event in events:
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                message["content"].append(event["content_block"])
                written = ""
            case "content_block_delta":
                block, delta = message["content"][-1], event["delta"]
                written += delta.get("partial_json", "")
                for name in ("text", "thinking", "signature"):
                    if name in delta:
                        block[name] += delta[name]
            case "content_block_stop" if written:
                message["content"][-1]["input"] = json.loads(written)
            case "message_delta":
                message |= event["delta"] | {"usage": message["usage"] | event["usage"]}
    return message
