"""From what an agent tells to what a person sees, without a screen."""

from __future__ import annotations

from drawn import drawn

from holdfast.agent.events import (
    AgentEvent,
    Problem,
    Queued,
    Replied,
    Retrying,
    RunFinished,
    RunStarted,
    Said,
    ToolFinished,
    ToolStarted,
)
from holdfast.hooks.events import (
    CompactionBoundary,
    CompactionCompleted,
    CompactionFailed,
    CompactionProgress,
    CompactionSkipped,
    CompactionStarted,
    Continued,
)
from holdfast.terminal.entries import Earlier, Note, Reply
from holdfast.terminal.hearing import Hearing
from holdfast.terminal.standing import Standing
from holdfast.terminal.transcript import MOST, Transcript

S = "s"
COMPLETED = CompactionCompleted(
    session=S, origin="manual", tokens_before=9_000, tokens_after=3_000, archived=5, kept=2, round=1
)


class Heard:
    def __init__(self, *events: AgentEvent) -> None:
        self.transcript, self.standing = Transcript(), Standing()
        self.hearing = Hearing(self.transcript, self.standing)
        self.hear(*events)

    def hear(self, *events: AgentEvent) -> Heard:
        for event in events:
            self.hearing.hear(event)
        return self

    @property
    def lines(self) -> list[str]:
        return [line for entry in self.transcript for line in drawn(entry, 200).splitlines() if line]


def test_a_run_from_prompt_to_end() -> None:
    heard = Heard(
        RunStarted(S, "When is the tide?"),
        Said(S, "reasoning", "Let me see."),
        Said(S, "text", "I look. "),
        Said(S, "call", "read_file"),
        Replied(S, "e1", "I look.", 1),
        ToolStarted(S, "c1", "read_file", "tides.csv"),
        ToolFinished(S, "c1", "read_file", "six\nnoon"),
        Said(S, "text", "At noon."),
        Replied(S, "e2", "At noon."),
        RunFinished(S, "done"),
    )
    assert heard.lines == [
        "❯ When is the tide?",
        "  ▸ thought Let me see.",
        "  I look.",
        "  ✓ read_file tides.csv · 2 lines",
        "  At noon.",
    ]
    assert not heard.standing.busy and not heard.standing.doing


def test_what_goes_on_is_said_in_the_footer() -> None:
    heard = Heard()
    expected = {
        RunStarted(S, "go"): "thinking",
        Said(S, "text", "I look."): "writing",
        Said(S, "call", "read_file"): "calling read_file",
        ToolStarted(S, "c", "read_file", ""): "read_file",
        ToolFinished(S, "c", "read_file", ""): "thinking",
        CompactionStarted(S, "auto", 9_000): "compacting",
        CompactionSkipped(S, "no_progress"): "thinking",
    }
    assert [heard.hear(event).standing.doing for event in expected] == list(expected.values())


def test_a_reply_that_was_not_streamed_is_shown_too() -> None:
    assert Heard(Replied(S, "e", "All at once.")).lines == ["  All at once."]


def test_a_run_that_was_stopped_leaves_nothing_open() -> None:
    heard = Heard(RunStarted(S, "go"), Said(S, "text", "I beg"), ToolStarted(S, "c", "run_command", "sleep 9"))
    heard.hear(RunFinished(S, "aborted"))
    assert heard.lines[1:] == [
        "  I beg",
        "  (stopped)",
        "  ✗ run_command sleep 9 · stopped",
        "  · Stopped. What was said and done so far is kept.",
    ]


def test_problems_are_told_once() -> None:
    """P9."""
    heard = Heard(
        RunStarted(S, "go"), Problem("The store is closed."), RunFinished(S, "failed", "The store is closed.")
    )
    assert heard.lines[1:] == ["  ✗ The store is closed."]
    assert Heard(RunFinished(S, "max_steps", "500 steps")).lines == ["  ! 500 steps"]
    assert Heard(Retrying(S, "busy", 2.4)).lines == ["  ! No answer (busy): asking again in 2 s."]
    assert Heard(Replied(S, "e", "I was", finish="length")).lines == ["  I was"]


