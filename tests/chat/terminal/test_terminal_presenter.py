"""EventPresenter: from agent events to transcript and footer, without a screen."""

from __future__ import annotations

from entry_rendering import render

from holdfast.agent.events import (
    AgentEvent,
    ErrorEvent,
    Queued,
    ReplyStored,
    Retrying,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from holdfast.chat.terminal.entries import NoteEntry, SessionHeaderEntry
from holdfast.chat.terminal.footer import FooterState
from holdfast.chat.terminal.history import EarlierEntry, HistoryEntry
from holdfast.chat.terminal.presenter import EventPresenter
from holdfast.chat.terminal.reply_entries import ReplyEntry
from holdfast.chat.terminal.transcript import MAX_ENTRIES, TerminalTranscript
from holdfast.hooks.events import (
    CompactionBoundary,
    CompactionCompleted,
    CompactionFailed,
    CompactionProgress,
    CompactionSkipped,
    CompactionStarted,
    Continued,
)

S = "s"
COMPLETED = CompactionCompleted(
    session=S, origin="manual", tokens_before=9_000, tokens_after=3_000, archived=5, kept=2, round=1
)


class Presented:
    """A presenter with its transcript and footer state."""

    def __init__(self, *events: AgentEvent) -> None:
        self.transcript, self.footer_state = TerminalTranscript(), FooterState()
        self.presenter = EventPresenter(self.transcript, self.footer_state)
        self.handle(*events)

    def handle(self, *events: AgentEvent) -> Presented:
        for event in events:
            self.presenter.handle_event(event)
        return self

    @property
    def lines(self) -> list[str]:
        return [line for entry in self.transcript for line in render(entry, 200).splitlines() if line]


def test_run_from_prompt_to_end_is_shown() -> None:
    presented = Presented(
        RunStarted(S, "When is the tide?"),
        TextDelta(S, "reasoning", "Let me see."),
        TextDelta(S, "text", "I look. "),
        TextDelta(S, "call", "read_file"),
        ReplyStored(S, "e1", "I look.", 1),
        ToolStarted(S, "c1", "read_file", "tides.csv"),
        ToolFinished(S, "c1", "read_file", "six\nnoon"),
        TextDelta(S, "text", "At noon."),
        ReplyStored(S, "e2", "At noon."),
        RunFinished(S, "done"),
    )
    assert presented.lines == [
        "❯ When is the tide?",
        "  ▸ thought Let me see.",
        "  I look.",
        "  ✓ read_file tides.csv · 2 lines",
        "  At noon.",
    ]
    assert not presented.footer_state.busy and not presented.footer_state.activity


def test_footer_activity_follows_events() -> None:
    presented = Presented()
    expected = {
        RunStarted(S, "go"): "thinking",
        TextDelta(S, "text", "I look."): "writing",
        TextDelta(S, "call", "read_file"): "calling read_file",
        ToolStarted(S, "c", "read_file", ""): "read_file",
        ToolFinished(S, "c", "read_file", ""): "thinking",
        CompactionStarted(S, "auto", 9_000): "compacting",
        CompactionSkipped(S, "no_progress"): "thinking",
    }
    assert [presented.handle(event).footer_state.activity for event in expected] == list(expected.values())


def test_reply_without_streaming_is_shown() -> None:
    assert Presented(ReplyStored(S, "e", "All at once.")).lines == ["  All at once."]


def test_aborted_run_closes_all_entries() -> None:
    presented = Presented(
        RunStarted(S, "go"), TextDelta(S, "text", "I beg"), ToolStarted(S, "c", "run_command", "sleep 9")
    )
    presented.handle(RunFinished(S, "aborted"))
    assert presented.lines[1:] == [
        "  I beg",
        "  (stopped)",
        "  ✗ run_command sleep 9 · stopped",
        "  · Stopped. Everything so far is kept. Enter continues.",
    ]


def test_errors_are_shown_once() -> None:
    """P9."""
    presented = Presented(
        RunStarted(S, "go"), ErrorEvent("The store is closed."), RunFinished(S, "failed", "The store is closed.")
    )
    assert presented.lines[1:] == ["  ✗ The store is closed."]
    assert Presented(RunFinished(S, "max_steps", "500 steps")).lines == ["  ! 500 steps. Enter continues."]
    assert Presented(Retrying(S, "busy", 2.4)).lines == ["  ! No answer (busy): retrying in 2 s."]
    assert Presented(ReplyStored(S, "e", "I was", finish="length")).lines == ["  I was"]


def test_retry_counts_down_in_the_footer() -> None:
    now = [100.0]
    state = FooterState(lambda: now[0])
    EventPresenter(TerminalTranscript(lambda: None), state).handle_event(Retrying(S, "busy", 12.4))
    assert (state.activity, state.elapsed) == ("retrying", "in 13 s")
    now[0] += 10
    assert state.elapsed == "in 3 s"
    state.set_activity("writing")
    now[0] += 2
    assert state.elapsed == "2 s"


def test_compaction_progress_becomes_compaction_entry() -> None:
    """P11, P15, P22."""
    presented = Presented(CompactionStarted(S, "auto", 9_000), CompactionProgress(S, "writing the summary", 1, 120))
    assert (
        presented.lines[0] == "  ◌ compacting 9k tokens, the window is nearly full"
        and "120 characters" in presented.lines[1]
    )
    presented.handle(COMPLETED, CompactionBoundary(S, "c", 1, "Mind the accuracy."), Continued(S, "(Go on.)"))
    assert presented.lines[0].startswith("── compacted 9k → 3k tokens · 67 % less · round 1")
    assert presented.lines[1:] == [
        "  5 messages archived (Ctrl-G), 2 kept · 0.0 s",
        "  Mind the accuracy.",
        "  · (Go on.)",
    ]
    assert (presented.footer_state.tokens, presented.footer_state.known) == (3_000, "unknown")


def test_failed_or_skipped_compaction_shows_reason() -> None:
    started = CompactionStarted(S, "manual", 9_000)
    failed = Presented(started, CompactionFailed(S, "summary_failed", "the model is away"))
    retry = "/compact tries again, /compact --without-model needs no model."
    assert (
        " ".join(failed.lines).split()
        == f"✗ The compaction failed: the model is away. Nothing has changed; {retry}".split()
    )
    full = " ".join(Presented(started, CompactionFailed(S, "cannot_fit", "the system prompt fills the window")).lines)
    assert "/compact" not in full and full.endswith("Nothing has changed; /clear starts a new session.")
    stopped = Presented(started, CompactionFailed(S, "aborted", "it was cancelled"))
    assert stopped.lines == ["  · The compaction was stopped. Nothing has changed."]
    assert Presented(CompactionSkipped(S, "vetoed", "vetoed by a hook")).lines == [
        "  · Not compacted: vetoed by a hook."
    ]


def test_failed_and_repeated_compaction_is_one_entry() -> None:
    started, failed = CompactionStarted(S, "auto", 9_000), CompactionFailed(S, "summary_failed", "Overloaded.")
    presented = Presented(started, failed, started, failed)
    assert presented.lines[0].startswith(
        "  ✗ The compaction failed again: Overloaded. Nothing has changed; /compact tries"
    )
    presented.handle(started, COMPLETED)
    assert presented.lines[0].startswith("── compacted 9k → 3k tokens") and "failed" in presented.lines[2]
    assert presented.lines[1:] == [
        "  5 messages archived (Ctrl-G), 2 kept · 0.0 s",
        "  an earlier attempt failed: Overloaded",
    ]
    presented.handle(started, COMPLETED)
    assert "".join(presented.lines).count("earlier attempt") == 1


def test_waiting_prompts_stay_at_end_until_delivered() -> None:
    """P14: queued during a compaction, steering a running agent, and returned if never delivered."""
    presented = Presented(
        RunStarted(S, "go"), CompactionStarted(S, "auto", 9_000), Queued(S, "Mind the pier.", 1), COMPLETED
    )
    assert presented.lines[-1] == "❯ queued: Mind the pier."
    presented.presenter.sync_pending(["Mind the pier.", "And the buoy."])
    assert presented.lines[-2:] == ["❯ after this step: Mind the pier.", "❯ after this step: And the buoy."]
    presented.presenter.sync_pending(["And the buoy."])
    presented.handle(TextDelta(S, "text", "Aye."))
    assert presented.lines[-3:] == ["❯ Mind the pier.", "  Aye.", "❯ after this step: And the buoy."]
    presented.handle(RunFinished(S, "aborted"))
    presented.presenter.sync_pending([])
    assert presented.transcript.withdraw("And the buoy.") is not None
    assert "buoy" not in "".join(presented.lines)


def test_waiting_prompt_is_shown_once_when_delivered() -> None:
    presented = Presented(
        CompactionStarted(S, "manual", 9_000), Queued(S, "later", 1), COMPLETED, RunStarted(S, "later")
    )
    assert presented.lines[-1] == "❯ later" and not presented.transcript.waiting


def test_long_transcript_keeps_newest_entries_and_where_the_others_are_read_again() -> None:
    transcript = TerminalTranscript()
    transcript.prepend_history([SessionHeaderEntry("resumed", "Berths", "~/harbor", "m", "")])
    for number in range(1, MAX_ENTRIES + 2):
        for _ in range(2):
            transcript.number_next(number)
            transcript.add(NoteEntry(str(number)))
    transcript.trim()
    header, place, first, *_, last = transcript.entries
    assert len(transcript.entries) <= MAX_ENTRIES and isinstance(header, SessionHeaderEntry)
    assert transcript.earlier is place and isinstance(place, EarlierEntry) and place.before == first.number
    assert render(last).endswith(str(MAX_ENTRIES + 1)) and transcript.entries[3].number == first.number


def test_prepend_history_puts_earlier_entries_first_without_duplicates() -> None:
    transcript = TerminalTranscript()
    transcript.deliver("and now?")
    transcript.add(ReplyEntry("Now it is noon."))
    transcript.prepend_history(
        [HistoryEntry("user", "before"), HistoryEntry("assistant", "Aye."), HistoryEntry("user", "and now?")]
    )
    assert [render(entry) for entry in transcript] == ["❯ before", "  Aye.", "❯ and now?", "  Now it is noon."]
