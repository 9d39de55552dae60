"""Self-contained HTML page with plots, for offline use."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import msgspec

from ...errors import InvalidInput
from ...transcripts.files import read_session_bytes
from ..report import LabReport
from ..results import QUANTITIES
from ..surprise import HORIZONS
from ..tuning import TuningAdvice

PAGE_MARKER = "<!doctype html><!-- holdfast lab -->"
_PARTS = {"style": "page.css", "charts": "charts.js", "script": "page.js"}


def render_page(report: LabReport) -> str:
    """Fills the template with style, script and data."""
    folder = resources.files(__package__)
    page = PAGE_MARKER + "\n" + folder.joinpath("page.html").read_text(encoding="utf-8")
    for name, file in _PARTS.items():
        page = page.replace(f"{{{{{name}}}}}", folder.joinpath(file).read_text(encoding="utf-8"))
    return page.replace("{{data}}", _data(report))


def _data(report: LabReport) -> str:
    """Escapes JSON for a script element, so that no session text can close it."""
    unit = report.settings.surprise_unit
    quantities = [quantity._asdict() | {"unit": unit if quantity.key in HORIZONS else ""} for quantity in QUANTITIES]
    encoded = msgspec.json.encode({"report": report, "quantities": quantities}).decode()
    return encoded.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


_LAB_OBJECTS = (LabReport.__struct_fields__, TuningAdvice.__struct_fields__)


def check_replaceable(file: Path) -> None:
    """Raises InvalidInput for an existing file that the lab did not write, unless it is empty or a pipe."""
    if file.is_file() and file.stat().st_size and not is_lab_output(file):
        raise InvalidInput(f"{file} already exists and was not written by the lab: name another file.")


def is_lab_output(file: Path) -> bool:
    """True for a lab page or a JSON object with exactly the lab's keys, compressed or not."""
    try:
        data = read_session_bytes(file)
        return (
            data.startswith(PAGE_MARKER.encode())
            or tuple(msgspec.json.decode(data, type=dict[str, msgspec.Raw])) in _LAB_OBJECTS
        )
    except (InvalidInput, ValueError, RecursionError):
        return False