def test_a_compaction_from_start_to_divider() -> None:
    """P11, P15, P22."""
    heard = Heard(CompactionStarted(S, "auto", 9_000), CompactionProgress(S, "writing the summary", 1, 120))
    assert (
        heard.lines[0] == "  ◌ compacting 9k tokens, the window is nearly full" and "120 characters" in heard.lines[1]
    )
    heard.hear(COMPLETED, CompactionBoundary(S, "c", 1, "Mind the accuracy."), Continued(S, "(Go on.)"))
    assert heard.lines[0].startswith("── compacted 9k → 3k tokens · 67 % less · round 1")
    assert heard.lines[1:] == ["  5 messages archived, 2 kept · 0.0 s", "  Mind the accuracy.", "  · (Go on.)"]
    assert (heard.standing.tokens, heard.standing.known) == (3_000, "unknown")


def test_a_compaction_that_came_to_nothing_says_why() -> None:
    started = CompactionStarted(S, "manual", 9_000)
    failed = Heard(started, CompactionFailed(S, "summary_failed", "the model is away"))
    assert failed.lines == ["  ✗ The compaction failed: the model is away. Nothing has changed; /compact tries again."]
    stopped = Heard(started, CompactionFailed(S, "aborted", "it was cancelled"))
    assert stopped.lines == ["  · The compaction was stopped. Nothing has changed."]
    assert Heard(CompactionSkipped(S, "vetoed", "a hook said no")).lines == ["  · Not compacted: a hook said no."]


def test_what_was_said_meanwhile_waits_at_the_end_until_it_is_heard() -> None:
    """P14: queued during a compaction; said to an agent that works; and given back where it was never heard."""
    heard = Heard(RunStarted(S, "go"), CompactionStarted(S, "auto", 9_000), Queued(S, "Mind the pier.", 1), COMPLETED)
    assert heard.lines[-1] == "❯ queued: Mind the pier."
    heard.hearing.unheard(["Mind the pier.", "And the buoy."])
    assert heard.lines[-2:] == ["❯ after this step: Mind the pier.", "❯ after this step: And the buoy."]
    heard.hearing.unheard(["And the buoy."])
    heard.hear(Said(S, "text", "Aye."))
    assert heard.lines[-3:] == ["❯ Mind the pier.", "  Aye.", "❯ after this step: And the buoy."]
    heard.hear(RunFinished(S, "aborted"))
    heard.hearing.unheard([])
    assert heard.transcript.taken_back("And the buoy.") is not None
    assert "buoy" not in "".join(heard.lines)


def test_a_prompt_that_waited_is_shown_once_when_its_turn_comes() -> None:
    heard = Heard(CompactionStarted(S, "manual", 9_000), Queued(S, "later", 1), COMPLETED, RunStarted(S, "later"))
    assert heard.lines[-1] == "❯ later" and not heard.transcript.waiting


def test_a_long_transcript_drops_its_oldest_entries_and_says_so() -> None:
    transcript = Transcript()
    for number in range(MOST + 1):
        transcript.add(Note(str(number)))
    assert len(transcript.entries) <= MOST and "/search" in drawn(transcript.entries[0])
    assert drawn(transcript.entries[-1]).endswith(str(MOST))


def test_what_a_session_showed_before_comes_first_and_nothing_twice() -> None:
    transcript = Transcript()
    transcript.heard("and now?")
    transcript.add(Reply("Now it is noon."))
    transcript.begin_with([Earlier("user", "before"), Earlier("assistant", "Aye."), Earlier("user", "and now?")])
    assert [drawn(entry) for entry in transcript] == ["❯ before", "  Aye.", "❯ and now?", "  Now it is noon."]
