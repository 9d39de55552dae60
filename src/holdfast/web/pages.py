"""The pages, rendered on the server as far as they do not move; scripts fill in lists, charts and details."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Sized
from typing import Any

import msgspec

from ..compaction import PRESETS, preset
from ..messages import to_json
from .addresses import encode_id, session_path
from .html import Child, Html, document, join, link, tag, when
from .overview import Overview

_TABS = (("", "Events"), ("at", "What the model saw"), ("try", "What if"), ("cost", "Cost"))


def sessions_page() -> Html:
    """The frame of the list; its script reads the sessions, those first that overflow first."""
    return document(
        "Sessions",
        tag("h1", "Sessions"),
        tag("p", "Reading the sessions…", id="state", class_="lead"),
        tag(
            "div",
            tag("input", id="find", type="search", placeholder="Title or folder", aria_label="Title or folder"),
            tag("span", id="filters", class_="controls"),
            class_="controls",
        ),
        tag("div", id="sessions", aria_busy="true"),
        tag("div", id="status", role="status", aria_live="polite"),
        script="sessions.js",
    )


def search_page(
    query: str, hits: Sequence[dict[str, Any]], problem: str, more: str | None, everywhere: str | None
) -> Html:
    """Search over every event, archived ones too, grouped by session; `everywhere` leads from one to all of them."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for hit in hits:
        groups.setdefault(hit["path"], []).append(hit)
    found = [
        tag(
            "section",
            tag("h2", link(own[0]["title"] or path, path), " ", tag("span", _count(own, "event"), class_="quiet")),
            tag("ol", *(_hit(hit, query) for hit in own), class_="hits"),
        )
        for path, own in groups.items()
    ]
    many = "the first " if more else ""
    counts = f"{many}{_count(hits, 'event')} in {_count(groups, 'session')}"
    return document(
        "Search",
        tag("h1", f"Search: {query}" if query else "Search"),
        tag("p", counts if hits else problem or "Nothing was found.", class_="lead") if query else None,
        tag("p", "In one session. ", link("Search all sessions", everywhere), class_="quiet") if everywhere else None,
        *(found if query else [tag("p", "Words that must all occur, in any order.", class_="lead")]),
        tag("p", link("More", more), class_="more") if more else None,
        script="links.js",
    )


def _count(things: Sized, name: str) -> str:
    return f"{len(things):,} {name}{'s' * (len(things) != 1)}"


def _hit(hit: dict[str, Any], query: str) -> Html:
    return tag(
        "li",
        link(f"#{hit['seq']}", f"{hit['path']}?e={hit['seq']}", class_="seq"),
        tag("span", hit["role"], class_="role"),
        tag("span", *_highlight(hit["snippet"], query), class_="archived" if hit["archived"] else None),
        tag("span", when(hit["time"]), " archived" if hit["archived"] else "", class_="quiet"),
    )


def _highlight(text: str, query: str) -> Iterator[Child]:
    """Yields a text with the words of a query marked."""
    words = sorted(filter(None, re.split(r"[\s\"]+", query)), key=len, reverse=True)
    pattern = re.compile(f"({'|'.join(map(re.escape, words))})" if words else r"(?!)", re.IGNORECASE)
    for number, piece in enumerate(pattern.split(text)):
        yield tag("mark", piece) if number % 2 else piece


def _frame(
    one: Overview, current: str, title: str, *body: Child, script: str, read_only: bool, **data: str | int
) -> Html:
    """Returns a page of one session: its name, its tabs, and the content."""
    tabs = [link(name, _tab_path(one, path), aria_current="page" if path == current else None) for path, name in _TABS]
    parent = (
        join(" · fork of ", link(f"#{one.parent_seq}", f"{session_path(one.parent)}?e={one.parent_seq}"))
        if one.parent
        else None
    )
    about = " · ".join(filter(None, (one.folder, one.tool, one.model, one.owner)))
    return document(
        f"{title} · {one.title}" if title else one.title,
        tag(
            "div",
            tag("h1", one.title, title=one.title),
            tag("p", about, parent, class_="quiet") if about or parent else None,
            class_="title",
        ),
        tag("nav", *tabs, aria_label="Session"),
        *body,
        tag("div", id="status", role="status", aria_live="polite"),
        script=script,
        search_in=encode_id(one.id),
        data={
            "data_session": encode_id(one.id),
            "data_version": one.version,
            "data_readonly": "1" if read_only else None,
            **{f"data_{name}": value for name, value in data.items()},
        },
    )


def _tab_path(one: Overview, path: str) -> str:
    rest = (path, one.version) if path == "at" else (path,) if path else ()
    return session_path(one.id, *rest)


def session_page(one: Overview, *, read_only: bool) -> Html:
    """Where a session is, the strip of its size, and its events."""
    return _frame(
        one,
        "",
        "",
        tag("p", one.headline, class_="lead", id="state"),
        tag("div", id="gauge"),
        tag("div", id="strip", class_="strip"),
        tag("p", one.last_sentence, id="last"),
        _split("Events"),
        script="session.js",
        read_only=read_only,
        overview=to_json(msgspec.to_builtins(one)),
    )


def _split(label: str) -> Html:
    return tag(
        "div",
        tag("div", id="list", class_="list", tabindex="0", role="listbox", aria_label=label),
        tag("section", id="detail", class_="detail", aria_label="Detail", tabindex="0"),
        class_="split",
    )


