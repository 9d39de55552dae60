"""Preserved thinking: a thinking block is valid only after the conversation that produced it."""

from typing import Any

_THOUGHTS = ("thinking", "redacted_thinking")
_Block = tuple[str, dict[str, Any]]


def bound_thinking(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[str]:
    """Return a complaint for each thinking block of `after` whose prefix is not that of `before`.

    Thinking may be dropped from the front, so the remaining thoughts before a block must be the
    latest ones, without a hole; everything else before it must be unchanged. `cache_control` is not part
    of the check, nor is how one role's blocks are spread over messages, and a vendor's compaction block
    starts a new prefix.
    """
    original, kept, paths = _flat(before), _flat(after), _paths(after)
    homes: dict[str, list[int]] = {}
    for n, (_, block) in enumerate(original):
        if block.get("type") in _THOUGHTS:
            homes.setdefault(repr(block), []).append(n)
    found = []
    for n, (_, block) in enumerate(kept):
        if block.get("type") in _THOUGHTS and not any(
            _same_prefix(original[:home], kept[:n]) for home in homes.get(repr(block), [])
        ):
            found.append(
                f"{paths[n]}: Invalid `signature` in `{block['type']}` block. "
                "The block is bound to a different conversation."
            )
    return found


def _flat(messages: list[dict[str, Any]]) -> list[_Block]:
    """Return every block with its role, as the API sees them: merged, cache marks and key order aside."""
    return [
        (message["role"], {key: block[key] for key in sorted(block) if key != "cache_control"})
        for message in messages
        for block in _blocks(message)
    ]


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _paths(messages: list[dict[str, Any]]) -> list[str]:
    return [f"messages.{i}.content.{j}" for i, one in enumerate(messages) for j in range(len(_blocks(one)))]


def _same_prefix(before: list[_Block], after: list[_Block]) -> bool:
    cuts = [n for n, (_, block) in enumerate(after) if block.get("type") == "compaction"]
    if cuts:
        mark = after[cuts[-1]]
        after = after[cuts[-1] + 1 :]
        if mark in before:
            before = before[len(before) - before[::-1].index(mark) :]
        else:  # a new summary: what follows it must be the unchanged end of what was there
            plain = _plain(after)
            return _plain(before)[len(_plain(before)) - len(plain) :] == plain and _no_hole(before, after)
    return _plain(before) == _plain(after) and _no_hole(before, after)


def _plain(blocks: list[_Block]) -> list[_Block]:
    return [(role, block) for role, block in blocks if block.get("type") not in _THOUGHTS]


def _no_hole(before: list[_Block], after: list[_Block]) -> bool:
    thoughts = [block for _, block in before if block.get("type") in _THOUGHTS]
    left = [block for _, block in after if block.get("type") in _THOUGHTS]
    return thoughts[len(thoughts) - len(left) :] == left
