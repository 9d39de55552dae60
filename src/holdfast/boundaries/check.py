"""`check`: what a provider would refuse about a list of messages, in words (H2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..errors import InvalidInput
from ..messages import (
    NAMELESS,
    PROFILES,
    Message,
    Profile,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    decode_all,
    follows_user,
    format_name,
    is_summary,
    item_id,
    needs_reasoning,
    opens,
    says_nothing,
)
from .regular import is_regular


class Problem(msgspec.Struct, frozen=True):
    """One thing that the provider would answer with an error."""

    index: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"message {self.index}: {self.text}"


def check(messages: Iterable[Any], profile: str, *, ready: bool = False) -> list[Problem]:
    """What this wire format would refuse; empty when the messages are valid.

    Calls at the very end that still wait for their results are history in progress, not a problem;
    with `ready=True` they are, as they would be in a request.
    """
    rules = PROFILES[format_name(profile)]
    try:
        decoded, _ = decode_all(messages, rules.name)
    except InvalidInput as problem:
        return [Problem(0, "malformed", str(problem))]
    return find_problems(decoded, rules, ready=ready)


def find_problems(messages: Sequence[Message], profile: Profile, *, ready: bool = False) -> list[Problem]:
    walk = _Walk(profile)
    if not walk.particular and is_regular(messages, profile, ready):
        return []
    quiet = not profile.user_first
    for index, message in enumerate(messages):
        if quiet and _is_plain(message, profile):
            walk.previous = message
            continue
        walk.step(index, message)
        quiet = message.raw is None and walk.started and not walk.waiting and _is_plain(message, profile)
    return walk.finish(messages, ready)


def _is_plain(message: Message, profile: Profile) -> bool:
    """Text and nothing else: after more of the same there is nothing that a format could mind."""
    parts = message.parts
    if message.raw is not None or len(parts) != 1 or type(only := parts[0]) is not Text:
        return False
    return message.role in _SPEAKERS and (not profile.refuses_blank or bool(only.text.strip()))


_SPEAKERS = ("user", "assistant")


class _Walk:
    """One pass over the messages, with the calls that still wait for an answer."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.particular = profile != Profile(profile.name)
        """Has this format rules beyond those that all have?"""
        self.problems: list[Problem] = []
        self.waiting: dict[str, int] = {}
        self.answered: set[str] = set()
        self.called: set[str] = set()
        self.previous: Message | None = None
        self.items: set[str] = set()
        self.started = False

    def step(self, index: int, message: Message) -> None:
        parts = message.parts
        if not parts:
            self._empty(index, message)
        if self.particular:
            self._particulars(index, message)
        kinds = {type(part) for part in parts}
        if ToolResult in kinds:
            self._results(index, message)
        elif message.role == "tool":
            self._say(index, "orphan-result", "a tool message holds no result")
        elif self.waiting and not self._same_batch(message):
            self._unanswered()
        if ToolCall in kinds:
            self._calls(index, message)
        self.previous = message
        self.started = self.started or message.role != "system"

    def _particulars(self, index: int, message: Message) -> None:
        """What only some formats mind."""
        self._content(index, message)
        if self.profile.items and (item := item_id(message)):
            if item in self.items:
                self._say(index, "duplicate-item", f"the item id {item!r} is used a second time")
            self.items.add(item)
        self._first(index, message)
        self._follows(index, message)
        if self.profile.signed_reasoning and self.previous is not None and _signed_summary(message):
            self._say(index, "summary-place", "a compaction block must come first")

    def _say(self, index: int, rule: str, text: str) -> None:
        self.problems.append(Problem(index, rule, text))

    def _empty(self, index: int, message: Message) -> None:
        if message.role != "tool" and says_nothing(message, self.profile):
            self._say(index, "empty", f"the {message.role} message has no content")

    def _content(self, index: int, message: Message) -> None:
        profile = self.profile
        for part in message.parts:
            if type(part) is Text and profile.refuses_blank and not part.text.strip():
                self._say(index, "empty", "a text is blank: text content must not be empty")
            elif profile.signed_reasoning and type(part) is Reasoning and not (part.signature or part.encrypted):
                self._say(index, "unsigned-reasoning", "a thinking block has no signature")

    def _first(self, index: int, message: Message) -> None:
        if self.started or not self.profile.user_first or message.role == "system" or opens(message):
            return
        self._say(index, "first-role", f"the first message is the {message.role}'s: it must be the user's")

    def _follows(self, index: int, message: Message) -> None:
        previous, profile = self.previous, self.profile
        if profile.places_system:
            self._system(index, message)
        if previous is None:
            return
        if profile.reasoning_leads and _ends_in_reasoning(previous) and not needs_reasoning(message):
            self._say(index - 1, "reasoning-alone", "a reasoning item stands without its required following item")
        if profile.calls_follow_user and previous.role == "assistant" and message.calls:
            self._say(index, "call-place", "a function call must come right after a user or function response turn")

    def _system(self, index: int, message: Message) -> None:
        previous = self.previous
        if message.role == "system" and (previous is None or not follows_user(previous)):
            self._say(index, "system-place", "a system message must directly follow a user message")
        if previous is not None and previous.role == "system" and message.role not in ("assistant", "system"):
            self._say(index - 1, "system-place", "a system message must precede an assistant message or come last")

    def _results(self, index: int, message: Message) -> None:
        if self.profile.one_answer:
            self._one_answer(index, message)
        waiting, more = self.waiting, False
        for part in message.parts:
            if type(part) is not ToolResult:
                more = True
                continue
            if more and self.profile.merges_roles:
                self._say(index, "results-first", "tool results must come first in their message")
            if waiting.pop(part.call_id, None) is not None:
                self.answered.add(part.call_id)
            elif part.call_id in self.answered:
                self._say(index, "duplicate-result", f"call {part.call_id!r} is answered a second time")
            else:
                self._say(index, "orphan-result", f"a result for {part.call_id!r} follows no such call")
        if waiting and (more or message.role != "tool") and moves_on(message, self.profile):
            self._unanswered()

    def _one_answer(self, index: int, message: Message) -> None:
        if self.previous is not None and self.previous.role == "tool" and self.waiting:
            self._say(index, "split-results", "the results of one turn's calls must stand in one message")
        answers = [result.call_id for result in message.results if result.call_id.startswith(NAMELESS)]
        if self.profile.one_answer and answers != [call_id for call_id in self.waiting if call_id in answers]:
            self._say(index, "results-order", "results without an id must stand in the order of their calls")

    def _same_batch(self, message: Message) -> bool:
        """Does this message still belong to the run of calls that waits?"""
        if message.role != "assistant" or not (self.profile.items or self.profile.merges_roles):
            return False
        return self.previous is not None and self.previous.role == "assistant"

    def _unanswered(self) -> None:
        for call_id, index in self.waiting.items():
            self._say(index, "unanswered-call", f"call {call_id!r} has no result right after it")
        self.waiting.clear()

    def _calls(self, index: int, message: Message) -> None:
        for part in message.parts:
            if type(part) is not ToolCall:
                continue
            if part.id in self.waiting or (self.profile.unique_calls and part.id in self.called):
                self._say(index, "duplicate-call", f"the call id {part.id!r} is used a second time")
            self.waiting[part.id] = index
            self.called.add(part.id)
            self.answered.discard(part.id)

    def finish(self, messages: Sequence[Message], ready: bool) -> list[Problem]:
        if self.previous is not None and self.profile.reasoning_leads and _ends_in_reasoning(self.previous):
            self._say(len(messages) - 1, "reasoning-alone", "a reasoning item stands without its following item")
        if ready:
            self._unanswered()
        if self.profile.user_first and messages and not self.started:
            self._say(0, "first-role", "there is no user message: the first message must be the user's")
        return sorted(self.problems, key=lambda problem: problem.index)


def moves_on(message: Message, profile: Profile) -> bool:
    """Does the user say more here than results? Those that come later would no longer stand first."""
    beside = [part for part in message.parts if type(part) is not ToolResult]
    return message.role != "tool" or any(profile.merges_roles or type(part) is Text for part in beside)


def _ends_in_reasoning(message: Message) -> bool:
    return bool(message.parts) and type(message.parts[-1]) is Reasoning


def _signed_summary(message: Message) -> bool:
    return is_summary(message) and bool(getattr(message.parts[0], "data", {}).get("signature"))
