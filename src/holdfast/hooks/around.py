"""All that others have to do with one compaction: they are asked before it, told of it, and asked again after it (G7).

None of them can break it or hold it up: whoever raises, or takes too long, is passed over, and a remark says so.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from ..compaction import Asking, CompactionResult, Decision, Notify, decide_asking
from ..models import scrub
from ..outcome import Outcome
from ..triggers import OverBudget, always
from ..view import Plan, Request
from . import speaking
from .calling import call
from .command import Command
from .events import CompactionCompleted, Origin
from .hooks import Hooks, listener, name_of
from .patience import TooSlow
from .questions import Before, Instructions, SessionStart, Veto
from .replacing import NotUsed, replaced
from .restating import fitting
from .telling import Telling

if TYPE_CHECKING:
    from ..types import Strategy, Trigger
    from .questions import Listener

log = logging.getLogger("holdfast")


class Around:
    """Used in a `with` block, so that a compaction that was told to have begun is told to have ended."""

    def __init__(
        self, hooks: Hooks, session: str, lane: str | None, origin: Origin, listen: Listener | None = None
    ) -> None:
        heard_by = hooks.listen if listen is None else (*hooks.listen, listener(listen))
        self._hooks = hooks
        self._telling = Telling(heard_by, session, lane, origin)
        self._instructions: str | None = None
        self._remarks: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is not None:
            self._telling.broke(problem)

    def notify(self, given: Notify | None) -> Notify | None:
        return self._telling.notify(given)

    # -- before ---------------------------------------------------------------------------------------

    async def decide(self, request: Request, strategy: Strategy, asking: Asking, min_saving: float) -> Decision:
        """What the hooks let the strategy, or one of their own, decide. An abort ends them, too."""
        self._instructions = request.instructions
        self._telling.started(request.tokens, request.instructions)
        with asking.abort.scope():
            decision = await self._with_hooks(request, strategy, asking, min_saving)
            if decision is not None:
                return self._remarked(decision)
        return self._remarked(await decide_asking(request, strategy, always, asking, min_saving=min_saving))

    async def _with_hooks(
        self, request: Request, strategy: Strategy, asking: Asking, min_saving: float
    ) -> Decision | None:
        """The decision that the hooks lead to; None leaves it to the strategy."""
        chosen, by = strategy, ""
        for hook in self._hooks.before:
            answer = await self._ask(hook, self._before(request, chosen))
            if isinstance(answer, Veto):
                why = answer.why.strip() or f"the hook {name_of(hook)} said no"
                return Decision(Outcome.VETOED, request.tokens, request.tokens, why)
            if isinstance(answer, Instructions):
                added = filter(None, ((request.instructions or "").strip(), answer.text.strip()))
                request.instructions = self._instructions = "\n\n".join(added) or None
            elif isinstance(answer, Plan):
                chosen, by = _always_this(answer), name_of(hook)
            elif callable(answer):
                chosen, by = answer, name_of(hook)
            elif answer is not None:
                self._pass_over(hook, f"it answered with {type(answer).__name__}, which is no answer")
        if not by:
            return None
        try:
            return await replaced(request, chosen, asking, min_saving, by)
        except NotUsed as problem:
            self._remark(f"the plan of the hook {by} was not used: {problem}")
            return None

    def _before(self, request: Request, strategy: Strategy) -> Before:
        return Before(
            session=self._telling.session,
            lane=self._telling.lane,
            origin=self._telling.origin,
            tokens=request.tokens,
            budget=request.budget,
            instructions=request.instructions,
            request=request,
            strategy=strategy,
        )

    # -- after ----------------------------------------------------------------------------------------

    def ended(self, result: CompactionResult) -> CompactionResult:
        """Nothing was changed."""
        self._telling.ended(result.outcome, result.why)
        return result

    def changed(self, result: CompactionResult, checkpoint: str, asking: Asking) -> CompactionCompleted | None:
        """It is committed, and told; None where nobody listens."""
        if not (self._telling or self._hooks.after):
            return None
        completed = self._telling.completed(result, asking)
        self._telling.changed(completed, checkpoint)
        return completed

    async def session_start(self, request: Request, round: int, trigger: Trigger | None, asking: Asking) -> str | None:
        """What must be said again in a context that was compacted, as much of it as there is room for."""
        texts: list[str] = []
        start = SessionStart(
            session=self._telling.session,
            lane=self._telling.lane,
            origin=self._telling.origin,
            tokens=request.tokens,
            round=round,
        )
        with asking.abort.scope():
            for hook in self._hooks.session_start:
                answer = await self._ask(hook, start)
                if isinstance(answer, str):
                    texts.append(answer.strip())
                elif answer is not None:
                    self._pass_over(hook, f"it answered with {type(answer).__name__}, not with a text")
        text = "\n\n".join(filter(None, texts))
        if not text:
            return None
        said = fitting(text, request, (trigger or OverBudget(), OverBudget()))
        if said is None:
            self._remark("what the session is to start with was left out: it would set off the next compaction")
        return said

    async def after(
        self, completed: CompactionCompleted | None, result: CompactionResult, asking: Asking
    ) -> CompactionResult:
        if completed is not None:
            with asking.abort.scope():
                for hook in self._hooks.after:
                    await self._ask(hook, completed, result)
        result.remarks = (*result.remarks, *self._remarks)
        return result

    # -- for the above --------------------------------------------------------------------------------

    async def _ask(self, hook: Any, given: speaking.Told, *more: Any) -> Any:
        try:
            if not isinstance(hook, Command):
                return await call(hook, given, *more, seconds=self._hooks.timeout)
            return speaking.understood(await hook.run(speaking.told(given, self._instructions)), given)
        except (TooSlow, speaking.Misunderstood) as problem:
            self._pass_over(hook, str(problem))
        except Exception as problem:
            self._pass_over(hook, f"{type(problem).__name__}: {problem}", problem)
        return None

    def _pass_over(self, hook: Any, why: str, problem: Exception | None = None) -> None:
        self._remark(f"the hook {name_of(hook)} was passed over: {why}", problem)

    def _remark(self, remark: str, problem: Exception | None = None) -> None:
        self._remarks.append(scrub(remark))
        log.warning("session %s: %s", self._telling.session, self._remarks[-1], exc_info=problem)

    def _remarked(self, decision: Decision) -> Decision:
        """With what is to be said of the hooks; it is said once."""
        if not self._remarks:
            return decision
        new, self._remarks = tuple(self._remarks), []
        plan = decision.plan and msgspec.structs.replace(decision.plan, remarks=(*decision.plan.remarks, *new))
        return msgspec.structs.replace(decision, plan=plan, remarks=(*decision.remarks, *new))


def _always_this(plan: Plan) -> Strategy:
    return lambda request: plan
