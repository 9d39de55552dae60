"""The last line: what is going on, where, and how full the window is."""

from __future__ import annotations

import time

from rich.text import Text
from textual.widget import Widget

from .clean import one_line
from .gauge import bar, numbers
from .look import DIM, LOUD, NAME, WARN, Look
from .standing import Standing

AUTO_OFF = "auto-compact off"
_FIRST_TO_GO = ("bar", "preset", "session", "model", "below", "doing", "waiting", "auto", "doing", "auto")
"""In this order; what has a shorter form is shortened first. The numbers stay."""
_TURNS = 5
"""Pictures of the turning sign in a second."""


class Footer(Widget):
    """What matters most stays longest when the screen gets narrow."""

    DEFAULT_CSS = "Footer { height: 1; background: ansi_default; color: ansi_default; }"

    def __init__(self, standing: Standing, look: Look) -> None:
        super().__init__()
        self._standing, self._look = standing, look
        self.waiting = 0
        """Inputs that were typed and not heard yet."""
        self.below = 0
        """Lines below the screen."""

    def render(self) -> Text:
        return footer(self._standing, self._look, self.size.width, self.waiting, self.below)


def footer(standing: Standing, look: Look, width: int, waiting: int = 0, below: int = 0) -> Text:
    """What there is room for: a field becomes shorter, or goes, until the others fit."""
    signs = look.signs
    left = {
        "doing": _doing(standing, look),
        "waiting": [Text(f"{waiting} queued", WARN)] if waiting else [],
        "below": [Text(f"{signs.down} {below} more", NAME)] if below else [],
        "session": [Text(standing.session[-6:], DIM)],
        "model": [Text(one_line(standing.model), DIM)],
        "preset": [Text(standing.preset, DIM)],
    }
    right = {
        "auto": [] if standing.auto else [Text(f" {AUTO_OFF} ", LOUD), Text(" auto off ", LOUD)],
        "bar": [bar(standing.tokens, standing.window, look)] if standing.window else [],
        "numbers": [numbers(standing.tokens, standing.window, standing.known)] if standing.window else [],
    }
    fields = left | right
    for name in _FIRST_TO_GO:
        if sum(forms[0].cell_len + 2 for forms in fields.values() if forms) <= width:
            break
        fields[name][:1] = []
    return _spread(*([forms[0] for forms in side.values() if forms] for side in (left, right)), width=width)


def _spread(left: list[Text], right: list[Text], *, width: int) -> Text:
    """What happens stands left, the gauge right."""
    line = Text(" ", no_wrap=True, overflow="crop")
    line.append_text(Text("  ").join(left))
    end = Text("  ").join(right)
    line.append(" " * max(1, width - line.cell_len - end.cell_len - 1))
    line.append_text(end)
    line.truncate(width)
    return line


def _doing(standing: Standing, look: Look) -> list[Text]:
    if standing.remark:
        return [Text(standing.remark, WARN)]
    if not standing.doing:
        return []
    turning = look.signs.turning
    sign = Text(f"{turning[int(time.monotonic() * _TURNS) % len(turning)]}", NAME)
    whole = Text(" ").join([sign, Text(one_line(standing.doing)[:24]), Text(f"{standing.seconds} s", DIM)])
    return [whole, sign]
