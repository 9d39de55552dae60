"""Merges a structured answer with the previous summary by the items' ids, and trims a summary to its room.

The model is given the previous items with their ids. An item that the answer names by its id is updated or moved; one
that it repeats, with or without more words, is the same item; one that it does not mention is kept, unless the answer
removes it with a reason.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count

import msgspec
from msgspec.structs import replace

from .structured import CompletedWork, ExtraSection, RemovedItem, SummarySections, one_line, render_body
from .structured_parse import group_sections, title_key

_ITEM_ID = re.compile(r"\[([a-z]\d{1,4})\](?:\s+|$)")
_WORD = re.compile(r"\w+")
_LIST_SECTIONS = ("pending", "decisions", "constraints", "errors", "context")
_PROGRESS = ("working_on", "last_completed", "next_step", "completed", "errors")
"""Where an item of open work may have gone in other words."""
_ELSEWHERE = {
    "decisions": ("constraints", "context"),
    "constraints": ("decisions", "context"),
    "errors": ("context",),
    "context": ("decisions", "constraints"),
    "extra": SummarySections.__struct_fields__,
}
"""Other sections in which the answer may repeat an item without its id."""
_WORK_SHARE = 0.6
"""Share of the words of open work that a report on it repeats: it is worded anew when it is done."""
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


def split_id(text: str) -> tuple[str, str]:
    """Splits an item into the id in brackets that it begins with, if any, and its text."""
    found = _ITEM_ID.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)


def named_item(text: str, known: Mapping[str, str]) -> str:
    """Returns the item that a removal names, by its id or in its words."""
    id, item = split_id(text)
    return known.get(id) or known.get(text) or item or text


def with_ids(sections: SummarySections) -> SummarySections:
    """Returns the sections as the model is given them: each item begins with its id, which is its place."""
    lists = {name: tuple(f"[{id}] {text}" for id, text in _ids(sections, name)) for name in _LIST_SECTIONS}
    rows = zip(_ids(sections, "completed"), sections.completed, strict=True)
    return replace(
        sections, completed=tuple(replace(row, subject=f"[{id}] {row.subject}") for (id, _), row in rows), **lists
    )


def _ids(sections: SummarySections, name: str) -> list[tuple[str, str]]:
    initial = {"completed": "w", "context": "x"}.get(name, name[0])
    return [(f"{initial}{place}", text) for place, text in enumerate(map(one_line, _texts(sections, name)), 1)]


def merge_sections(previous: SummarySections, new: SummarySections) -> MergedSections:
    """Merges the answer's sections with the previous ones."""
    merge = _Merge(previous, new)
    lists = {name: merge.items(name) for name in _LIST_SECTIONS}
    rows, extra, new = merge.rows(), merge.extra(), merge.new
    next_step, replaced = new.next_step, ""
    if not new.next_step and merge.is_lost(previous.next_step):
        next_step = previous.next_step
    elif new.next_step and not merge.is_covered(previous.next_step, lists["pending"]):
        replaced = previous.next_step
    working = new.working_on
    if merge.is_lost(previous.working_on, lists["pending"]):
        if new.working_on:
            lists["pending"] = [one_line(previous.working_on), *lists["pending"]]
        working = working or previous.working_on
    if new.last_completed and merge.is_lost(previous.last_completed, [row.text for row in rows]):
        rows.append(CompletedWork(previous.last_completed, _DONE))
    sections = replace(
        new,
        completed=tuple(rows),
        working_on=working,
        last_completed=new.last_completed or previous.last_completed,
        next_step=next_step,
        extra=extra,
        removed=(),
        left_out=max(previous.left_out, new.left_out),
        **{name: tuple(items) for name, items in lists.items()},
    )
    return MergedSections(sections, tuple(merge.restored), tuple(merge.removed), replaced)


