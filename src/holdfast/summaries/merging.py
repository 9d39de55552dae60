"""An answer held against the summary before it: what a model left out without a reason is put back (L6, P24).

Models forget. So items go by rule: kept, reworded, moved to another section, or removed with a reason. Whatever is
none of these stands again where it stood; and what has to go for want of room is counted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from .structured import Removal, Sections, Work, folded, write_body

ENOUGH = 0.6
"""An item is told by a text that has this part of its words."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]+")
"""Scripts that put no spaces between words, or join much to them: their words are pairs of characters."""
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"[\w#@$~./\\:-]+")
_SPELLED = re.compile(r"\d|_|\w[/\\]|[/\\]\w|\w\.\w|::|^[@#$~]\w|[a-z][A-Z]|^[A-Z]{2,}")
_LISTS = ("pending", "decisions", "constraints", "errors", "context")
_ELSEWHERE = {
    "pending": ("completed", "last_completed", "working_on", "errors"),
    "decisions": ("constraints", "context"),
    "constraints": ("decisions", "context"),
    "errors": ("context",),
    "context": ("decisions", "constraints"),
}
"""Where else an item of a section may have gone."""
_DONE = "Done"


class Merged(msgspec.Struct, frozen=True):
    """The new summary, whole again."""

    sections: Sections
    put_back: tuple[str, ...] = ()
    """What the answer had forgotten."""
    dropped: tuple[Removal, ...] = ()
    """What went for a reason that the answer gives."""


def merge(previous: Sections, new: Sections) -> Merged:
    """What the answer says, and what it forgot to say."""
    check = _Check(new.removed)
    rows = _rows(previous.completed, new.completed, check)
    lists = {name: _distinct(getattr(new, name)) for name in _LISTS}
    for name, own in lists.items():
        before = _distinct(getattr(previous, name))
        elsewhere = (text for other in _ELSEWHERE[name] for text in _texts(new, other))
        lists[name] = _in_place(before, own, *check.settle(before, [*own, *elsewhere]))
    told = [row.text for row in rows.values()]
    working = previous.working_on
    if not check.lost(working, [new.working_on, new.last_completed, *told, *lists["pending"], *new.errors]):
        working = new.working_on
    elif new.working_on:
        lists["pending"], working = _distinct([working, *lists["pending"]]), new.working_on
    if new.last_completed and check.lost(previous.last_completed, [new.last_completed, *told]):
        rows.setdefault(_key(done := Work(previous.last_completed, _DONE)), done)
    sections = Sections(
        completed=tuple(rows.values()),
        decisions=tuple(lists["decisions"]),
        working_on=working,
        last_completed=new.last_completed or previous.last_completed,
        pending=tuple(lists["pending"]),
        errors=tuple(lists["errors"]),
        constraints=tuple(lists["constraints"]),
        context=tuple(lists["context"]),
        left_out=max(previous.left_out, new.left_out),
    )
    return Merged(sections, tuple(check.put_back), tuple(check.dropped))


class _Check:
    """Settles for each earlier item whether it may be gone."""

    def __init__(self, removed: Iterable[Removal]) -> None:
        self.put_back: list[str] = []
        self.dropped: list[Removal] = []
        self._reasons = [removal for removal in removed if removal.reason.strip()]

    def settle(
        self, items: Sequence[str], texts: Sequence[str], measure: Callable[[str, str], float] | None = None
    ) -> tuple[list[int | None], set[int]]:
        """The text that tells each item, if any; and which items neither a text nor a reason tells."""
        places = _paired(items, texts, measure or _telling)
        missing = [at for at, place in enumerate(places) if place is None]
        why = _paired([items[at] for at in missing], [removal.item for removal in self._reasons], _naming)
        lost = set()
        for at, reason in zip(missing, why, strict=True):
            if reason is None:
                lost.add(at)
                self.put_back.append(items[at])
            else:
                self.dropped.append(Removal(items[at], self._reasons[reason].reason))
        return places, lost

    def lost(self, item: str, texts: Sequence[str]) -> bool:
        return bool(item and self.settle([item], [*filter(None, texts)])[1])


def _in_place(before: Sequence[str], own: Sequence[str], places: Sequence[int | None], lost: set[int]) -> list[str]:
    """The answer's items, with each lost one after the one it used to follow."""
    items, after = list(own), 0
    for at, (item, place) in enumerate(zip(before, places, strict=True)):
        if at in lost:
            items.insert(after, item)
            after += 1
        elif place is not None and place < len(own):
            after = items.index(own[place]) + 1
    return items


