"""Asks a model for a summary, validates the answer, and retries with less input or a plainer prompt."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile

import msgspec

from ..io.text import replace_surrogates
from ..models.calls import Answer, Failure, ModelCall, Reply, Steps
from .prompts import RejectedSummary, SummaryInput
from .transcript import SummaryTranscript

_TAG = r"<(think|thinking|analysis|reasoning|scratchpad)>"
REASONING_TAG = re.compile(rf"(?im)^[ \t]*{_TAG}")
ANY_REASONING_TAG = re.compile(rf"(?i)[ \t]*{_TAG.replace('<', '</?', 1)}")
"""A line that begins with an opening or closing reasoning tag."""
_LEADING_BLOCK = re.compile(rf"(?is)\A\s*{_TAG}.*?(?:</\1>|\Z)")
_OWN_LINE_BLOCK = re.compile(rf"{REASONING_TAG.pattern}(?s:.*?)</\1>[ \t]*$")
_UNTAGGED_BLOCK = re.compile(r"(?im)\A((?:.*\n){0,4}?)(?:analysis|reasoning):[ \t]*\n(?s:.*?)(?=^summary:[ \t]*$)")
"""Reasoning without tags, between a first line that names it and one that names the summary."""
_CLOSING_TAG = re.compile(r"(?im)^[ \t]*</think(?:ing)?>[ \t]*$")
FENCE = re.compile(r"(?m)^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*$")
"""A line that opens or closes a code block."""


def strip_reasoning(text: str) -> str:
    """Removes reasoning blocks before and between the answer; a tag inside a line or a fence is quoted text."""
    while found := _LEADING_BLOCK.match(text):
        text = text[found.end() :]
    start = 0
    while found := _OWN_LINE_BLOCK.search(text, start):
        if _in_fence(text[: found.start()]):
            start = found.end(1)
        else:
            text, start = text[: found.start()] + text[found.end() :], found.start()
    if (found := _UNTAGGED_BLOCK.match(text)) and not _in_fence(found[1]):
        text = found[1] + text[found.end() :]
    ended = _CLOSING_TAG.search(text)
    if not ended or "<think" in text[: ended.start()].casefold() or _in_fence(text[: ended.start()]):
        return text
    return text[ended.end() :]


def _in_fence(text: str) -> bool:
    """Returns whether the end of this text is inside a code fence."""
    opened = ""
    for mark, info in FENCE.findall(text):
        if not opened:
            opened = mark
        elif mark.startswith(opened) and not info:
            opened = ""
    return bool(opened)


_WRAPPING_TAG = re.compile(r"\A\s*<(summary|state_snapshot)>\s*(.*?)\s*</\1>\s*\Z", re.DOTALL | re.IGNORECASE)
_CODE_FENCE = re.compile(r"\A```[\w-]*\n(.*)\n```\s*\Z", re.DOTALL)
_CALL = re.compile(r"\A\s*(?:<tool_call>|<function_calls?>|<invoke\b|\{\s*\"(?:name|tool|function)\"\s*:)")
_REFUSAL = re.compile(
    r"(?i)\A\W*(?:i['’]?m sorry|sorry|i am sorry|unfortunately|i can(?:['’]|no)t|i am unable|i['’]?m unable|as an ai)\b"
)
_MAX_REFUSAL = 400


def answer_text(reply: Reply) -> str:
    """Returns the reply's text without reasoning, code fence and summary tags."""
    text = strip_reasoning(replace_surrogates(reply.text)).strip()
    inner = fence[1] if (fence := _CODE_FENCE.match(text)) else ""
    marks = [line.strip() for line in inner.splitlines() if line.startswith("```")]
    if fence and marks[:1] != ["```"]:  # else it closes before the end, and does not wrap the whole text
        text = inner.strip()
    if wrapped := _WRAPPING_TAG.match(text):
        text = wrapped[2].strip()
    return text