class _Merge:
    """Decides for each previous item whether the answer has it, removes it, or has forgotten it."""

    def __init__(self, previous: SummarySections, answer: SummarySections) -> None:
        self.previous, self.restored, self.removed = previous, list[str](), list[RemovedItem]()
        self._known = {id: text for name in ("completed", *_LIST_SECTIONS) for id, text in _ids(previous, name)}
        self._places: dict[str, tuple[str, int]] = {}
        """Section and index of each item that the answer names by its id."""
        lists = {name: tuple(self._named(name, getattr(answer, name))) for name in _LIST_SECTIONS}
        rows = tuple(self._named_rows(answer.completed))
        self.new = replace(answer, completed=rows, **lists)
        self._progress = [text for name in _PROGRESS for text in _texts(self.new, name)]
        reasons = [one for one in answer.removed if one.reason.strip()]
        self._reasons = [(named_item(one.item, self._known), one.reason) for one in reasons]

    def _named(self, name: str, items: Iterable[str]) -> Iterator[str]:
        """Yields distinct items without their ids; an id alone repeats the item."""
        seen: dict[str, None] = {}
        for item in items:
            id, text = split_id(item)
            if text := one_line(text) or self._known.get(id, one_line(item)):
                if id in self._known and text not in seen:
                    self._places.setdefault(id, (name, len(seen)))
                seen[text] = None
        yield from seen

    def _named_rows(self, rows: Iterable[CompletedWork]) -> Iterator[CompletedWork]:
        known = dict(zip((id for id, _ in _ids(self.previous, "completed")), self.previous.completed, strict=True))
        for place, row in enumerate(rows):
            id, subject = split_id(row.subject)
            if id in self._known:
                self._places.setdefault(id, ("completed", place))
            yield known[id] if id in known and not subject else replace(row, subject=subject or row.subject)

    def items(self, name: str) -> list[str]:
        """Returns the answer's items of a section, with each forgotten one after the one that it used to follow."""
        return self._restore(_ids(self.previous, name), getattr(self.new, name), name)

    def extra(self) -> tuple[ExtraSection, ...]:
        """Returns the added sections by title, older ones first."""
        written = {title_key(section.title): section for section in self.new.extra}
        merged = []
        for section in self.previous.extra:
            update = written.pop(title_key(section.title), ExtraSection(section.title, ()))
            items = self._restore([("", item) for item in section.items], update.items, "extra")
            merged += [ExtraSection(update.title, tuple(items))] if items else []
        return (*merged, *written.values())

    def rows(self) -> list[CompletedWork]:
        """Returns rows by subject, older ones first; blank cells of a newer row are filled from the older one."""
        named = {row_key(row): row for row in self.new.completed}
        old: dict[str, CompletedWork] = {}
        for (id, text), row in zip(_ids(self.previous, "completed"), self.previous.completed, strict=True):
            name, place = self._places.get(id, ("", -1))
            update = self.new.completed[place] if name == "completed" else named.get(row_key(row))
            if update is not None:
                old[row_key(update)] = _filled(update, old.get(row_key(update), row))
            elif one_line(text) and not name and not self._repeats(row) and not self._is_removed(text):
                self.restored.append(text)
                old[row_key(row)] = _filled(row, old.get(row_key(row), row))
        for row in self.new.completed:
            if one_line(row.text):
                old[row_key(row)] = _filled(row, old.get(row_key(row), row))
        return list(old.values())

    def is_covered(self, item: str, more: Iterable[str] = ()) -> bool:
        """Returns whether the answer reports on this work, in whatever words."""
        return not one_line(item) or any(_contains(text, item, _WORK_SHARE) for text in [*self._progress, *more])

    def is_lost(self, item: str, more: Iterable[str] = ()) -> bool:
        """Returns whether the answer neither reports on this work nor removes it, and records that it is restored."""
        if self.is_covered(item, more) or self._is_removed(item):
            return False
        self.restored.append(item)
        return True

    def _restore(self, before: Sequence[tuple[str, str]], current: Sequence[str], name: str) -> list[str]:
        items, after = list(current), 0
        for id, item in before:
            section, place = self._places.get(id, ("", -1))
            if not one_line(item) or item in items:
                after = items.index(item) + 1 if item in items else after
            elif section:
                after = items.index(current[place]) + 1 if section == name else after
            elif (same := next((text for text in current if _contains(text, item)), None)) is not None:
                after = items.index(same) + 1
            elif self._is_elsewhere(item, name) or self._is_removed(item):
                continue
            else:
                self.restored.append(item)
                items.insert(after, item)
                after += 1
        return items

    def _is_elsewhere(self, item: str, name: str) -> bool:
        if name == "pending":
            return self.is_covered(item)
        return any(_contains(text, item) for other in _ELSEWHERE[name] for text in _texts(self.new, other))

    def _is_removed(self, item: str) -> bool:
        """Returns whether the answer removes this item, and records why; each reason removes one item."""
        same = [named for named in self._reasons if named[0] == one_line(item)]
        like = [named for named in self._reasons if named[0] not in self._known.values() and _alike(item, named[0])]
        for named in (same or like)[:1]:
            self._reasons.remove(named)
            self.removed.append(RemovedItem(item, named[1]))
        return bool(same or like)

    def _repeats(self, row: CompletedWork) -> bool:
        return any(_contains(text.text, row.text) for text in self.new.completed)


