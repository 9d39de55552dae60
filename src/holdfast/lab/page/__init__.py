"""One page with plots that a person can open offline: nothing in it comes from anywhere else."""

from __future__ import annotations

from importlib import resources

import msgspec

from ..quantities import QUANTITIES
from ..report import Report

MARK = "<!doctype html><!-- holdfast lab -->"
_PARTS = {"style": "page.css", "charts": "charts.js", "script": "page.js"}


def page_of(report: Report) -> str:
    """The template with style, script and data put in."""
    folder = resources.files(__package__)
    page = MARK + "\n" + folder.joinpath("page.html").read_text(encoding="utf-8")
    for name, file in _PARTS.items():
        page = page.replace(f"{{{{{name}}}}}", folder.joinpath(file).read_text(encoding="utf-8"))
    return page.replace("{{data}}", _data(report))


def _data(report: Report) -> str:
    """JSON inside a script element: no text of a session may close the element."""
    quantities = [quantity._asdict() for quantity in QUANTITIES]
    encoded = msgspec.json.encode({"report": report, "quantities": quantities}).decode()
    return encoded.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
