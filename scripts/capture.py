"""Regenerate the picture of the README and the command output in docs/cli.md from real runs.

Run it after a change of command output: `python scripts/capture.py`. With `--check` nothing is written, and the exit
code is 1 if anything would change.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import holdfast.cli.compaction
import holdfast.cli.console
import holdfast.cli.inspect
import holdfast.cli.lab
import holdfast.cli.presets
import holdfast.cli.search
from holdfast.cli import main
from holdfast.models import ModelCall, Reply, ScriptedModel
from holdfast.tokens import Tokenizer, Usage

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURE, PAGE = DOCS / "compaction.svg", DOCS / "cli.md"
COMMAND = "holdfast compact example"
COLUMNS = 80
_BLOCK = re.compile(
    r"(?<=<!-- \$ )(?P<command>[^\n]*)(?P<middle> -->\n```text\n).*?(?=^```$)", re.DOTALL | re.MULTILINE
)
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_NEWLINES = re.compile(r"<text [^>]*>\n</text>")
_INDENTED = re.compile(r'x="([\d.]+)"( y="[\d.]+") textLength="([\d.]+)"([^>]*>)((?:&#160;)+)')
_CELL = 12.2
"""Width of a character in rich's SVG export."""
THEME = TerminalTheme(
    (24, 26, 31),
    (208, 212, 219),
    [
        (40, 44, 52),
        (224, 108, 117),
        (152, 195, 121),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (208, 212, 219),
    ],
    [
        (127, 132, 142),
        (240, 130, 138),
        (124, 220, 160),
        (240, 210, 150),
        (130, 195, 250),
        (160, 140, 250),
        (120, 210, 220),
        (240, 242, 245),
    ],
)


SUMMARY = """\
### Completed Work
| File/Component | Action | Description |
| --- | --- | --- |
| tidebook/bookings.py | edited | HBR-212 one check and insert in Bookings.hold; HBR-220 holds; HBR-223 refunds |
| tidebook/times.py | written | HBR-215 zoneinfo, days of 23 and 25 hours |
| tidebook/api.py | edited | HBR-224 GET and POST /bookings/{ref}; HBR-230 secret compared in constant time |
| tidebook/notify.py | edited | HBR-226 the same message is queued once; HBR-229 the test that was red at night |
| tidebook/cli.py | written | HBR-228 next-window |

### Key Technical Decisions
- HBR-212: option B, because migrations are frozen until 4.2 and every writer goes through Bookings.hold.
- HBR-217: an explicit, bounded cache owned by whoever loads the station; no lru_cache on data files (INC-0871).
- HBR-221: the waiting list waits for 4.2; its design is in docs/proposed/.

### Current State
- Working on: HBR-235, points 1 to 4 of the review
- Last completed: HBR-234

### Pending Work
- [ ] HBR-235: one commit

### Constraints
- Holds last 15 minutes for leisure boats and 20 for commercial ones.
- The app 3.8 knows a fixed list of codes: not_allowed for what is new.
"""
"""Answer of the scripted summarizer, so that no run of this script calls a model."""


class Summarizer(ScriptedModel):
    """Scripted summarizer that reports real token counts."""

    def __init__(self, name: str) -> None:
        super().__init__(self._answer, repeat=True)
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def _answer(self, call: ModelCall) -> Reply:
        tokenizer = Tokenizer()
        read, written = (
            tokenizer.tokens(tokenizer.measure_text(text)) for text in (call.system + call.prompt, SUMMARY)
        )
        return Reply(SUMMARY, usage=Usage(read, written), model=self._name)


def run_command(command: str, console: Console) -> Console:
    """Runs a command in this process with its console replaced by this one."""
    commands = holdfast.cli.inspect, holdfast.cli.lab, holdfast.cli.presets, holdfast.cli.search
    for module in (holdfast.cli.console, *commands):  # `compact` imports it from there when it runs
        vars(module)["make_console"] = lambda *, stderr=False: console
    vars(holdfast.cli.compaction)["resolve_model"] = lambda name: name and Summarizer(name)
    try:
        main(shlex.split(command)[1:])
    except SystemExit as left:
        if left.code:
            raise
    return console


def render_picture() -> str:
    """Renders the compaction report as SVG, without web fonts."""
    console = Console(record=True, width=COLUMNS, force_terminal=True, color_system="truecolor", file=io.StringIO())
    console.print(Text("$ ").append(COMMAND, "bold"))
    svg = run_command(COMMAND, console).export_svg(title="holdfast", unique_id="holdfast", theme=THEME)
    return clean_svg(svg)


def clean_svg(svg: str) -> str:
    """Removes web fonts and empty text elements, and turns leading blanks into positions."""
    return _INDENTED.sub(_shift_indented, _NEWLINES.sub("", _FONTS.sub("", svg)))


def _shift_indented(found: re.Match[str]) -> str:
    """Turns leading blanks into an x position, because some viewers drop them."""
    x, y, length, rest, blanks = found.groups()
    shift = len(blanks) // len("&#160;") * _CELL
    return f'x="{float(x) + shift:g}"{y} textLength="{float(length) - shift:g}"{rest}'


def render_page() -> str:
    """Renders docs/cli.md with every output block regenerated."""

    def block(found: re.Match[str]) -> str:
        plain = Console(width=COLUMNS, file=(out := io.StringIO()), color_system=None)
        run_command(found["command"], plain)
        return found["command"] + found["middle"] + out.getvalue().strip("\n") + "\n"

    return _BLOCK.sub(block, PAGE.read_text(encoding="utf-8"))


def run(check: bool) -> int:
    stale = 0
    for path, text in ((PICTURE, render_picture()), (PAGE, render_page())):
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        print(f"{path.name} {'is stale' if check else 'updated'}")
        if not check:
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(run("--check" in sys.argv[1:]))