def keep_unmatched_removals(previous: SummarySections, new: SummarySections) -> SummarySections:
    """Moves what the answer lists as removed, but no earlier item has, to a section of its own."""
    earlier = {id: text for name in ("completed", *_LIST_SECTIONS) for id, text in _ids(previous, name)}
    texts = [text for name in SummarySections.__struct_fields__ for text in _texts(previous, name) if text.strip()]
    matched, unmatched = list[RemovedItem](), list[str]()
    for removal in new.removed:
        item = named_item(removal.item, earlier)
        if any(_alike(text, item) for text in texts):
            matched.append(removal)
        else:
            unmatched.append("- " + ": ".join(filter(None, (item, removal.reason))))
    added = [*((section.title, section.items) for section in new.extra), (ALSO_REMOVED, unmatched)]
    return replace(new, extra=group_sections(added), removed=tuple(matched))


def row_key(row: CompletedWork) -> str:
    return one_line(row.subject).strip("`*_ ") or one_line(row.text)


def _filled(row: CompletedWork, older: CompletedWork) -> CompletedWork:
    return CompletedWork(row.subject, row.action or older.action, row.description or older.description)


def _texts(sections: SummarySections, name: str) -> tuple[str, ...]:
    value = getattr(sections, name)
    if name == "completed":
        return tuple(row.text for row in value)
    if name == "extra":
        return tuple(item for section in value for item in section.items)
    if name in ("removed", "left_out"):
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _contains(text: str, item: str, share: float = 1.0) -> bool:
    """Returns whether a text has this share of an item's words, and all of them with a digit."""
    words, found = _words(item), _words(text)
    if not words:
        return item.strip() in text
    return len(words & found) >= share * len(words) and all(word in found for word in words if not word.isalpha())


def _alike(item: str, text: str) -> bool:
    """Returns whether a removal may name this item: by a part of its words, or with more words."""
    return bool(text) and (_contains(item, text) or _contains(text, item))


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


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
    last = {row_key(row): at for at, row in enumerate(sections.completed)}
    again = [at for at, row in enumerate(sections.completed) if last[row_key(row)] != at]
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
            at = count()
            kept = [(one.title, tuple(item for item in one.items if (name, next(at)) not in places)) for one in value]
            changed[name] = tuple(ExtraSection(title, items) for title, items in kept if items)
        else:
            left = tuple(item for at, item in enumerate(value) if (name, at) not in places)
            changed[name] = "" if isinstance(value, str) else left
    return replace(sections, **changed)
