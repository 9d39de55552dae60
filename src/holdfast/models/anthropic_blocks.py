"""The blocks of an Anthropic message, put together from the events of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..calls import Delta
from ..messages import Json, ToolCall, copy_json
from .draft import read_arguments

_THOUGHTS = ("thinking", "redacted_thinking")


class Blocks:
    def __init__(self) -> None:
        self._blocks: dict[int, Json] = {}
        self._pieces: dict[int, list[str]] = {}
        """What came of each block's text, thought or input."""

    def begin(self, index: int, block: Any) -> Iterator[Delta]:
        begun: Json = copy_json(block)
        self._blocks[index], self._pieces[index] = begun, []
        if begun["type"] == "tool_use":
            yield Delta("call", begun["name"])
        elif first := begun.get("text") or begun.get("thinking"):
            yield self._said(index, first)

    def take(self, index: int, delta: Any) -> Iterator[Delta]:
        match delta.type:
            case "text_delta" if delta.text:
                yield self._said(index, delta.text)
            case "thinking_delta" if delta.thinking:
                yield self._said(index, delta.thinking)
            case "signature_delta":
                self._blocks[index]["signature"] = delta.signature
            case "input_json_delta":
                self._pieces[index].append(delta.partial_json)
                yield Delta("call", "")
            case "citations_delta":
                self._blocks[index].setdefault("citations", []).append(copy_json(delta.citation))

    def _said(self, index: int, text: str) -> Delta:
        self._pieces[index].append(text)
        return Delta("text" if self._blocks[index]["type"] == "text" else "reasoning", text)

    def whole(self, *, cut: bool) -> tuple[list[Json], list[ToolCall]]:
        """The message to send back, if anything of it can be; and the calls whose input is no object."""
        blocks: list[Json] = []
        broken: list[ToolCall] = []
        last = max(self._blocks, default=0)
        for index, block in sorted(self._blocks.items()):
            said = "".join(self._pieces[index])
            if block["type"] != "tool_use":
                blocks += [filled] if (filled := _filled(block, said)) else []
            elif block["input"] and not said:
                blocks.append(block)
            elif isinstance(given := read_arguments(said, cut and index == last), dict):
                blocks.append(block | {"input": given})
            else:
                broken.append(ToolCall(block["id"], block["name"], given))
        while blocks and blocks[-1]["type"] in _THOUGHTS:
            blocks.pop()
        return [{"role": "assistant", "content": blocks}] if blocks else [], broken


def _filled(block: Json, said: str) -> Json | None:
    """A block with what came of it; none where the API would not take it back: a blank text, an unsigned thought."""
    match block["type"]:
        case "text":
            return block | {"text": said} if said.strip() else None
        case "thinking":
            return block | {"thinking": said} if block.get("signature") else None
    return block
