"""Faults of real histories: each function takes a script and returns it with one more fault."""

from collections.abc import Callable
from dataclasses import replace

from histories.build import Writer
from histories.script import Model, Result, Results, Step, Summary, System, Text, Thought, User
from histories.tape import Tape

Break = Callable[[list[Step], Tape], list[Step]]


def _answers(steps: list[Step]) -> list[int]:
    return [i for i, step in enumerate(steps) if isinstance(step, Results) and step.results]


def _insert(steps: list[Step], tape: Tape, step: Step) -> list[Step]:
    at = tape.below(len(steps) + 1)
    return [*steps[:at], step, *steps[at:]]


def orphan_result(steps: list[Step], tape: Tape) -> list[Step]:
    return _insert(steps, tape, Results((Result("ghost", "read", tape.text()),)))


def result_twice(steps: list[Step], tape: Tape) -> list[Step]:
    """Answer a call twice: at once, or at a later position."""
    places = _answers(steps)
    if not places:
        return orphan_result(steps, tape)
    at = tape.one(places)
    step = steps[at]
    assert isinstance(step, Results)
    again = replace(step.results[0], text=tape.text())
    if tape.rarely(2):
        return [*steps[:at], Results((*step.results, again)), *steps[at + 1 :]]
    later = at + 1 + tape.below(len(steps) - at)
    return [*steps[:later], Results((again,)), *steps[later:]]


def result_late(steps: list[Step], tape: Tape) -> list[Step]:
    """Insert a user message between a call and its results."""
    places = _answers(steps)
    if not places:
        return orphan_result(steps, tape)
    at = tape.one(places)
    return [*steps[:at], User((Text(tape.text()),)), *steps[at:]]


def result_early(steps: list[Step], tape: Tape) -> list[Step]:
    places = [at for at in _answers(steps) if at]
    if not places:
        return orphan_result(steps, tape)
    at = tape.one(places)
    return [*steps[: at - 1], steps[at], steps[at - 1], *steps[at + 1 :]]


def call_unanswered(steps: list[Step], tape: Tape) -> list[Step]:
    """Drop one result of a turn, or all of them."""
    places = _answers(steps)
    if not places:
        return _insert(steps, tape, Writer(tape).round()[0])
    at = tape.one(places)
    step = steps[at]
    assert isinstance(step, Results)
    left: list[Step] = [Results(step.results[1:])] if len(step.results) > 1 and tape.rarely(2) else []
    return [*steps[:at], *left, *steps[at + 1 :]]


def same_id(steps: list[Step], tape: Tape) -> list[Step]:
    """Repeat a whole round: a retried request that was appended twice."""
    places = [at for at, step in enumerate(steps) if isinstance(step, Model) and step.calls]
    if not places:
        return orphan_result(steps, tape)
    at = tape.one(places)
    return [*steps[: at + 2], *steps[at : at + 2], *steps[at + 2 :]]


def hollow(steps: list[Step], tape: Tape) -> list[Step]:
    empty: tuple[Step, ...] = (User(()), Model(()), User((Text(" \n"),)), Model((Text(""),)), Results(()))
    return _insert(steps, tape, tape.one(empty))


def stray_thought(steps: list[Step], tape: Tape) -> list[Step]:
    """Reasoning that nothing follows, or without its signature."""
    return _insert(steps, tape, Model((Thought(tape.text(), tape.one(("c3RyYXk", ""))),)))


def model_first(steps: list[Step], tape: Tape) -> list[Step]:
    """Cut off the beginning, as truncation does, at any position."""
    del tape
    left = list(steps)
    while len(left) > 1 and isinstance(left[0], System | Summary | User):
        left.pop(0)
    return left


def cut_anywhere(steps: list[Step], tape: Tape) -> list[Step]:
    return steps[tape.below(max(1, len(steps))) :]


BREAKS: tuple[Break, ...] = (
    orphan_result,
    result_twice,
    result_late,
    result_early,
    call_unanswered,
    same_id,
    hollow,
    stray_thought,
    model_first,
    cut_anywhere,
)


def broken(steps: list[Step], tape: Tape) -> list[Step]:
    """Return the script with one to three faults; something is always left to send."""
    for _ in range(1 + tape.below(3)):
        steps = tape.one(BREAKS)(steps, tape)
    return steps if any(_says_something(step) for step in steps) else [*steps, User((Text(tape.text()),))]


def _says_something(step: Step) -> bool:
    match step:
        case User(parts) | Model(parts):
            return any(part != Text("") for part in parts)
        case Results(results):
            return bool(results)
    return isinstance(step, Summary)
