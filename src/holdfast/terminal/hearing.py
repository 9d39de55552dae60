"""From what an agent tells to what a person sees."""

from __future__ import annotations

from collections.abc import Sequence

from ..agent.events import (
    AgentEvent,
    Gauged,
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
from ..hooks.events import (
    CompactionBoundary,
    CompactionCompleted,
    CompactionFailed,
    CompactionProgress,
    CompactionSkipped,
    CompactionStarted,
    Continued,
)
from .entries import Divider, Entry, Note, Progress, Reply, Thought, ToolLine
from .entries.notes import Tone
from .standing import Standing
from .transcript import Transcript

QUEUED, STEERING = "queued", "after this step"


class Hearing:
    """Hears every event, in order, and changes the transcript and the footer. It draws nothing itself."""

    def __init__(self, transcript: Transcript, standing: Standing) -> None:
        self.transcript = transcript
        self.standing = standing
        self._reply: Reply | None = None
        self._thought: Thought | None = None
        self._tools: dict[str, ToolLine] = {}
        self._progress: Progress | None = None
        self._divider: Divider | None = None
        self._problem = ""
        """What the person was told of a run that has not ended yet."""
        self._before = ""
        """What was going on when a compaction began."""
        self.ended = 0
        """Compactions that the person has been told the end of."""

    def hear(self, event: AgentEvent) -> None:
        match event:
            case RunStarted():
                if event.prompt is not None:
                    self.transcript.heard(event.prompt)
                else:
                    self._note("The agent goes on.")
                self.standing.busy = True
                self.standing.does("thinking")
            case Said():
                self._said(event)
            case Replied():
                self._replied(event)
            case ToolStarted():
                self._tools[event.call] = line = ToolLine(event.call, event.name, event.summary)
                self.transcript.add(line)
                self.standing.does(event.name)
            case ToolFinished():
                if (known := self._tools.pop(event.call, None)) is not None:
                    known.finish(event.text, failed=event.is_error)
                self.standing.does("thinking")
            case Gauged():
                self.standing.gauge(event)
            case Retrying():
                self._note(f"No answer ({event.why}): asking again in {event.seconds:.0f} s.", "warning")
            case Queued():
                self.transcript.wait(event.text, QUEUED)
            case RunFinished():
                self._finished(event)
            case Problem():
                self._problem = event.error
                self._note(event.error, "problem")
            case _:
                self._compaction(event)
        self.transcript.changed()

    def unheard(self, texts: Sequence[str]) -> None:
        """These were said to the agent while it works, and wait for its next step. The others were heard."""
        if not self.standing.busy:
            return
        left = list(texts)
        for prompt in list(self.transcript.waiting):
            if prompt.text in left:
                left.remove(prompt.text)
                prompt.wait(STEERING)
            elif prompt.waiting == STEERING:
                self.transcript.heard(prompt.text)
        for text in left:
            self.transcript.wait(text, STEERING)

    def asked(self, call: str | None) -> None:
        """The person is asked about a call, or about none any more."""
        for line in self._tools.values():
            line.ask(line.call == call)
        if call is not None:
            self.standing.does("waiting for you")
        self.transcript.changed()

    def forget(self) -> None:
        """Another session: nothing that is open belongs to it."""
        self._reply = self._thought = self._progress = self._divider = None
        self._tools.clear()
        self.standing.busy = False
        self.standing.does("")
        self.transcript.clear()

    # -- a reply ---------------------------------------------------------------------------------------

    def _said(self, event: Said) -> None:
        match event.kind:
            case "text":
                self._end_thought()
                if self._reply is None:
                    self._reply = Reply()
                    self.transcript.add(self._reply)
                self._reply.say(event.text)
                self.standing.does("writing")
            case "reasoning":
                if self._thought is None:
                    self._thought = Thought()
                    self.transcript.add(self._thought)
                self._thought.say(event.text)
                self.standing.does("thinking")
            case "call":
                self.standing.does(f"calling {event.text}")

    def _replied(self, event: Replied) -> None:
        self._end_thought()
        if self._reply is None and event.text:
            self.transcript.add(Reply(event.text))
        self._end_reply("cut off" if event.finish == "length" else "")

    def _end_reply(self, remark: str = "") -> None:
        if self._reply is not None:
            self._reply.end(remark)
        self._reply = None

    def _end_thought(self) -> None:
        if self._thought is not None:
            self._thought.end()
        self._thought = None

    def _finished(self, event: RunFinished) -> None:
        stopped = event.status == "aborted"
        self._end_thought()
        self._end_reply("stopped" if stopped else "")
        for line in self._tools.values():
            line.stop()
        self._tools.clear()
        self.standing.busy = False
        self.standing.does("")
        if stopped:
            self._note("Stopped. What was said and done so far is kept.")
        elif event.status != "done" and event.why != self._problem:
            tone: Tone = "problem" if event.status == "failed" else "warning"
            self._note(event.why or event.status.replace("_", " "), tone)
        self._problem = ""

    # -- a compaction ----------------------------------------------------------------------------------

    def _compaction(self, event: AgentEvent) -> None:
        match event:
            case CompactionStarted():
                self._end_thought()
                self._end_reply()
                self._before = self.standing.doing
                self._progress = Progress(event.tokens, event.origin == "manual")
                self.transcript.add(self._progress)
                self.standing.does("compacting")
            case CompactionProgress() if self._progress is not None:
                self._progress.what, self._progress.characters = event.what, event.characters
                self._progress.changed()
            case CompactionCompleted():
                self._divider = Divider(event)
                self._over(self._divider)
                self.standing.tokens, self.standing.known = event.tokens_after, "unknown"
            case CompactionBoundary() if self._divider is not None:
                self._divider.notice = event.notice
                self._divider.changed()
            case CompactionFailed() if event.outcome == "aborted":
                self._over(Note("The compaction was stopped. Nothing has changed."))
            case CompactionFailed():
                why = event.why or event.outcome.replace("_", " ")
                self._over(Note(f"The compaction failed: {why}. Nothing has changed; /compact tries again.", "problem"))
            case CompactionSkipped():
                why = event.why or event.outcome.replace("_", " ")
                self._over(Note(f"Not compacted: {why}."))
            case Continued():
                self._note(event.text, "aside")

    def _over(self, shown: Entry) -> None:
        if self._progress is not None:
            self.transcript.replace(self._progress, shown)
        else:
            self.transcript.add(shown)
        self._progress = None
        self.ended += 1
        self.standing.does(self._before if self.standing.busy else "")

    def tick(self) -> None:
        """Another second: what shows how long it takes is drawn again."""
        if self._progress is not None:
            self._progress.changed()
            self.transcript.changed()

    def _note(self, text: str, tone: Tone = "quiet") -> None:
        self.transcript.add(Note(text, tone))
