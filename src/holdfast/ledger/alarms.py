"""The lines of a tool's output that tell of an error."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .lines import lines_of

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


def errors_in(text: str) -> Iterator[str]:
    """The last first."""
    end = text[-_LOOKED_AT:]
    lowered = end.lower()
    alarms = [alarm for alarm in (*_ALARMS, *_ALARMS_WITHOUT_SPACES) if alarm in lowered]  # quicker than the pattern
    if not alarms:
        return
    lines, alike = end.split("\n"), lowered.split("\n")
    alarming = {at for alarm in alarms for at, line in enumerate(alike) if alarm in line}
    for line in map(lines.__getitem__, sorted(alarming, reverse=True)):
        if len(line) <= _LONGEST and _ERROR.search(line):
            yield next((shown for _, shown, _ in lines_of(line) if _ERROR.search(shown)), line).strip()
