"""What differs between a payload as it was given and as it is sent: texts replaced, parts dropped, anything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from sdk_cases import Case
from sdk_conversations import Conversation, Path
from sdk_types import conforms_to_sdk

from holdfast import check
from judge import bound_reasoning, bound_thinking, judge


class Change(NamedTuple):
    """One difference, at its place in the payload as it was given."""

    kind: Literal["text", "added", "dropped", "other"]
    path: Path
    before: Any = None
    after: Any = None

    def __str__(self) -> str:
        place = "/".join(map(str, self.path)) or "."
        return f"{self.kind} at {place}: {_short(self.before)} became {_short(self.after)}"


def _short(value: Any) -> str:
    written = repr(value)
    return written if len(written) < 90 else f"{written[:60]} … {written[-20:]}"


def changes(before: Any, after: Any, path: Path = ()) -> Iterator[Change]:
    """Yields the differences; equal values have none, and the order of keys is part of a value."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _in_dict(before, after, path)
    elif isinstance(before, list) and isinstance(after, list) and len(after) <= len(before):
        yield from _in_list(before, after, path)
    elif isinstance(before, str) and isinstance(after, str):
        if before != after:
            yield Change("text", path, before, after)
    elif type(before) is not type(after) or before != after:
        kind: Any = "dropped" if after is None else "added" if before is None else "other"
        yield Change(kind, path, before, after)


def _in_dict(before: dict[str, Any], after: dict[str, Any], path: Path) -> Iterator[Change]:
    kept = [key for key in before if key in after]
    if kept != list(after)[: len(kept)]:
        yield Change("other", path, list(before), list(after))
    for key, value in before.items():
        if key == "response" and isinstance(after.get(key), dict) and value != after[key]:
            yield Change("text", (*path, key), value, after[key])  # Gemini: an object with the text of the result
        elif key in after:
            yield from changes(value, after[key], (*path, key))
        else:
            yield Change("dropped", (*path, key), value)
    yield from (Change("added", (*path, key), None, after[key]) for key in after if key not in before)


def _in_list(before: list[Any], after: list[Any], path: Path) -> Iterator[Change]:
    """Each item that is left is the first one that it may have been."""
    start = 0
    for place, item in enumerate(after):
        last = len(before) - (len(after) - place - 1)
        found = min(range(start, last), key=lambda index: (_distance(before[index], item), index))
        yield from (Change("dropped", (*path, index), before[index]) for index in range(start, found))
        yield from changes(before[found], item, (*path, found))
        start = found + 1
    yield from (Change("dropped", (*path, index), before[index]) for index in range(start, len(before)))


def _distance(before: Any, after: Any) -> tuple[int, bool]:
    """How many changes are no edit, and whether there is a change at all."""
    found = list(changes(before, after))
    return sum(not is_edit(change) for change in found), bool(found)


def source_of(payload: Any, given: Sequence[Any]) -> tuple[int, list[Change]] | None:
    """The payload that this one is, or was made of, and what was changed; None if it has nothing of any."""
    for index, one in enumerate(given):
        if one == payload and not (found := list(changes(one, payload))):
            return index, found
    made_of = [
        (index, list(changes(one, payload))) for index, one in enumerate(given) if _shares_a_string(one, payload)
    ]
    return min(made_of, key=lambda each: sum(not is_edit(change) for change in each[1]), default=None)


def _shares_a_string(before: Any, after: Any) -> bool:
    """Whether a string that occurs once in a conversation is in both."""
    return not own_strings(before).isdisjoint(own_strings(after))


def own_strings(value: Any) -> set[str]:
    """The strings of a payload that no other has: those with a number."""
    if isinstance(value, str):
        return {value} if any(map(str.isdigit, value)) else set()
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {string for item in items for string in own_strings(item)}


# -- whole conversations ----------------------------------------------------------------------------------


TEXTS = frozenset({"text", "refusal", "content", "output", "result", "stdout", "stderr", "error", "response"})
"""Fields whose text an edit replaces."""


_BOUND = {"anthropic": bound_thinking, "openai-responses": bound_reasoning}
"""What thinking and reasoning must come after, as it was."""


def unsound(given: Conversation, sent: Sequence[Any], case: Case) -> list[str]:
    """What is wrong with the messages that are sent for a conversation; empty if nothing is."""
    found = [f"check: {problem}" for problem in check(sent, case.format)]
    found += [f"judge: {problem}" for problem in judge(list(sent), case.format)]
    if bound := _BOUND.get(case.format):
        found += [f"judge: {problem}" for problem in bound(given.messages, list(sent))]
    sources = [source_of(payload, given.messages) for payload in sent]
    for payload, source in zip(sent, sources, strict=True):
        if source:
            found += [f"{source[0]}: {change}" for change in source[1] if not is_edit(change)]
        if not conforms_to_sdk(payload, case.format):
            found.append(f"no SDK has a type for {_short(payload)}")
    places = [source[0] for source in sources if source and not _may_lead(given.messages[source[0]])]
    if places != sorted(set(places)):
        found.append(f"order: the messages are {places}")
    return found + _parted(given, {source[0]: source[1] for source in sources if source})


def _may_lead(payload: Any) -> bool:
    """Whether a message may move to the head of a context: an instruction, a provider's summary."""
    blocks = payload["content"] if isinstance(payload.get("content"), list) else [payload]
    return payload.get("role") in ("system", "developer") or blocks[0].get("type") == "compaction"


def is_edit(change: Change) -> bool:
    """Whether a text was replaced where texts are, or a part dropped that is a list's item or a field of its own."""
    if change.kind == "other" and change.path[-1:] != ("response",):
        return False
    if change.path[-2:] in _PICTURES or change.path[-1] == "response":
        return True
    if change.kind in ("text", "added"):
        return change.path[-1] in TEXTS and not isinstance(change.after, dict | list)
    return change.kind == "dropped" and (isinstance(change.path[-1], int) or change.path in _PART_FIELDS)


_PART_FIELDS = frozenset(
    (field,)
    for field in ("reasoning_content", "reasoning", "audio", "refusal", "content", "tool_calls", "function_call")
)
_PICTURES = frozenset({("output", "image_url"), ("output", "file_id"), ("functionResponse", "parts")})
"""What of a result is no text: a screenshot, of which an edit leaves a blank one, and media beside an answer."""


def _parted(given: Conversation, sent: dict[int, list[Change]]) -> list[str]:
    """Complains about a unit of which some is there and some not."""
    there, gone = [], []
    for member in given.unit:
        dropped = member.message not in sent or any(
            change.kind == "dropped" and member.path[: len(change.path)] == change.path
            for change in sent[member.message]
        )
        if not dropped:
            there.append(member.mark)
        elif "~" not in member.mark:
            gone.append(member.mark)
    return [f"parted: {there} without {gone}"] if there and gone else []