def rejection_reason(reply: Reply, max_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """Returns why an answer is rejected; empty if it is valid."""
    if reply.finish == "length":
        return "the answer was cut off at its limit"
    if reply.finish == "tool_call":
        return "it called a tool instead of answering"
    if reply.finish == "refused":
        return "the provider withheld the answer"
    text = answer_text(reply)
    if not text:
        return "the answer is blank"
    if _CALL.match(text):
        return "it wrote a tool call instead of an answer"
    if len(text) <= _MAX_REFUSAL and _REFUSAL.match(text):
        return "it refused"
    if count_tokens(text) > max_tokens:
        return "the answer is longer than what it is about"
    return ""


_SAFETY_MARGIN = 0.85
"""Share of the window that may be filled by estimate, since the model may use another tokenizer."""
_NOTES_CHARACTERS, _NOTES_SHARE = 6_000, 0.15
"""Limit for notes that replace omitted messages: in characters, and as a share of the transcript."""
_RETRY_PROMPT = (
    "\n\nYour last answer could not be used: {why}. Answer again, with what was asked for and nothing else"
    ", in at most {tokens:,} tokens."
)
_PROMPT_SHARE = 0.5
"""Share of a small window that is reserved for the prompt; the rest is for the answer."""
CallBuilder = Callable[[SummaryTranscript, str], ModelCall]
"""Builds a call from a transcript and from notes on the messages that the transcript omits."""


class SummarizerResult(msgspec.Struct, frozen=True):
    """The summarizer's answer or failure, and how many messages did not fit into its input."""

    answer: Answer
    left_out: int = 0
    """Oldest messages that the model saw only as notes."""
    rejected: str = ""
    """Text of the last answer that `validate` rejected, if no valid one followed: a writer may read it all the same."""

    @property
    def failure(self) -> Failure:
        """The failure, if there is no answer."""
        return self.answer if isinstance(self.answer, Failure) else Failure("answer")

    def report_rejected(self, failure: Failure) -> Failure:
        """Returns the failure, with a remark that quotes a rejected answer."""
        if not self.rejected:
            return failure
        quoted = " ".join(self.rejected.split())
        return RejectedSummary(failure.kind, failure.why, remarks=(f"the answer was rejected: {quoted}",))

    @property
    def remarks(self) -> tuple[str, ...]:
        if not self.left_out:
            return ()
        return (
            f"{self.left_out:,} of the oldest messages did not fit into the summarizer's input: notes replaced them",
        )


def run_summarizer(
    build: CallBuilder, source: SummaryInput, validate: Callable[[str], str] = lambda text: ""
) -> Steps[SummarizerResult]:
    """Yields calls until an answer is valid, and returns it, or the failure that no reduction can avoid.

    `validate` returns why an answer's text is rejected, or an empty string; it runs after the general checks.
    """
    window, retry_prompt, rejected = source.summarizer_window, "", ""
    transcript, call = _fit_to_window(build, source.conversation, source, window)
    ladder = transcript.reductions()
    while True:
        (answer,) = yield (msgspec.structs.replace(call, prompt=call.prompt + retry_prompt),)
        if isinstance(answer, Reply):
            prompt_tokens, text = max(source.count_tokens(call.prompt), 1), answer_text(answer)
            flaw = rejection_reason(answer, prompt_tokens, source.count_tokens)
            if not (why := flaw or validate(text)):
                return SummarizerResult(answer, transcript.left_out)
            rejected = rejected if flaw else text
            if retry_prompt:
                return SummarizerResult(Failure("answer", why), transcript.left_out, rejected)
            retry_prompt = _RETRY_PROMPT.format(why=why, tokens=source.token_budget)
        elif answer.kind in ("overflow", "media"):
            reduced = next(ladder, None)
            if reduced is None:
                return SummarizerResult(answer, transcript.left_out, rejected)
            window = answer.window or window
            transcript, call = _fit_to_window(build, reduced, source, window)
            if transcript is not reduced:
                ladder = transcript.reductions()
        else:
            return SummarizerResult(answer, transcript.left_out, rejected)


def _build_call(
    build: CallBuilder, transcript: SummaryTranscript, source: SummaryInput, window: int | None
) -> ModelCall:
    notes = ""
    if transcript.left_out:
        notes = source.make_notes(min(_NOTES_CHARACTERS, int(len(transcript.text) * _NOTES_SHARE)))
    call = msgspec.structs.replace(build(transcript, notes), media=transcript.media)
    if not window or call.max_tokens is None:
        return call
    most = max(1, int(window * _SAFETY_MARGIN * (1 - _PROMPT_SHARE)))  # what the window holds next to the prompt
    return msgspec.structs.replace(call, max_tokens=min(call.max_tokens, most))


def _fit_to_window(
    build: CallBuilder, transcript: SummaryTranscript, source: SummaryInput, window: int | None
) -> tuple[SummaryTranscript, ModelCall]:
    """Reduces the transcript until the call fits the window by estimate, so that no call is sent only to overflow."""
    call = _build_call(build, transcript, source, window)
    if not window:
        return transcript, call
    available = int(window * _SAFETY_MARGIN) - (call.max_tokens or 0)
    left_out = transcript.left_out
    reductions = takewhile(lambda reduced: reduced.left_out == left_out, transcript.reductions())
    while (size := source.count_tokens(call.system) + source.count_tokens(call.prompt)) > available:
        reduced = next(reductions, None) or transcript.newest(
            int(len(transcript.text) * available / size * _SAFETY_MARGIN)
        )
        if reduced == transcript:
            break
        transcript, call = reduced, _build_call(build, reduced, source, window)
    return transcript, call


_MAX_TRIES = 8
_SHRINK_MARGIN = 0.9


def write_to_fit(write: Callable[[int], str], characters: int, room: int, tokens: Callable[[str], int]) -> str:
    """Calls `write` with fewer and fewer characters until the text fits `room` tokens; empty if it never does."""
    for _ in range(_MAX_TRIES):
        text = write(characters)
        size = tokens(text)
        if size <= room:
            return text
        characters = int(characters * _SHRINK_MARGIN * room / size) if room > 0 else 0
    return ""
