"""Merges a structured answer with the previous summary, and restores items that the model dropped silently.

An item may be kept, reworded, moved to another section, or removed with a reason. Any other item is restored at its
old position. Items that do not fit are dropped in a fixed order and counted.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count

import msgspec

from .structured import CompletedWork, RemovedItem, SummarySections, one_line, render_body
from .structured_extra import ExtraSection, group_sections, title_key

MIN_COVERAGE = 0.6
"""Share of an item's words that a text must contain to count as the same item."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]+")
"""Scripts without spaces between words: compared by pairs of characters."""
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"[\w#@$~./\\:-]+")
_EXACT_TOKEN = re.compile(r"\d|_|\w[/\\]|[/\\]\w|\w\.\w|::|^[@#$~]\w|[a-z][A-Z]|^[A-Z]{2,}")
_LIST_SECTIONS = ("pending", "decisions", "constraints", "errors", "context")
_OTHER_SECTIONS = {
    "pending": ("completed", "last_completed", "working_on", "next_step", "errors"),
    "decisions": ("constraints", "context"),
    "constraints": ("decisions", "context"),
    "errors": ("context",),
    "context": ("decisions", "constraints"),
}
"""Other sections that an item may have moved to."""
_DONE = "Done"
ALSO_REMOVED = "Also removed"
"""Title of what the model removed, but no earlier summary had."""


class MergedSections(msgspec.Struct, frozen=True):
    """The merged summary, and what happened to earlier items."""

    sections: SummarySections
    restored: tuple[str, ...] = ()
    """Items that the answer dropped without a reason."""
    removed: tuple[RemovedItem, ...] = ()
    """Items that the answer removed with a reason."""
    replaced: str = ""
    """The previous next step, if the answer has another one."""


def merge_sections(previous: SummarySections, new: SummarySections) -> MergedSections:
    """Merges the answer's sections with the previous ones."""
    check = _RetentionCheck(new.removed)
    rows = _merge_rows(previous.completed, new.completed, check)
    lists = {name: _distinct(getattr(new, name)) for name in _LIST_SECTIONS}
    for name, current in lists.items():
        before = _distinct(getattr(previous, name))
        elsewhere = (text for other in _OTHER_SECTIONS[name] for text in _texts(new, other))
        lists[name] = _restore_in_order(before, current, *check.match(before, [*current, *elsewhere]))
    extra = _merge_extra(previous, new, check)
    done_texts = [row.text for row in rows.values()]
    progress = [new.working_on, new.last_completed, *done_texts, *lists["pending"], *new.errors]
    next_step, replaced = new.next_step, ""
    if new.next_step and not check.is_covered(previous.next_step, [new.next_step, *progress]):
        replaced = previous.next_step
    elif not new.next_step and check.is_lost(previous.next_step, progress):
        next_step = previous.next_step
    working = previous.working_on
    if not check.is_lost(working, [*progress, new.next_step]):
        working = new.working_on
    elif new.working_on:
        lists["pending"], working = _distinct([working, *lists["pending"]]), new.working_on
    if new.last_completed and check.is_lost(previous.last_completed, [new.last_completed, *done_texts]):
        rows.setdefault(_row_key(done := CompletedWork(previous.last_completed, _DONE)), done)
    sections = SummarySections(
        completed=tuple(rows.values()),
        decisions=tuple(lists["decisions"]),
        working_on=working,
        last_completed=new.last_completed or previous.last_completed,
        next_step=next_step,
        pending=tuple(lists["pending"]),
        errors=tuple(lists["errors"]),
        constraints=tuple(lists["constraints"]),
        context=tuple(lists["context"]),
        extra=extra,
        left_out=max(previous.left_out, new.left_out),
    )
    return MergedSections(sections, tuple(check.restored), tuple(check.removed), replaced)


def keep_unmatched_removals(previous: SummarySections, new: SummarySections) -> SummarySections:
    """Moves what the answer lists as removed, but no earlier item has, to a section of its own."""
    earlier = [text for name in SummarySections.__struct_fields__ for text in _texts(previous, name)]
    matched, unmatched = list[RemovedItem](), list[str]()
    for removal in new.removed:
        if any(_mutual_coverage(removal.item, text) >= MIN_COVERAGE for text in earlier):
            matched.append(removal)
        else:
            unmatched.append("- " + ": ".join(filter(None, (removal.item, removal.reason))))
    added = [*((section.title, section.items) for section in new.extra), (ALSO_REMOVED, unmatched)]
    return msgspec.structs.replace(new, extra=group_sections(added), removed=tuple(matched))


