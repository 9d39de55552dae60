"""A shell command as a hook: the line is the user's own, and all that it is told comes on its standard input."""

from __future__ import annotations

import msgspec

from ..errors import InvalidInput
from ..messages import Json
from ..shell import Said, run_shell
from .patience import PATIENCE, at_most, must_be_seconds


class Command(msgspec.Struct, frozen=True):
    """Run by the shell, in the program's folder and with its environment."""

    line: str
    timeout: float = PATIENCE

    def __post_init__(self) -> None:
        if not isinstance(self.line, str) or not self.line.strip():
            raise InvalidInput(f"A command is a line for the shell, as in './check.sh --strict', not {self.line!r}.")
        must_be_seconds(self.timeout)

    async def run(self, told: Json) -> Said:
        """Run it to its end. When its time is over it ends, with all that it started."""
        with at_most(self.timeout):
            return await run_shell(self.line, msgspec.json.encode(told))
