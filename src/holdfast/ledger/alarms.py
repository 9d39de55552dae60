"""The lines of a tool's output that tell of an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import structs

from .lines import Line, whole_lines

Answer = tuple[str, Line]
"""What a tool said, and what all its lines have in common."""

_ALARMS = (
    *("error", "fail", "exception", "traceback", "panic", "fatal", "undefined", "cannot", "denied", "unable"),
    *("refused", "not found", "no such", "timed out", "fehler", "erreur", "échec", "ошибка"),
)
_ALARMS_WITHOUT_SPACES = ("错误", "失败", "エラー", "오류")
_ERROR = re.compile(
    rf"(?i:\b(?:{'|'.join(_ALARMS)})(?:s|ed|ked|ing|ures?)?\b)"
    rf"|_(?:error|exception)s?\b|\w(?:Error|Exception)s?\b|{'|'.join(_ALARMS_WITHOUT_SPACES)}"
)
_LONGEST, _LOOKED_AT = 400, 40_000
_KEPT = 40


def errors_in(text: str) -> Iterator[tuple[int, str]]:
    """The last first, with their numbers."""
    end = text if len(text) <= _LOOKED_AT else text[-_LOOKED_AT:].partition("\n")[2]
    lowered = end.lower()
    alarms = [alarm for alarm in (*_ALARMS, *_ALARMS_WITHOUT_SPACES) if alarm in lowered]  # quicker than the pattern
    if not alarms:
        return
    for number, line in reversed(whole_lines(end)):
        if len(line) <= _LONGEST and any(alarm in line.lower() for alarm in alarms) and _ERROR.search(line):
            yield number, line


def last_errors(answers: Sequence[Answer], earlier: dict[str, Line]) -> dict[str, Line]:
    """From the newest results back, until there are enough; what comes again counts where it came last."""
    found: dict[str, Line] = {}
    for text, answer in reversed(answers):
        for number, said in errors_in(text):
            found.setdefault(said.strip(), structs.replace(answer, text=said, number=number))
        if len(found) >= _KEPT:
            break
    before = [(said, line) for said, line in earlier.items() if said not in found]
    return dict([*before, *reversed(found.items())][-_KEPT:])