class _RetentionCheck:
    """Decides for each earlier item whether the answer still covers it or may drop it."""

    def __init__(self, removed: Iterable[RemovedItem]) -> None:
        self.restored: list[str] = []
        self.removed: list[RemovedItem] = []
        self._reasons = [removal for removal in removed if removal.reason.strip()]

    def match(
        self, items: Sequence[str], texts: Sequence[str], score: Callable[[str, str], float] | None = None
    ) -> tuple[list[int | None], set[int]]:
        """Returns the index of the text that covers each item, if any, and the items without a text or a reason."""
        places = _match_items(items, texts, score or _coverage)
        missing = [at for at, place in enumerate(places) if place is None]
        why = _match_items([items[at] for at in missing], [removal.item for removal in self._reasons], _mutual_coverage)
        lost = set()
        for at, reason in zip(missing, why, strict=True):
            if reason is None:
                lost.add(at)
                self.restored.append(items[at])
            else:
                self.removed.append(RemovedItem(items[at], self._reasons[reason].reason))
        return places, lost

    def is_lost(self, item: str, texts: Sequence[str]) -> bool:
        return bool(item and self.match([item], [*filter(None, texts)])[1])

    def is_covered(self, item: str, texts: Sequence[str]) -> bool:
        return not item or _match_items([item], [*filter(None, texts)], _coverage) != [None]


def _restore_in_order(
    before: Sequence[str], current: Sequence[str], places: Sequence[int | None], lost: set[int]
) -> list[str]:
    """Returns the answer's items, with each lost item after the one that it used to follow."""
    items, after = list(current), 0
    for at, (item, place) in enumerate(zip(before, places, strict=True)):
        if at in lost:
            items.insert(after, item)
            after += 1
        elif place is not None and place < len(current):
            after = items.index(current[place]) + 1
    return items


def _merge_extra(previous: SummarySections, new: SummarySections, check: _RetentionCheck) -> tuple[ExtraSection, ...]:
    """Updates sections by title, older ones first; an item may be reworded in its section or move whole to another."""
    written = {title_key(section.title): section for section in new.extra}
    everything = [text for name in SummarySections.__struct_fields__ for text in _texts(new, name)]
    merged = []
    for section in previous.extra:
        update = written.pop(title_key(section.title), ExtraSection(section.title, ()))

        def item_coverage(item: str, text: str, same: frozenset[str] = frozenset(update.items)) -> float:
            covered = _coverage(item, text)
            return covered if text in same or covered >= 1 else 0.0

        found = check.match(section.items, [*update.items, *everything], item_coverage)
        if items := _restore_in_order(section.items, update.items, *found):
            merged.append(ExtraSection(update.title, tuple(items)))
    return (*merged, *written.values())


def _merge_rows(
    before: Iterable[CompletedWork], after: Iterable[CompletedWork], check: _RetentionCheck
) -> dict[str, CompletedWork]:
    """Merges rows by subject, older ones first; blank cells of a newer row are filled from the older one."""
    old, new = _by_subject(before), _by_subject(after)
    alone = {row.text: row for key, row in old.items() if key not in new}

    def row_coverage(row: str, text: str) -> float:
        """Requires all words of the old subject, since a row with another subject may be other work."""
        return _coverage(row, text) if _words(alone[row].subject) <= _words(text) else 0.0

    _, lost = check.match([*alone], [row.text for row in new.values()], row_coverage)
    kept = {_row_key(row) for at, row in enumerate(alone.values()) if at in lost}
    return _by_subject([*(row for key, row in old.items() if key in new or key in kept), *new.values()])


def _by_subject(rows: Iterable[CompletedWork]) -> dict[str, CompletedWork]:
    found: dict[str, CompletedWork] = {}
    for row in rows:
        if one_line(row.text):
            old = found.get(_row_key(row), row)
            found[_row_key(row)] = CompletedWork(
                row.subject, row.action or old.action, row.description or old.description
            )
    return found


def _row_key(row: CompletedWork) -> str:
    return one_line(row.subject).strip("`*_ ") or one_line(row.text)


def _texts(sections: SummarySections, name: str) -> tuple[str, ...]:
    value = getattr(sections, name)
    if name == "completed":
        return tuple(row.text for row in value)
    if name == "extra":
        return tuple(item for section in value for item in section.items)
    if name in ("removed", "left_out"):
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _distinct(items: Iterable[str]) -> list[str]:
    return [item for item in dict.fromkeys(map(one_line, items)) if item]


