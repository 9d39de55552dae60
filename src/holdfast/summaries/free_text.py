"""Free-text summaries: one prompt, the answer is used as it is, and rolled up if it is too long."""

from __future__ import annotations

import msgspec

from ..models.calls import Failure, ModelCall, Reply, Steps
from .prompts import SYSTEM_PROMPT, SummaryDraft, SummaryInput, delimit, summary_prompt
from .summarizer import answer_text, run_summarizer
from .transcript import Style, SummaryTranscript

RECURSIVE_TASK = (
    "Write a summary of the conversation that replaces it from now on: what it was about, what was found, "
    "decided and done, how the last step ended and what is half done, the one thing that was about to be done next, "
    "what else is open, and every name, number and wish of the person that still matters."
)
"""Task for a summary that replaces the whole conversation."""
FREE_TEXT_TASK = (
    "Write the summary that lets another assistant continue without a break. State: what was asked for; what is being "
    "worked on, and what of it is half done; the last command or edit, and how it ended; the immediate next step: the "
    "one thing the assistant was about to do, with the exact file, command or edit; what else has been done and is to "
    "be done; what the person wants observed; files that were read or changed, by absolute path; decisions and their "
    "reasons; errors that still stand, word for word; whatever else cannot be found out again."
)
_ROLL_UP_PROMPT = (
    "This summary has grown too long for its place. Write it again in at most {tokens:,} tokens: keep every decision, "
    "constraint, open task, path, name and number that still matters, and drop what is over and done with."
)


class FreeText(msgspec.Struct, frozen=True):
    """Summary writer that asks for a text and uses it as it is."""

    task: str = FREE_TEXT_TASK
    system: str = SYSTEM_PROMPT
    target_tokens: int = 4_000
    """Length that the prompt asks for."""
    max_tokens: int | None = 13_107
    """Output limit of the call, reasoning included; None leaves it to the provider."""
    temperature: float | None = None
    style: Style = Style()

    def write(self, source: SummaryInput) -> Steps[SummaryDraft | Failure]:
        tokens = max(1, min(self.target_tokens, int(source.token_budget * 0.8)))

        def build(conversation: SummaryTranscript, notes: str) -> ModelCall:
            prompt = summary_prompt(source, conversation, notes, self.task, tokens)
            return ModelCall(prompt, self.system, self.max_tokens, self.temperature)

        result = yield from run_summarizer(build, source)
        if not isinstance(result.answer, Reply):
            return result.answer
        text = yield from roll_up(answer_text(result.answer), source, source.token_budget, self.max_tokens)
        return text if isinstance(text, Failure) else SummaryDraft(text, remarks=result.remarks)


def roll_up(text: str, source: SummaryInput, limit: int, max_tokens: int | None) -> Steps[str | Failure]:
    """Returns a summary of at most `limit` tokens; asks once for a shorter one if needed."""
    if source.count_tokens(text) <= limit:
        return text
    prompt = f"{delimit('summary', text)}\n\n{_ROLL_UP_PROMPT.format(tokens=limit)}"
    again = msgspec.structs.replace(source, token_budget=limit, conversation=SummaryTranscript())
    result = yield from run_summarizer(lambda *_: ModelCall(prompt, SYSTEM_PROMPT, max_tokens, purpose="rollup"), again)
    if not isinstance(result.answer, Reply):
        return result.answer
    shorter = answer_text(result.answer)
    if source.count_tokens(shorter) > limit:
        return Failure("answer", f"the summary is longer than the {limit:,} tokens there are for it")
    return shorter
