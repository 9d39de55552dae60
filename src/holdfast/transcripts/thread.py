"""An Anthropic thread put together from logs that write one block, or one tool result, a line."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from .notes import Notes
from .transcript import Entry, Usage

Blocks = list[dict[str, Any]]


class Draft(Struct):
    """A message that may still grow."""

    role: str
    content: str | Blocks
    id: str | None
    time: str | None
    usage: Usage | None = None


class Thread:
    """Replies and user messages in the order in which the provider saw them.

    The provider wants the results of all calls of one reply in the one message after it, so results are
    gathered there, in the order of the calls, however the log interleaves them.
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._drafts: list[Draft] = []
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
        """Add a reply, or one more part of the newest if ``key`` is the same (its usage counts once, P3).

        Says at which place it went in, as ``add_user`` does; nothing if there was nothing to add.
        """
        self._notes.count("message", "without content left out", int(not blocks))
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
            self._drafts.append(Draft("assistant", [], id, time))
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
            said = bool(content.strip())
            content = content if said else ""
        else:
            said, content = bool(content), self._sendable(content)
            results = [block for block in content if block.get("type") == "tool_result"]
        if not content:
            self._notes.count("message", "without content left out", int(not said))
            return None
        if results and all(block.get("tool_use_id") in self._calls for block in results):
            assert isinstance(content, list)
            return self._add_results(content, id, time)
        self._notes.count("tool result", "without its call right before it", len(results))
        self._drafts.append(Draft("user", content, id, time))
        return len(self) - 1

    def cut(self) -> None:
        """End what the newest reply may still take in: another reply follows, or a compaction."""
        self._notes.count("tool call", "without a result", len(set(self._calls) - self._answered))
        self._notes.count("thinking block", "that led to nothing said left out", len(self._thoughts))
        self._reply = self._key = self._results = None
        self._thoughts, self._calls, self._answered = [], [], set()

    def entries(self) -> tuple[Entry, ...]:
        self.cut()
        return tuple(
            Entry({"role": draft.role, "content": draft.content}, draft.id, draft.time, draft.usage)
            for draft in self._drafts
        )

    def _add_results(self, content: Blocks, id: str | None, time: str | None) -> int | None:
        assert self._reply is not None
        fresh = [block for block in content if block.get("tool_use_id") not in self._answered]
        self._notes.count("tool result", "for a call that already has one left out", len(content) - len(fresh))
        if not fresh:
            return None
        if self._results is None:
            self._results = []
            self._notes.count("message", "logged between a call and its result", len(self) - self._reply - 1)
            self._drafts.insert(self._reply + 1, Draft("user", self._results, id, time))
        self._results.extend(fresh)
        self._results.sort(key=self._place)
        self._answered.update(block["tool_use_id"] for block in fresh if "tool_use_id" in block)
        return self._reply + 1

    def _place(self, block: dict[str, Any]) -> int:
        """Results in call order, then whatever else was said with them."""
        call = block.get("tool_use_id") if block.get("type") == "tool_result" else None
        return self._calls.index(call) if call is not None else len(self._calls)

    def _sendable(self, blocks: Blocks) -> Blocks:
        """Leave out what the provider would refuse: text without a visible character, unsigned thinking.

        Published sessions often have signatures and image bytes taken out.
        """
        kept: Blocks = []
        for block in blocks:
            match block:
                case {"type": "text", "text": said} if not str(said or "").strip():
                    self._notes.count("text block", "without text left out")
                case {"type": "thinking"} if not block.get("signature"):
                    self._notes.count("thinking block", "without a signature left out")
                case {"type": "image", "source": {"type": "base64", "data": ""}}:
                    self._notes.count("image", "without data replaced by a placeholder")
                    kept.append({"type": "text", "text": "[image: its data is not in the session file]"})
                case _:
                    kept.append(block)
        return kept


def _is_call(block: dict[str, Any]) -> bool:
    return block.get("type") == "tool_use" and isinstance(block.get("id"), str)


def _is_thought(block: dict[str, Any]) -> bool:
    """A provider takes thinking only with what it led to: a reply may not end with it."""
    return block.get("type") in ("thinking", "redacted_thinking")


def legal_id(id: str, notes: Notes | None = None) -> str:
    """Ids that other providers gave may hold characters that Anthropic refuses."""
    legal = re.sub(r"[^a-zA-Z0-9_-]", "_", id)
    if notes is not None:
        notes.count("tool call", "with its id rewritten for Anthropic", int(legal != id))
    return legal