def _match_items(items: Sequence[str], texts: Sequence[str], score: Callable[[str, str], float]) -> list[int | None]:
    """Assigns items to texts: a text with all words of an item may match several items, a partial match only one."""
    places: list[int | None] = [None] * len(items)
    partly = []
    for at, item in enumerate(items):
        scores = [(-2.0 if item == text else -score(item, text), place) for place, text in enumerate(texts)]
        best, place = min(scores, default=(0.0, 0))
        if best <= -1:
            places[at] = place
        partly += [(score, at, place) for score, place in scores if -1 < score <= -MIN_COVERAGE]
    taken = set(places)
    for _, at, place in sorted(partly):
        if places[at] is None and place not in taken:
            places[at] = place
            taken.add(place)
    return places


def _coverage(item: str, text: str) -> float:
    """Returns the share of an item's words that a text contains; 0 if the text spells exact tokens differently."""
    words, spelled, elsewhere = _words(item), _exact_tokens(item), _exact_tokens(text)
    if not words:
        return float(item in text)
    return 0.0 if elsewhere and not spelled <= elsewhere else len(words & _words(text)) / len(words)


def _mutual_coverage(item: str, text: str) -> float:
    """Returns coverage in either direction: a removal may name a part of an item, or use more words."""
    return max(_coverage(item, text), _coverage(text, item) if _words(text) else 0.0)


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    pairs = {run[at : at + 2] for run in _UNSPACED.findall(plain) for at in range(max(1, len(run) - 1))}
    return frozenset(pairs.union(_WORD.findall(_UNSPACED.sub(" ", plain))))


@lru_cache(maxsize=4096)
def _exact_tokens(text: str) -> frozenset[str]:
    """Returns tokens that must match exactly: paths, numbers, identifiers, single capitals inside a sentence."""
    tokens = _TOKEN.findall(_UNSPACED.sub(" ", unicodedata.normalize("NFKC", text)))
    named = [token.removeprefix("./").rstrip(".:-") for token in tokens]
    return frozenset(
        name for at, name in enumerate(named) if _EXACT_TOKEN.search(name) or (at and len(name) == 1 and name.isupper())
    )


def trim_to_fit(sections: SummarySections, fits: Callable[[str], bool]) -> SummarySections:
    """Drops as few items as possible until the body fits, and counts them in `left_out`."""
    if fits(render_body(sections)):
        return sections
    going = list(_drop_order(sections))
    few, many = 0, len(going)
    while few + 1 < many:
        middle = (few + many) // 2
        if fits(render_body(_drop_items(sections, going[:middle]))):
            many = middle
        else:
            few = middle
    return _drop_items(sections, going[:many])


def dropped_items(before: SummarySections, after: SummarySections) -> list[str]:
    """Returns the items that `trim_to_fit` dropped, those of an added section with its title."""
    return list((Counter(_all_items(before)) - Counter(_all_items(after))).elements())


def _all_items(sections: SummarySections) -> Iterator[str]:
    for name in SummarySections.__struct_fields__:
        if name != "extra":
            yield from filter(str.strip, _texts(sections, name))
    yield from (f"{section.title}: {item}" for section in sections.extra for item in section.items)


def _drop_order(sections: SummarySections) -> Iterator[tuple[str, int]]:
    """Yields items in the order in which they are dropped: repeated rows, older rows, …, and last the current work."""
    last = {_row_key(row): at for at, row in enumerate(sections.completed)}
    again = [at for at, row in enumerate(sections.completed) if last[_row_key(row)] != at]
    for at in (*again, *sorted(last.values())):
        yield "completed", at
    for name in ("errors", "extra", "context", "decisions", "last_completed"):
        yield from ((name, at) for at, text in enumerate(_texts(sections, name)) if text)
    yield from (("pending", at) for at in reversed(range(len(sections.pending))))
    yield from (("constraints", at) for at in range(len(sections.constraints)))
    yield from ((name, 0) for name in ("next_step", "working_on") if getattr(sections, name))


def _drop_items(sections: SummarySections, gone: Sequence[tuple[str, int]]) -> SummarySections:
    changed: dict[str, object] = {"left_out": sections.left_out + len(gone)}
    places = set(gone)
    for name in {name for name, _ in gone}:
        value = getattr(sections, name)
        if name == "extra":
            changed[name] = _keep_items(value, {at for section, at in places if section == "extra"})
        else:
            kept = tuple(item for at, item in enumerate(value) if (name, at) not in places)
            changed[name] = "" if isinstance(value, str) else kept
    return msgspec.structs.replace(sections, **changed)


def _keep_items(sections: Iterable[ExtraSection], gone: set[int]) -> tuple[ExtraSection, ...]:
    """Returns the sections without items at these positions, counted over all sections, and without empty sections."""
    at = count()
    kept = ((section.title, tuple(item for item in section.items if next(at) not in gone)) for section in sections)
    return tuple(ExtraSection(title, items) for title, items in kept if items)
