"""Runs the hooks of one compaction: before it, after it, and at the start of the compacted session.

Hooks can neither break nor block a compaction: one that raises or exceeds its time limit is skipped, with a remark.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from ..compaction import CompactionResult, CompactionRun, Decision, Notify
from ..context import Plan, Request, Skip
from ..errors import Outcome
from ..io.processes import ShellResult
from ..messages import Json, Message, Text, framed_message, is_framed, strip_frame
from ..models import scrub
from ..strategies import as_strategy
from ..summaries import replace_surrogates
from ..summaries.transcript import truncate
from ..triggers import OverBudget
from .emitter import EventEmitter
from .events import CompactionCompleted, Origin
from .hooks import BeforeCompaction, CommandHook, Hooks, Instructions, SessionStart, Veto, hook_name, validate_listener
from .timeouts import HookTimeout, call_hook_function

if TYPE_CHECKING:
    from ..types import Strategy, Trigger
    from .hooks import Listener

HookInput = BeforeCompaction | CompactionCompleted | SessionStart
_EVENT_NAMES = {BeforeCompaction: "PreCompact", CompactionCompleted: "PostCompact", SessionStart: "SessionStart"}
MAX_HOOK_TEXT = 10_000
"""Maximum characters of a text that a hook adds."""
_MAX_REASON = 500
_VETO_EXIT_CODE = 2


class CommandHookError(Exception):
    """A command failed, or printed an invalid answer."""


def command_input(given: HookInput, instructions: str | None) -> Json:
    """Returns the JSON object for the standard input."""
    common: Json = {
        "hook_event_name": _EVENT_NAMES[type(given)],
        "session_id": given.session,
        "lane": given.lane,
        "trigger": given.origin,
        "custom_instructions": instructions,
        "cwd": os.getcwd(),
    }
    if isinstance(given, BeforeCompaction):
        return common | {"tokens": given.tokens, "budget": given.budget}
    if isinstance(given, SessionStart):
        return common | {"tokens": given.tokens, "round": given.round, "source": given.source}
    sizes = {"tokens_before": given.tokens_before, "tokens_after": given.tokens_after}
    return common | {"tokens": given.tokens_after, **sizes, "round": given.round, "compact_summary": given.summary}


def parse_command_output(result: ShellResult, given: HookInput) -> Veto | Instructions | str | None:
    """Parses what a command printed: a veto, instructions or a session-start text; nothing after a compaction."""
    if isinstance(given, BeforeCompaction):
        return _parse_before_answer(result)
    found = _json_object(result)
    return _additional_context(result, found) if isinstance(given, SessionStart) else None


def _parse_before_answer(result: ShellResult) -> Veto | Instructions | None:
    if result.exit_code == _VETO_EXIT_CODE:
        return Veto(truncate(scrub(result.stderr), _MAX_REASON))
    found = _json_object(result)
    if found is None:
        return Instructions(truncate(result.stdout, MAX_HOOK_TEXT)) if result.stdout else None
    if found.get("decision") == "block":
        return Veto(truncate(scrub(_text_field(found, "reason")), _MAX_REASON))
    text = _text_field(found, "instructions")
    return Instructions(truncate(text, MAX_HOOK_TEXT)) if text else None


def _additional_context(result: ShellResult, found: Json | None) -> str | None:
    if found is None:
        return result.stdout or None
    inner = found.get("hookSpecificOutput")
    return _text_field(inner if isinstance(inner, dict) else found, "additionalContext") or None


def _json_object(result: ShellResult) -> Json | None:
    """Returns the printed JSON object; None for plain text. Raises if the command failed."""
    if result.exit_code:
        reason = truncate(scrub(result.stderr), _MAX_REASON)
        raise CommandHookError(f"it exited with {result.exit_code}" + (f": {reason}" if reason else ""))
    try:
        found = msgspec.json.decode(result.stdout)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _text_field(found: Json, key: str) -> str:
    value = found.get(key) or ""
    if not isinstance(value, str):
        raise CommandHookError(f"its {key} is not a text: {msgspec.json.encode(value).decode()[:40]}")
    return value.strip()


log = logging.getLogger("holdfast")


class PlanRejected(Exception):
    """A replacement plan is invalid; the message says why."""


async def decide_replacement(run: CompactionRun, strategy: Strategy, by: str) -> Decision:
    """Runs a hook's strategy and validates its plan like any other; raises `PlanRejected` if it cannot be used."""
    try:
        decision = await run.plan_by(strategy, lambda answer: _validate_replacement(answer, run.request, by))
    except PlanRejected:
        raise
    except Exception as error:
        log.warning("the strategy of the hook %s raised", by, exc_info=True)
        raise PlanRejected(f"it raised {type(error).__name__}: {error}") from error
    if decision.plan is None:
        raise PlanRejected(decision.why)
    return decision


