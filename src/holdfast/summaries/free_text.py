"""Free-text summaries: one prompt, the answer is used as it is, and rolled up if it is too long."""

from __future__ import annotations

import msgspec

from ..models.calls import Failure, ModelCall, Reply, Steps
from .prompts import SYSTEM_PROMPT, SummaryDraft, SummaryInput, delimit, summary_prompt
from .summarizer import answer_text, run_summarizer
from .transcript import Style, SummaryTranscript
from .verify import drop_empty_headings

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
_IN_SECTIONS = "Write one section under each of these headings, and leave out a heading with nothing to put under it:"
CLAUDE_CODE_TASK = f"""\
Write the context from which this conversation starts anew. Be detailed; follow closely what the person asked for in \
so many words, and what the assistant did about it. {_IN_SECTIONS}

## Done
What was accomplished, request by request, and how the last command or edit ended.

## In Progress
What is being worked on, and what of it is half done.

## Files
Every file that was read, changed or created, by exact path, and what matters about it.

## Next Steps
What comes next, first the one thing that the assistant was about to do, with the exact file, command or edit.

## Requests and Constraints
What the person asked for and wants observed, in their own words; errors that still stand, word for word."""
"""Claude Code's emphasis: the person's explicit requests and the assistant's actions."""
CODEX_TASK = f"""\
Write a checkpoint with which another model takes this task over: it has not seen the conversation, and the tools are \
in the state in which you leave them. Be brief and well ordered. {_IN_SECTIONS}

## Progress and Decisions
How far the task is, what is half done, how the last step ended, and which decisions were made for which reasons.

## Context and Constraints
What the person prefers and wants observed, and the facts that restrict the work.

## Remaining Work
Clear next steps in their order, the first one with the exact file, command or edit.

## References
Data, examples, paths, commands and error texts that the other model cannot do without."""
"""Codex CLI's emphasis: a handoff to another model that avoids duplicate work."""
OPENCODE_TASK = f"""\
Write the summary that will be all there is of this conversation when it continues: complete enough to continue \
without a break, short enough to be read at a glance. {_IN_SECTIONS}

## Done
What was done, and how the last step ended.

## Current Work
What is being worked on right now, and what of it is half done.

## Files Being Modified
The files that are being changed, by path, and their state.

## Next
What has to be done next, first the one thing that the assistant was about to do.

## Lasting Requests
Requests, constraints and preferences of the person that should outlast this conversation.

## Technical Decisions
Important decisions, each with its reason."""
"""OpenCode's emphasis: lasting preferences, and the reasons of technical decisions."""
PI_TASK = f"""\
Write a checkpoint of this session with which another model resumes the task. Be brief and well ordered. {_IN_SECTIONS}

## Goal
What the person wants, with their constraints and preferences.

## Progress
What is done, what is half done, how the last step ended, and the key decisions.

## Files
The absolute path of every relevant file that was read or modified; for an image, its path and what it showed.

## Next Steps
What remains, in order, the first step with the exact file, command or edit.

## Critical Data
Data, examples, references and error texts that are needed to continue."""
"""pi's emphasis: a handoff like Codex's, with the absolute paths of all relevant files."""
GOAT_TASK = f"""\
Write a summary of the older part of this conversation; the newer part stays visible after it. {_IN_SECTIONS}

## Earlier Work
What was asked for and what was done about it, in the order in which it happened, and what was still open.

## Key Decisions
What was decided, and why.

## Key Facts
Paths, names, numbers, commands, error texts and wishes of the person that later work may need."""
"""Goat's emphasis: key decisions and facts of the older messages."""
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
        answer = drop_empty_headings(answer_text(result.answer)) or answer_text(result.answer)
        text = yield from roll_up(answer, source, source.token_budget, self.max_tokens)
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
