"""Build an Anthropic message list from logs that write one block, or one tool result, a line."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from ..tokens import Usage
from .transcript import TranscriptEntry, TranscriptWarnings

Blocks = list[dict[str, Any]]


class PendingMessage(Struct):
    """A message to which blocks may still be added."""

    role: str
    content: str | Blocks
    id: str | None
    time: str | None
    usage: Usage | None = None


class AnthropicThread:
    """Collects replies and user messages in the order of the provider's requests.

    Anthropic requires the results of all calls of a reply in the one message after it, so results are
    collected there, in call order, however the log interleaves them.
    """

    def __init__(self, warnings: TranscriptWarnings) -> None:
        self._warnings = warnings
        self._drafts: list[PendingMessage] = []
        self._reply: int | None = None
        self._key: str | None = None
        self._results: Blocks | None = None
        self._thoughts: Blocks = []
        self._calls: list[str] = []
        self._answered: set[str] = set()

    def __len__(self) -> int:
        return len(self._drafts)

    def add_reply(
        self, blocks: Blocks, *, key: str | None, id: str | None, time: str | None, usage: Usage | None
    ) -> int | None:
        """Adds a reply, or blocks of the newest one if ``key`` is the same; its usage counts once.

        Returns the index of its entry, as ``add_user`` does; None if there was nothing to add.
        """
        self._warnings.count("message", "without content left out", int(not blocks))
        blocks = self._sendable(blocks)
        if key is None or key != self._key:
            if not blocks:
                return None
            self.cut()
            self._key = key
        blocks = self._thoughts + blocks
        spoken = max((n for n, block in enumerate(blocks, 1) if not _is_thought(block)), default=0)
        self._thoughts = blocks[spoken:]
        if self._reply is None and spoken:
            self._reply = len(self)
            self._drafts.append(PendingMessage("assistant", [], id, time))
        if self._reply is None:
            return None
        draft = self._drafts[self._reply]
        assert isinstance(draft.content, list)
        draft.content.extend(blocks[:spoken])
        draft.usage = usage or draft.usage
        self._calls.extend(block["id"] for block in blocks[:spoken] if _is_call(block))
        return self._reply

    def add_user(self, content: str | Blocks, *, id: str | None, time: str | None) -> int | None:
        results: Blocks = []
        if isinstance(content, str):
            has_content = bool(content.strip())
            content = content if has_content else ""
        else:
            has_content, content = bool(content), self._sendable(content)
            results = [block for block in content if block.get("type") == "tool_result"]
        if not content:
            self._warnings.count("message", "without content left out", int(not has_content))
            return None
        if results and all(block.get("tool_use_id") in self._calls for block in results):
            assert isinstance(content, list)
            return self._add_results(content, id, time)
        self._warnings.count("tool result", "without its call right before it", len(results))
        self._drafts.append(PendingMessage("user", content, id, time))
        return len(self) - 1

    def cut(self) -> None:
        """Closes the newest reply: no more blocks or results are added to it."""
        self._warnings.count("tool call", "without a result", len(set(self._calls) - self._answered))
        self._warnings.count("thinking block", "at the end of a reply left out", len(self._thoughts))
        self._reply = self._key = self._results = None
        self._thoughts, self._calls, self._answered = [], [], set()

    def entries(self) -> tuple[TranscriptEntry, ...]:
        self.cut()
        return tuple(
            TranscriptEntry({"role": draft.role, "content": draft.content}, draft.id, draft.time, draft.usage)
            for draft in self._drafts
        )

    def _add_results(self, content: Blocks, id: str | None, time: str | None) -> int | None:
        assert self._reply is not None
        fresh = [block for block in content if block.get("tool_use_id") not in self._answered]
        self._warnings.count("tool result", "for a call that already has one left out", len(content) - len(fresh))
        if not fresh:
            return None
        if self._results is None:
            self._results = []
            self._warnings.count("message", "logged between a call and its result", len(self) - self._reply - 1)
            self._drafts.insert(self._reply + 1, PendingMessage("user", self._results, id, time))
        self._results.extend(fresh)
        self._results.sort(key=self._place)
        self._answered.update(block["tool_use_id"] for block in fresh if "tool_use_id" in block)
        return self._reply + 1

    def _place(self, block: dict[str, Any]) -> int:
        """Sort key: results in call order, then other blocks."""
        call = block.get("tool_use_id") if block.get("type") == "tool_result" else None
        return self._calls.index(call) if call is not None else len(self._calls)

    def _sendable(self, blocks: Blocks) -> Blocks:
        """Drops blocks that the provider would refuse: blank text, unsigned thinking.

        Published sessions often have signatures and image data removed.
        """
        kept: Blocks = []
        for block in blocks:
            match block:
                case {"type": "text", "text": value} if not str(value or "").strip():
                    self._warnings.count("text block", "without text left out")
                case {"type": "thinking"} if not block.get("signature"):
                    self._warnings.count("thinking block", "without a signature left out")
                case {"type": "image", "source": {"type": "base64", "data": ""}}:
                    self._warnings.count("image", "without data replaced by a placeholder")
                    kept.append({"type": "text", "text": "[image: its data is not in the session file]"})
                case _:
                    kept.append(block)
        return kept


def _is_call(block: dict[str, Any]) -> bool:
    return block.get("type") == "tool_use" and isinstance(block.get("id"), str)


def _is_thought(block: dict[str, Any]) -> bool:
    """Is this a thinking block? A reply must not end with one."""
    return block.get("type") in ("thinking", "redacted_thinking")


def anthropic_id(id: str, warnings: TranscriptWarnings | None = None) -> str:
    """Replaces characters of another provider's call id that Anthropic refuses."""
    legal = re.sub(r"[^a-zA-Z0-9_-]", "_", id)
    if warnings is not None:
        warnings.count("tool call", "with its id rewritten for Anthropic", int(legal != id))
    return legal