def _validate_replacement(answer: Any, request: Request, by: str) -> Plan:
    """Returns the plan if its indexes exist, its summary is not blank and it shrinks the context."""
    if isinstance(answer, Skip):
        raise PlanRejected(answer.why or answer.outcome.value)
    if not isinstance(answer, Plan):
        raise PlanRejected(f"it returned {type(answer).__name__}, not a plan")
    if answer.base is not request.view:
        raise PlanRejected("it is for another context: start from request.plan")
    blank = answer.summary is not None and not answer.summary.strip()
    if blank or any(_is_blank(shown.message) for shown in answer.head if shown.kind == "note" and not shown.source):
        raise PlanRejected("its summary is blank")
    before, after = request.tokens, request.at(answer).tokens
    if after >= before:
        raise PlanRejected(f"{before} tokens would become {after}")
    return answer if answer.strategies else answer.made_by(by)


def _is_blank(note: Message) -> bool:
    text = strip_frame(note) if is_framed(note) else note.text
    return not text.strip() and all(type(part) is Text for part in note.parts)


_MIN_CHARACTERS = 200
"""Shorter session-start texts are dropped."""


def fit_session_start_text(text: str, request: Request, triggers: Sequence[Trigger]) -> str | None:
    """Truncates a text until it sets off none of these triggers; None if there is no room.

    Triggers that fire without the text are ignored.
    """
    text = replace_surrogates(text)
    silent = [trigger for trigger in triggers if not trigger(request)]
    limit = min(MAX_HOOK_TEXT, len(text))
    while True:
        shortened = truncate(text, limit)
        after = _request_with_text(shortened, request)
        if not any(trigger(after) for trigger in silent):
            return shortened
        if limit <= _MIN_CHARACTERS:
            return None
        limit //= 2


def _request_with_text(text: str, request: Request) -> Request:
    """Returns the request with the text added twice, to leave room for the next message."""
    notes = [shown.message for shown in request.view.head if shown.kind == "note"]
    return request.at(request.plan.show((*notes, *[framed_message(text, aside=True)] * 2)))


