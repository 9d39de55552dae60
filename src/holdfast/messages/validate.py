"""What each wire format requires, and whether messages meet it: `check` and `find_problems`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ..errors import InvalidInput
from .codec import COMMON, decode_all, format_name
from .edit import drop_parts, fold_edits
from .frame import ACKNOWLEDGED, CONTINUE, is_framed, is_from_user
from .frameworks import CONVERSE, FRAMEWORKS
from .links import Edges, can_precede_system, ends_of, unanswered_reference
from .parts import End, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from .tool_calls import GENERATED_ID_PREFIX, item_id

if TYPE_CHECKING:
    from ..types import MessageLike


class FormatRules(msgspec.Struct, frozen=True):
    """Rules of one wire format, as flags."""

    name: str
    user_first: bool = False
    """The first message must be the user's."""
    rejects_blank: bool = False
    """Blank text is rejected."""
    merges_roles: bool = False
    """Adjacent messages of one role count as one message."""
    items: bool = False
    """Each message is one item: a batch of calls is a run of assistant items."""
    unique_call_ids: bool = False
    """A call id must be unique in the whole conversation."""
    reasoning_must_lead: bool = False
    """Reasoning must be followed by assistant text or a call, never come last."""
    signed_reasoning: bool = False
    """Reasoning needs a signature, which covers everything before it."""
    restricts_system: bool = False
    """A system message in the list must directly follow a user message, and precede a reply or come last."""
    single_result_message: bool = False
    """The results of one batch of calls must be in one message."""
    binds_signed_reasoning: bool = False
    """Signed reasoning is valid only after the messages it was made for; reasoning without a signature always."""
    calls_follow_user: bool = False
    """A function call must follow a user message or a function response, never a model message."""
    alternates: bool = False
    """After at most one system message, user and assistant take turns; results stand between two assistant messages."""
    keeps_notes_apart: bool = False
    """While a list is worked on, a note may precede the user's words; where roles alternate, they are sent as one."""

    @property
    def binds_reasoning(self) -> bool:
        """Whether some reasoning no longer verifies once the messages before it change."""
        return self.signed_reasoning or self.binds_signed_reasoning


FORMAT_RULES = {
    rules.name: rules
    for rules in (
        FormatRules("openai-chat"),
        FormatRules("openai-responses", items=True, reasoning_must_lead=True, unique_call_ids=True),
        FormatRules(
            "anthropic",
            user_first=True,
            rejects_blank=True,
            merges_roles=True,
            unique_call_ids=True,
            reasoning_must_lead=True,
            signed_reasoning=True,
            restricts_system=True,
        ),
        FormatRules("gemini", user_first=True, single_result_message=True, calls_follow_user=True),
        FormatRules("ai-sdk", binds_signed_reasoning=True),
        *(FormatRules(name, binds_signed_reasoning=True) for name in FRAMEWORKS),
        FormatRules(CONVERSE, user_first=True, rejects_blank=True, merges_roles=True, binds_signed_reasoning=True),
    )
}
"""The rules of each wire format, by name."""
_ALTERNATING = {
    name: msgspec.structs.replace(rules, alternates=True, user_first=True)
    for name, rules in FORMAT_RULES.items()
    if not rules.items
}


def rules_for(format: str, *, alternating: bool = False) -> FormatRules:
    """Returns the rules of a format; the common format uses those of OpenAI Chat.

    `alternating` adds the rule of chat templates that refuse two messages of one role in a row, as those of Mistral and
    Gemma do.
    """
    name = "openai-chat" if format == COMMON else format_name(format)
    if not alternating:
        return FORMAT_RULES[name]
    if name not in _ALTERNATING:
        raise InvalidInput(f"The items of {name} have no roles that could alternate: leave alternating out.")
    return _ALTERNATING[name]


def filler_between(previous: Message, message: Message, rules: FormatRules) -> Message | None:
    """Returns the message that this format requires between these two. A note is joined with the user's words."""
    if previous.role == message.role == "assistant":
        return CONTINUE if rules.alternates or (rules.calls_follow_user and message.calls) else None
    if not rules.alternates or message.role != "user" or previous.role not in ("user", "tool"):
        return None
    return None if is_framed(previous) else ACKNOWLEDGED


def drop_rejected_parts(message: Message, rules: FormatRules) -> Message | None:
    """Returns the message without the parts that this format rejects; None if nothing is left."""
    rejected = [index for index, part in enumerate(message.parts) if _is_rejected(part, rules)]
    if len(rejected) == len(message.parts) and (rejected or has_no_content(message, rules)):
        return None
    return fold_edits(drop_parts(message, rejected)) if rejected else message


