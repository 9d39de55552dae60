"""The trail: the newest steps as native messages, as far back as they are worth their room.

A step is a run of messages between two legal cuts: usually one reply with its calls and their results. Calls and words
stay whole; long results are shortened to selected lines. The next steps repeat a command or a path rather than a long
text, and newer text rather than older text: the worth of a step falls with the length of its texts and with its age,
until a line of the notes is worth more. Text that a newer step shows too is worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import sqrt
from typing import NamedTuple

from .lines import find_shingles, unseen_share
from .names import find_exact_names
from .weights import decay

_HALF_AGE = 60
"""Age in messages at which a step's text is half as likely to be written again as that of the newest."""
_SHORT_SHARE, _SHORT_CHARS = 0.675, 150
"""Share of a short and new text that is written again, and the length from which a text counts as long."""
MAX_SHARE, MAX_TALK_SHARE = 0.75, 0.2
"""Largest share of the room for the trail, without the lines of its shortened results; in a conversation without files,
where hardly anything is written again."""


class TrailStep(NamedTuple):
    """A step with which the trail may begin."""

    cut: int
    """Index of its first message."""
    age: int
    """Number of messages from there to the end."""
    texts: tuple[str, ...]
    """Words and values of calls, which stay whole, and short results, each apart."""
    size: int
    """The room that it takes with its long results cut."""


def choose_trail(
    steps: Iterable[TrailStep],
    room: int,
    reserved: int,
    max_share: float,
    scores: dict[str, float],
    per_character: float,
    price: Callable[[int], float],
) -> int | None:
    """Returns the cut with which the trail gains most over notes in the same room; None if no trail gains anything.

    `steps` begin with the newest. `reserved` is the room of the notes' fixed sections, `price` the score of one more
    character of notes in so much room, `per_character` that of a character which will be written again.
    """
    best, best_cut, gain, spent = 0.0, None, 0.0, 0
    seen: set[str] = set()
    shown: set[str] = set()
    for step in steps:
        spent += step.size
        if spent > min(max_share * room, room - reserved):
            break
        for text in step.texts:
            names = [name for name in dict.fromkeys(find_exact_names(text)) if name not in seen]
            seen.update(names)
            gain += sum(scores.get(name, 0.0) for name in names)
            shingles = find_shingles(text)
            gain += per_character * reused_characters(len(text), step.age) * unseen_share(shingles, shown)
            shown.update(shingles)
        gain -= step.size * price(room - reserved - spent)
        if gain >= best:
            best, best_cut = gain, step.cut
    return best_cut


def reused_characters(length: int, age: int) -> float:
    """Returns how much of a text the next steps are likely to write again."""
    return length * _SHORT_SHARE * decay(age, _HALF_AGE) / sqrt(1 + length / _SHORT_CHARS)