class HookRunner:
    """Runs the hooks and emits the events of one compaction.

    Used in a `with` block, so that every started event is followed by an end event.
    """

    def __init__(
        self, hooks: Hooks, session: str, lane: str | None, origin: Origin, listen: Listener | None = None
    ) -> None:
        listeners = hooks.listen if listen is None else (*hooks.listen, validate_listener(listen))
        self._hooks = hooks
        self._emitter = EventEmitter(listeners, session, lane, origin)
        self._instructions: str | None = None
        self._remarks: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._emitter.emit_error(error)

    def with_listeners(self, notify: Notify | None) -> Notify | None:
        """Returns a callback that passes the model's progress to `notify` and to the listeners."""
        return self._emitter.with_listeners(notify)

    # -- before ---------------------------------------------------------------------------------------

    async def decide(self, run: CompactionRun) -> Decision:
        """Runs the before hooks, then decides by the given strategy or a hook's plan. An abort cancels hooks, too."""
        self._instructions = run.request.instructions
        self._emitter.emit_started(run.request.tokens, run.request.instructions)
        with run.summarizer.abort.scope():
            decision = await self._decide_by_hooks(run)
            if decision is not None:
                return self._with_remarks(decision)
        return self._with_remarks(await run.decide_with_model())

    async def _decide_by_hooks(self, run: CompactionRun) -> Decision | None:
        """Returns a veto or the decision of a hook's plan; None if the strategy decides."""
        request = run.request
        chosen = run.chosen
        by = ""
        for hook in self._hooks.before:
            answer = await self._call(hook, self._before_input(request, chosen))
            if isinstance(answer, Veto):
                why = answer.why.strip() or f"vetoed by the hook {hook_name(hook)}"
                return Decision(Outcome.VETOED, request.tokens, request.tokens, why)
            if isinstance(answer, Instructions):
                added = filter(None, ((request.instructions or "").strip(), answer.text.strip()))
                request.instructions = self._instructions = "\n\n".join(added) or None
            elif isinstance(answer, Plan):
                chosen, by = _fixed_plan(answer), hook_name(hook)
            elif callable(answer):
                chosen, by = as_strategy(answer), hook_name(hook)
            elif answer is not None:
                self._skip(hook, f"it returned {type(answer).__name__}, which is not a valid answer")
        if not by:
            return None
        try:
            return await decide_replacement(run, chosen, by)
        except PlanRejected as error:
            self._remark(f"the plan of the hook {by} was rejected: {error}")
            return None

    def _before_input(self, request: Request, strategy: Strategy) -> BeforeCompaction:
        return BeforeCompaction(
            session=self._emitter.session,
            lane=self._emitter.lane,
            origin=self._emitter.origin,
            tokens=request.tokens,
            budget=request.budget,
            instructions=request.instructions,
            request=request,
            strategy=strategy,
        )

    # -- after ----------------------------------------------------------------------------------------

    def finish_unchanged(self, result: CompactionResult) -> CompactionResult:
        """Emits that nothing was changed."""
        self._emitter.emit_unchanged(result.outcome, result.why)
        return result

    def finish_committed(
        self, result: CompactionResult, checkpoint: str, run: CompactionRun
    ) -> CompactionCompleted | None:
        """Emits that the compaction was committed; returns the event, or None without listeners and after hooks."""
        if not (self._emitter or self._hooks.after):
            return None
        completed = self._emitter.completed_event(result, run.summarizer)
        self._emitter.emit_committed(completed, checkpoint)
        return completed

    async def run_session_start(self, request: Request, round: int, run: CompactionRun) -> str | None:
        """Runs the session-start hooks and returns their texts, truncated to fit; None if there are none."""
        texts: list[str] = []
        start = SessionStart(
            session=self._emitter.session,
            lane=self._emitter.lane,
            origin=self._emitter.origin,
            tokens=request.tokens,
            round=round,
        )
        with run.summarizer.abort.scope():
            for hook in self._hooks.session_start:
                answer = await self._call(hook, start)
                if isinstance(answer, str):
                    texts.append(answer.strip())
                elif answer is not None:
                    self._skip(hook, f"it returned {type(answer).__name__}, not a text")
        text = "\n\n".join(filter(None, texts))
        if not text:
            return None
        fitted = fit_session_start_text(text, request, (run.policy.trigger, OverBudget()))
        if fitted is None:
            self._remark("the session-start text was omitted: it would set off the next compaction")
        return fitted

    async def run_after(
        self, completed: CompactionCompleted | None, result: CompactionResult, run: CompactionRun
    ) -> CompactionResult:
        """Runs the after hooks and adds the remarks on skipped hooks to the result."""
        if completed is not None:
            with run.summarizer.abort.scope():
                for hook in self._hooks.after:
                    await self._call(hook, completed, result)
        result.remarks = (*result.remarks, *self._remarks)
        return result

    # -- helpers --------------------------------------------------------------------------------------

    async def _call(self, hook: Any, given: HookInput, *more: Any) -> Any:
        try:
            if not isinstance(hook, CommandHook):
                return await call_hook_function(hook, given, *more, seconds=self._hooks.timeout)
            return parse_command_output(await hook.run(command_input(given, self._instructions)), given)
        except (HookTimeout, CommandHookError) as error:
            self._skip(hook, str(error))
        except Exception as error:
            self._skip(hook, f"{type(error).__name__}: {error}", error)
        return None

    def _skip(self, hook: Any, why: str, error: Exception | None = None) -> None:
        self._remark(f"the hook {hook_name(hook)} was skipped: {why}", error)

    def _remark(self, remark: str, error: Exception | None = None) -> None:
        self._remarks.append(scrub(remark))
        log.warning("session %s: %s", self._emitter.session, self._remarks[-1], exc_info=error)

    def _with_remarks(self, decision: Decision) -> Decision:
        """Moves the remarks on skipped hooks into the decision and its plan."""
        if not self._remarks:
            return decision
        new, self._remarks = tuple(self._remarks), []
        plan = decision.plan and msgspec.structs.replace(decision.plan, remarks=(*decision.plan.remarks, *new))
        return msgspec.structs.replace(decision, plan=plan, remarks=(*decision.remarks, *new))


def _fixed_plan(plan: Plan) -> Strategy:
    return as_strategy(lambda request: plan)