def context_page(one: Overview, seq: int, vs: int | None, *, read_only: bool) -> Html:
    """What the model saw at an event, as messages and as wire JSON; compared with another event."""
    return _frame(
        one,
        "at",
        f"At #{seq}",
        tag("p", "What the model saw after ", tag("strong", f"#{seq}"), id="state", class_="lead"),
        tag(
            "form",
            tag("label", "At ", tag("input", id="at", name="at", type="number", min=1, max=one.version, value=seq)),
            tag(
                "label",
                "compared with ",
                tag("input", id="vs", name="vs", type="number", min=1, max=one.version, value=vs),
            ),
            tag("button", "Show", type="submit"),
            tag("button", "Wire JSON", type="button", id="wire", aria_pressed="false"),
            class_="controls",
            id="travel",
        ),
        _split("Messages"),
        script="context.js",
        read_only=read_only,
        at=seq,
        **({"vs": vs} if vs else {}),
    )


def compaction_page(one: Overview, seq: int, *, read_only: bool) -> Html:
    """What was there before a compaction, the page of notes, and what stayed."""
    return _frame(
        one,
        "c",
        f"Compaction #{seq}",
        tag("p", "Compaction ", tag("strong", f"#{seq}"), " is being explained…", id="state", class_="lead"),
        tag("p", id="verdict", class_="quiet"),
        tag("div", id="cut", class_="controls"),
        tag(
            "div",
            _column("Before", "before", "✓ kept, ~ shortened, – archived, “ quoted"),
            _column("Notes shown instead", "notes"),
            tag(
                "div",
                tag("h2", "Why"),
                tag("section", id="detail", class_="detail", aria_label="Why", tabindex="0"),
            ),
            class_="split three",
        ),
        script="compaction.js",
        read_only=read_only,
        compaction=seq,
    )


def _column(title: str, name: str, about: str = "") -> Html:
    return tag(
        "div",
        tag("h2", title, tag("span", f" {about}", class_="about quiet") if about else None),
        tag("div", id=name, class_="list", tabindex="0", role="listbox", aria_label=title),
    )


def try_page(one: Overview, *, read_only: bool) -> Html:
    """Two ways to compact, side by side at the same moment; nothing is written."""
    choices = [(name, f"strategy:{name}", about) for name, about in _STRATEGIES.items()]
    choices += [(f"preset {name}", f"preset:{name}", f"Keeps {preset(name).figures['keeps']}") for name in PRESETS]
    budget = max(2_000, 0 if one.size is None else one.size.tokens // 500 * 500)
    sides = ((1, "A", "strategy:ledger", budget), (2, "B", "strategy:ledger", budget // 1_000 * 500))
    return _frame(
        one,
        "try",
        "What if",
        tag("p", "What two compactions would keep, and what they would cost. Nothing is written.", class_="lead"),
        tag(
            "form",
            tag("label", "At event ", tag("input", id="at", type="number", min=1, max=one.version, value=one.version)),
            class_="controls",
            id="settings",
        ),
        tag(
            "div",
            *(
                tag(
                    "section",
                    tag(
                        "div",
                        tag("label", f"{side} ", _select(f"choice{number}", choices, picked)),
                        tag(
                            "label",
                            "with a budget of ",
                            tag("input", id=f"budget{number}", type="number", min=1, step=500, value=tokens),
                        ),
                        class_="controls",
                    ),
                    tag("p", id=f"about{number}", class_="quiet"),
                    tag("div", id=f"progress{number}", class_="quiet working"),
                    tag("dl", id=f"figures{number}", class_="figures"),
                    tag("div", id="lost") if number == 2 else None,
                    tag(
                        "pre",
                        id=f"page{number}",
                        class_="page",
                        tabindex="0",
                        role="region",
                        aria_label=f"Notes of {side}",
                    ),
                )
                for number, side, picked, tokens in sides
            ),
            class_="pair",
        ),
        None
        if read_only
        else tag(
            "form",
            tag("label", "Instructions ", tag("input", id="instructions", type="text", maxlength=2_000)),
            tag("button", "Compact now with A", type="submit", disabled=True),
            tag("span", id="refused", class_="quiet"),
            class_="controls",
            id="commit",
        ),
        script="try.js",
        read_only=read_only,
    )


_STRATEGIES = {
    "ledger": "Notes made without a model, and the newest steps",
    "tokens": "The newest messages that fit into half of the budget",
    "sliding": "The newest messages, by number",
    "turns": "The newest turns of the user",
    "last": "The newest messages, with the calls of their results",
    "prune": "All messages; old tool results are cleared",
    "truncate": "All messages; long results are cut in their middle",
    "fraction": "The newest share of the messages",
}
"""What each strategy keeps; shown beside its name."""


def _select(name: str, choices: Sequence[tuple[str, str, str]], picked: str) -> Html:
    options = (
        tag("option", text, value=value, selected=value == picked, data_about=about) for text, value, about in choices
    )
    return tag("select", *options, id=name)


def cost_page(one: Overview, *, read_only: bool) -> Html:
    """Tokens now and billed in total, the cache per call, and what each compaction cost and saved."""
    return _frame(
        one,
        "cost",
        "Cost",
        tag("p", id="state", class_="lead"),
        tag("dl", id="totals", class_="figures"),
        tag("h2", "Prompt tokens per call"),
        tag("div", id="calls", class_="strip"),
        tag("h2", "Compactions"),
        tag("div", id="compactions"),
        script="cost.js",
        read_only=read_only,
    )


def login_page() -> Html:
    """Asks for a key of the key file."""
    return document(
        "Holdfast",
        tag("h1", "Key"),
        tag(
            "form",
            tag("input", type="text", name="username", autocomplete="username", value="holdfast", hidden=True),
            tag("label", "Your key ", tag("input", id="key", type="password", autocomplete="current-password")),
            tag("button", "Open", type="submit"),
            class_="controls",
            id="login",
        ),
        tag("div", id="status", role="status", aria_live="polite"),
        script="login.js",
        bare=True,
    )