def _rows(before: Iterable[Work], after: Iterable[Work], check: _Check) -> dict[str, Work]:
    """Rows by subject, older ones first. The newer row says what is so; what it leaves blank, the older one says."""
    old, new = _by_subject(before), _by_subject(after)
    alone = {row.text: row for key, row in old.items() if key not in new}

    def retelling(row: str, text: str) -> float:
        """Under another subject it is the same work only if the old subject is all there."""
        return _telling(row, text) if _words(alone[row].subject) <= _words(text) else 0.0

    _, lost = check.settle([*alone], [row.text for row in new.values()], retelling)
    kept = {_key(row) for at, row in enumerate(alone.values()) if at in lost}
    return _by_subject([*(row for key, row in old.items() if key in new or key in kept), *new.values()])


def _by_subject(rows: Iterable[Work]) -> dict[str, Work]:
    found: dict[str, Work] = {}
    for row in rows:
        if folded(row.text):
            old = found.get(_key(row), row)
            found[_key(row)] = Work(row.subject, row.action or old.action, row.description or old.description)
    return found


def _key(row: Work) -> str:
    return folded(row.subject).strip("`*_ ") or folded(row.text)


def _texts(sections: Sections, name: str) -> tuple[str, ...]:
    if name == "completed":
        return tuple(row.text for row in sections.completed)
    value = getattr(sections, name)
    return (value,) if isinstance(value, str) else value


def _distinct(items: Iterable[str]) -> list[str]:
    return [item for item in dict.fromkeys(map(folded, items)) if item]


def _paired(items: Sequence[str], texts: Sequence[str], measure: Callable[[str, str], float]) -> list[int | None]:
    """Which text tells which item. One that has all of its words may tell several, one that rewords it only one."""
    places: list[int | None] = [None] * len(items)
    partly = []
    for at, item in enumerate(items):
        scores = [(-2.0 if item == text else -measure(item, text), place) for place, text in enumerate(texts)]
        best, place = min(scores, default=(0.0, 0))
        if best <= -1:
            places[at] = place
        partly += [(score, at, place) for score, place in scores if -1 < score <= -ENOUGH]
    taken = set(places)
    for _, at, place in sorted(partly):
        if places[at] is None and place not in taken:
            places[at] = place
            taken.add(place)
    return places


def _telling(item: str, text: str) -> float:
    """The part of an item's words that a text has; none where what must be spelled exactly is spelled otherwise."""
    words, spelled, elsewhere = _words(item), _spelled(item), _spelled(text)
    if not words:
        return float(item in text)
    return 0.0 if elsewhere and not spelled <= elsewhere else len(words & _words(text)) / len(words)


def _naming(item: str, text: str) -> float:
    """A removal may name an item by a part of it, or with more words."""
    return max(_telling(item, text), _telling(text, item) if _words(text) else 0.0)


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    pairs = {run[at : at + 2] for run in _UNSPACED.findall(plain) for at in range(max(1, len(run) - 1))}
    return frozenset(pairs.union(_WORD.findall(_UNSPACED.sub(" ", plain))))


@lru_cache(maxsize=4096)
def _spelled(text: str) -> frozenset[str]:
    """Paths, numbers, names from code, single capitals inside a sentence."""
    tokens = _TOKEN.findall(_UNSPACED.sub(" ", unicodedata.normalize("NFKC", text)))
    named = [token.removeprefix("./").rstrip(".:-") for token in tokens]
    return frozenset(
        name for at, name in enumerate(named) if _SPELLED.search(name) or (at and len(name) == 1 and name.isupper())
    )


def bounded(sections: Sections, fits: Callable[[str], bool]) -> Sections:
    """As much of it as fits when written without its task; what has to go is counted, never silent."""
    if fits(write_body(sections)):
        return sections
    going = list(_going(sections))
    few, many = 0, len(going)
    while few + 1 < many:
        middle = (few + many) // 2
        if fits(write_body(_without(sections, going[:middle]))):
            many = middle
        else:
            few = middle
    return _without(sections, going[:many])


def _going(sections: Sections) -> Iterator[tuple[str, int]]:
    """What to let go, in this order: rows told again further down, older rows, … and last what is being worked on."""
    last = {_key(row): at for at, row in enumerate(sections.completed)}
    again = [at for at, row in enumerate(sections.completed) if last[_key(row)] != at]
    for at in (*again, *sorted(last.values())):
        yield "completed", at
    for name in ("errors", "context", "decisions", "last_completed"):
        yield from ((name, at) for at, text in enumerate(_texts(sections, name)) if text)
    yield from (("pending", at) for at in reversed(range(len(sections.pending))))
    yield from (("constraints", at) for at in range(len(sections.constraints)))
    if sections.working_on:
        yield "working_on", 0


def _without(sections: Sections, gone: Sequence[tuple[str, int]]) -> Sections:
    changed: dict[str, object] = {"left_out": sections.left_out + len(gone)}
    places = set(gone)
    for name in {name for name, _ in gone}:
        value = getattr(sections, name)
        kept = tuple(item for at, item in enumerate(value) if (name, at) not in places)
        changed[name] = "" if isinstance(value, str) else kept
    return msgspec.structs.replace(sections, **changed)
