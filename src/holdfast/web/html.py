"""HTML built from elements: every text is escaped, so that nothing of a session becomes markup."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from .assets import asset_path

_VOID = frozenset(("meta", "link", "input", "br"))


class Html(str):
    """Markup that is safe to send as it is."""


Child = str | None
Attribute = str | int | bool | None


def tag(element: str, /, *children: Child, **attributes: Attribute) -> Html:
    """Returns an element; text children and attributes are escaped, `class_` is class, `data_x` is data-x."""
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    return Html(f"<{element}{written}>" if element in _VOID else f"<{element}{written}>{join(*children)}</{element}>")


def join(*children: Child) -> Html:
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children if child))


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def link(text: Child, href: str, **attributes: Attribute) -> Html:
    return tag("a", text, href=href, **attributes)


def when(time: str) -> Html:
    return tag("time", time[:16].replace("T", " "), datetime=time) if time else Html("")


_SECTIONS = {"sessions": ("/", "Sessions"), "lab": ("/lab", "Lab"), "jobs": ("/jobs", "Jobs")}


def document(
    title: str,
    *body: Child,
    script: str = "",
    bare: bool = False,
    section: str = "sessions",
    search_in: str | None = None,
    data: Mapping[str, Attribute] | None = None,
) -> Html:
    """Returns a whole page in the common frame.

    `bare` leaves out navigation and search, `search_in` limits the search to a session.
    """
    sections = [
        link(name, path, aria_current="true" if key == section else None) for key, (path, name) in _SECTIONS.items()
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href=asset_path("uPlot.min.css")),
        tag("link", rel="stylesheet", href=asset_path("style.css")),
        tag("script", type="module", src=asset_path(script)) if script else None,
    )
    header = tag(
        "header",
        link("Holdfast", "/", class_="brand"),
        None if bare else tag("nav", *sections, aria_label="Sections"),
        None
        if bare
        else tag(
            "form",
            tag("label", "Search", for_="search", class_="unseen"),
            tag("input", id="search", name="q", type="search", placeholder="Search  /", autocomplete="off"),
            tag("input", type="hidden", name="session", value=search_in) if search_in else None,
            action="/search",
            role="search",
        ),
    )
    whole = tag("html", head, tag("body", header, tag("main", *body, id="main"), **(data or {})), lang="en")
    return Html(f"<!doctype html>{whole}")