def has_no_content(message: Message, rules: FormatRules) -> bool:
    """Whether a message without parts is rejected: some formats accept an empty string, none an empty list."""
    raw = message.raw or {}
    if raw.get("output_config"):  # Anthropic: a system message may hold settings alone
        return False
    return rules.rejects_blank or message.role == "tool" or not isinstance(raw.get("content"), str)


def _is_rejected(part: Part, rules: FormatRules) -> bool:
    if type(part) is Text:
        return rules.rejects_blank and not part.text.strip()
    if type(part) is Reasoning:
        return rules.signed_reasoning and not (part.signature or part.encrypted)
    return False


def bound_parts(message: Message, rules: FormatRules) -> list[int]:
    """Returns where reasoning is that no longer verifies once the messages before it change."""
    if not rules.binds_reasoning:
        return []
    return [index for index, part in enumerate(message.parts) if type(part) is Reasoning and _is_bound(part, rules)]


def _is_bound(part: Reasoning, rules: FormatRules) -> bool:
    signed = part.signature is not None or (part.encrypted is not None and part.id is None)
    return rules.signed_reasoning or signed


def can_be_first(message: Message) -> bool:
    """Whether this message may come first where a format requires a user message."""
    return message.role == "user" or (message.role == "assistant" and is_vendor_summary(message))


def can_follow_reasoning(message: Message) -> bool:
    """Whether this message may directly follow reasoning."""
    return message.role == "assistant" and not is_vendor_summary(message)


def is_vendor_summary(message: Message) -> bool:
    """Whether this is a provider's own summary block (server-side compaction)."""
    return bool(message.parts) and isinstance(first := message.parts[0], Opaque) and first.kind in _SUMMARY_KINDS


_SUMMARY_KINDS = frozenset(("compaction", "compaction_summary", "context_compaction"))


def is_trivially_valid(messages: Sequence[Message], rules: FormatRules, ready: bool) -> bool:
    """Fast path: whether every call is answered at once, one result per message.

    Formats without further rules require no more.
    """
    pending: set[str] = set()
    for message in messages:
        parts = message.parts
        if message.role == "tool":
            if len(parts) != 1 or type(only := parts[0]) is not ToolResult or only.call_id not in pending:
                return False
            pending.remove(only.call_id)
            continue
        if pending or (not parts and has_no_content(message, rules)):
            return False
        if len(parts) == 1 and type(parts[0]) is Text:
            continue
        for part in parts:
            if type(part) is ToolCall and part.id not in pending:
                pending.add(part.id)
            elif type(part) is ToolCall or type(part) is ToolResult:
                return False
    return not (ready and pending)


class Problem(msgspec.Struct, frozen=True):
    """One reason for which a provider would reject the messages."""

    index: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"message {self.index}: {self.text}"


def check(
    messages: Iterable[MessageLike], profile: str | None = None, *, ready: bool = False, alternating: bool = False
) -> list[Problem]:
    """Returns what this wire format would reject; empty if the messages are valid.

    Args:
        messages: The conversation, in any format that `compact` takes.
        profile: The wire format to check for; None detects it.
        ready: Calls at the very end without results are a problem, as in a request; otherwise they are a
            conversation in progress.
        alternating: Two messages of one role in a row are a problem, too.
    """
    rules = None if profile is None else rules_for(format_name(profile), alternating=alternating)
    try:
        decoded, name = decode_all(messages, None if rules is None else rules.name)
    except InvalidInput as problem:
        return [Problem(0, "malformed", str(problem))]
    return find_problems(decoded, rules or rules_for(name, alternating=alternating), ready=ready)


def find_problems(messages: Sequence[Message], rules: FormatRules, *, ready: bool = False) -> list[Problem]:
    """Validates neutral messages; returns the problems in message order."""
    validator = _Validator(rules, messages)
    if not validator.has_rules and is_trivially_valid(messages, rules, ready):
        return []
    has_plain_text = not (rules.alternates or rules.items)
    after_plain_text = has_plain_text and not rules.user_first
    for index, message in enumerate(messages):
        if after_plain_text and _is_plain_text(message, rules):
            validator.previous = message
            continue
        validator.step(index, message)
        is_open = validator.pending or validator.edges.open
        after_plain_text = has_plain_text and validator.started and not is_open and _is_plain_text(message, rules)
    return validator.finish(ready)


def _is_plain_text(message: Message, rules: FormatRules) -> bool:
    """Whether the message is plain text, which is valid after more of it, unless roles alternate or items have ids."""
    parts = message.parts
    if len(parts) != 1 or type(only := parts[0]) is not Text:
        return False
    return message.role in _TEXT_ROLES and (not rules.rejects_blank or bool(only.text.strip()))


_TEXT_ROLES = ("user", "assistant")


class _Validator:
    """One pass over the messages that tracks pending calls, and other edges that are open."""

    def __init__(self, rules: FormatRules, messages: Sequence[Message]) -> None:
        self.rules = rules
        self.messages = messages
        self.has_rules = rules != FormatRules(rules.name)
        """False for a format that has only the rules common to all."""
        self.problems: list[Problem] = []
        self.pending: dict[str, int] = {}
        self.answered: set[str] = set()
        self.called: set[str] = set()
        self.edges = Edges()  # a cached property would slow down every attribute in Python 3.11
        self.previous: Message | None = None
        self.reasoned = False
        """Whether the previous message ends in reasoning."""
        self.items: set[str] = set()
        self.started = False

    def step(self, index: int, message: Message) -> None:
        kinds: set[type] = {*map(type, message.parts)}
        if not kinds:
            self._check_empty(index, message)
        if self.has_rules:
            self._check_format_rules(index, message, kinds)
        if message.role == "user" and (self.edges.open or self.rules.items):
            self._check_left(index, message)
        if (ToolCall in kinds or Opaque in kinds) and (ends := ends_of(message)):
            self._check_ends(index, message, ends)
        if ToolResult in kinds:
            self._check_results(index, message)
        elif message.role == "tool":
            if Opaque not in kinds:  # an approval may come before its result
                self._report(index, "orphan-result", "a tool message holds no result")
        elif self.pending and not self._same_batch(message):
            self._report_unanswered()
        if ToolCall in kinds:
            self._check_calls(index, message)
        self.previous = message
        self.reasoned = Reasoning in kinds and type(message.parts[-1]) is Reasoning
        self.started = self.started or message.role != "system"

    def _check_format_rules(self, index: int, message: Message, kinds: set[type]) -> None:
        """Checks rules that only some formats have."""
        rules = self.rules
        if (rules.rejects_blank and Text in kinds) or (rules.signed_reasoning and Reasoning in kinds):
            self._check_content(index, message)
        if rules.items and (item := item_id(message)):
            if item in self.items:
                self._report(index, "duplicate-item", f"the item id {item!r} is used a second time")
            self.items.add(item)
        if not self.started:
            self._check_first(index, message)
        self._check_order(index, message)
        if rules.signed_reasoning and Opaque in kinds and self.previous is not None and _signed_summary(message):
            self._report(index, "summary-place", "a compaction block must come first")

    def _report(self, index: int, rule: str, text: str) -> None:
        self.problems.append(Problem(index, rule, text))

    def _check_empty(self, index: int, message: Message) -> None:
        if message.role != "tool" and has_no_content(message, self.rules):
            self._report(index, "empty", f"the {message.role} message has no content")

    def _check_content(self, index: int, message: Message) -> None:
        rules = self.rules
        for part in message.parts:
            if type(part) is Text and rules.rejects_blank and not part.text.strip():
                self._report(index, "empty", "a text is blank: text content must not be empty")
            elif rules.signed_reasoning and type(part) is Reasoning and not (part.signature or part.encrypted):
                self._report(index, "unsigned-reasoning", "a thinking block has no signature")

    def _check_first(self, index: int, message: Message) -> None:
        if not self.rules.user_first or message.role == "system" or can_be_first(message):
            return
        self._report(index, "first-role", f"the first message is the {message.role}'s: it must be the user's")

    def _check_order(self, index: int, message: Message) -> None:
        previous, rules = self.previous, self.rules
        if rules.restricts_system and (message.role == "system" or (previous and previous.role == "system")):
            self._check_system(index, message)
        if previous is None:
            return
        if rules.reasoning_must_lead and self.reasoned and not can_follow_reasoning(message):
            self._report(index - 1, "reasoning-alone", "a reasoning item comes without its required following item")
        if rules.calls_follow_user and previous.role == "assistant" and message.calls:
            self._report(index, "call-place", "a function call must come right after a user or function response turn")
        elif rules.alternates:
            self._check_turns(index, message, previous)

    def _check_turns(self, index: int, message: Message, previous: Message) -> None:
        """Checks that roles alternate after one system message."""
        if message.role == "system":
            self._report(index, "system-place", "there may be one system message, the first of all")
        elif filler_between(previous, message, self.rules) is not None or self._is_loose_note(previous, message):
            text = f"the {message.role} message follows the {previous.role}'s: user and assistant must alternate"
            self._report(index, "alternation", text)

    def _is_loose_note(self, previous: Message, message: Message) -> bool:
        return previous.role == message.role == "user" and not self.rules.keeps_notes_apart

    def _check_system(self, index: int, message: Message) -> None:
        previous = self.previous
        if message.role == "system" and (previous is None or not can_precede_system(previous)):
            self._report(index, "system-place", "a system message must directly follow a user message")
        if previous is not None and previous.role == "system" and message.role not in ("assistant", "system"):
            self._report(index - 1, "system-place", "a system message must precede an assistant message or come last")

    def _check_ends(self, index: int, message: Message, ends: Sequence[End]) -> None:
        """Checks that what this message refers to comes before it."""
        for end in self.edges.read(ends, message, index):
            verb = "answers" if end.role == "closes" else "belongs to"
            rule = "orphan-result" if end.role == "closes" else "orphan-caller"
            self._report(index, rule, f"{end.name} {verb} the {end.target}, which does not come before it")

    def _check_left(self, index: int, message: Message) -> None:
        """Checks what the user's words leave behind."""
        if is_from_user(message):
            self.edges.leave(index)
            self._check_reference(index)

    def _check_reference(self, index: int) -> None:
        if self.rules.items and (end := unanswered_reference(self.messages, index)) is not None:
            self._report(index - 1, "unanswered-reference", f"{end.name} stands for a call, whose output is missing")

    def _check_results(self, index: int, message: Message) -> None:
        if self.rules.single_result_message:
            self._check_single_result_message(index, message)
        pending, more = self.pending, False
        for part in message.parts:
            if type(part) is not ToolResult:
                more = True
                continue
            if more and self.rules.merges_roles:
                self._report(index, "results-first", "tool results must come first in their message")
            if pending.pop(part.call_id, None) is not None:
                self.answered.add(part.call_id)
            elif part.call_id in self.answered:
                self._report(index, "duplicate-result", f"call {part.call_id!r} is answered a second time")
            elif self.edges.claim_reference() is not None:
                self.answered.add(part.call_id)
            else:
                self._report(index, "orphan-result", f"a result for {part.call_id!r} follows no such call")
        if pending and (more or message.role != "tool") and adds_user_content(message, self.rules):
            self._report_unanswered()

    def _check_single_result_message(self, index: int, message: Message) -> None:
        if self.previous is not None and self.previous.role == "tool" and self.pending:
            self._report(index, "split-results", "the results of one turn's calls must be in one message")
        answers = [result.call_id for result in message.results if result.call_id.startswith(GENERATED_ID_PREFIX)]
        if self.rules.single_result_message and answers != [call_id for call_id in self.pending if call_id in answers]:
            self._report(index, "results-order", "results without an id must be in the order of their calls")

    def _same_batch(self, message: Message) -> bool:
        """Whether this message belongs to the same batch of calls as the pending ones."""
        if not (self.rules.items or self.rules.merges_roles):
            return False
        if message.role != "assistant":
            return message.role == "user" and not is_from_user(message)
        return self.previous is not None and self.previous.role == "assistant"

    def _report_unanswered(self) -> None:
        for call_id, index in self.pending.items():
            self._report(index, "unanswered-call", f"call {call_id!r} has no result right after it")
        self.pending.clear()

    def _check_calls(self, index: int, message: Message) -> None:
        for part in message.parts:
            if type(part) is not ToolCall:
                continue
            if part.id in self.pending or (self.rules.unique_call_ids and part.id in self.called):
                self._report(index, "duplicate-call", f"the call id {part.id!r} is used a second time")
            self.pending[part.id] = index
            self.called.add(part.id)
            self.answered.discard(part.id)

    def finish(self, ready: bool) -> list[Problem]:
        messages = self.messages
        for opened, _ in self.edges.unfinished:
            text = f"{opened.end.name} has no result before the user's words in message {opened.left_at}"
            self._report(opened.start, "unfinished", text)
        if self.rules.reasoning_must_lead and self.reasoned:
            self._report(
                len(messages) - 1, "reasoning-alone", "a reasoning item comes without its required following item"
            )
        if ready:
            self._report_unanswered()
            self._check_reference(len(messages))
        if self.rules.user_first and messages and not self.started:
            self._report(0, "first-role", "there is no user message: the first message must be the user's")
        return sorted(self.problems, key=lambda problem: problem.index)


def adds_user_content(message: Message, rules: FormatRules) -> bool:
    """Whether the message has user content next to results: later results would then no longer come first."""
    others = [part for part in message.parts if type(part) is not ToolResult]
    return message.role != "tool" or any(rules.merges_roles or type(part) is Text for part in others)


def _signed_summary(message: Message) -> bool:
    return is_vendor_summary(message) and bool(getattr(message.parts[0], "data", {}).get("signature"))
