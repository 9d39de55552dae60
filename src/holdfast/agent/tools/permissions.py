"""Decides which calls need no approval: by the mode, and by rules that the user added in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import msgspec

from ...errors import InvalidInput
from ...io.files import write_file_atomically
from ...messages import ToolCall
from .command_rules import CommandScope, command_scope
from .files import PlannedChange
from .protected_paths import protected_path

Mode = Literal["ask", "accept-edits", "plan"]
"""`ask`: each change is asked. `accept-edits`: files are written without asking. `plan`: nothing is changed."""
MODES: tuple[Mode, ...] = get_args(Mode)
"""All modes, in the order in which a key goes through them."""
_COMMAND_TOOL = "run_command"
NOT_TRUSTED = "asked every time: you have not trusted this folder"


class Verdict(msgspec.Struct, frozen=True):
    """Whether a call may run without asking, and what the user may allow instead of it alone."""

    allowed: bool
    rules: tuple[str, ...] = ()
    """What `always` would add; none if it would allow too much."""
    about: str = ""
    """What the rules match, and an example of what they do not; or why there are none."""


class PermissionRules:
    """The mode, and the rules of one folder, in a file shared by all folders; without a file they are not kept."""

    def __init__(
        self, folder: str | Path = "", file: Path | None = None, mode: Mode = "ask", *, trusted: bool = True
    ) -> None:
        self._folder, self._file = str(folder), file
        self._root = Path(folder).resolve() if str(folder) else None
        self._rules: list[str] = []
        self.mode: Mode = mode
        self._trusted = trusted
        """Whether the user trusts the folder; if not, every call asks, also one that reads."""

    @property
    def rules(self) -> list[str]:
        """The rules in the order in which they were added."""
        return self._read().get(self._folder, []) if self._file else list(self._rules)

    def check_read(self) -> Verdict:
        """Decides on a call that changes nothing."""
        return Verdict(self._trusted, about="" if self._trusted else NOT_TRUSTED)

    def check(self, call: ToolCall, change: PlannedChange | None = None) -> Verdict:
        """Decides on a call that changes something; raises `InvalidInput` if the mode forbids it."""
        scope = self._scope(call, change)
        if self.mode == "plan" and not scope.reads_only:
            raise InvalidInput(
                "Nothing was changed: the user chose plan mode, in which files are only read. Say what you would do; "
                "the user leaves plan mode to let you do it."
            )
        if not self._trusted:
            return Verdict(False, about=NOT_TRUSTED)
        rules, known = scope.rules, self.rules
        accepted = self.mode == "accept-edits" and change is not None and bool(rules)
        allowed = accepted or (bool(rules) and all(rule in known for rule in rules))
        return Verdict(allowed, tuple(rule for rule in rules if rule not in known), scope.about)

    def _scope(self, call: ToolCall, change: PlannedChange | None) -> CommandScope:
        """Returns the rules that would allow a call, with the tool's name."""
        given = call.arguments_dict
        if change is not None:
            why = protected_path(change.path, change.name, str(given.get("path", "")))
            if why is not None:
                return CommandScope(about=f"asked every time: {why}")
            return CommandScope((call.name,), f"`{call.name}` in this folder, except protected files as in .git")
        if call.name != _COMMAND_TOOL:
            return CommandScope((call.name,), f"`{call.name}` with any arguments, but no other tool")
        command = given.get("command")
        scope = command_scope(command, self._root) if isinstance(command, str) else CommandScope()
        return msgspec.structs.replace(scope, rules=tuple(f"{_COMMAND_TOOL} {rule}" for rule in scope.rules))

    def add(self, rule: str) -> None:
        """Allows all calls under this rule from now on."""
        self._save([*(one for one in self.rules if one != rule), rule])

    def revoke(self, rule: str) -> None:
        """Removes a rule; raises `InvalidInput` if there is no such rule."""
        rules = self.rules
        if rule not in rules:
            raise InvalidInput(f"Nothing like {rule!r} is always allowed here: /permissions lists what is.")
        self._save([one for one in rules if one != rule])

    def _read(self) -> dict[str, list[str]]:
        assert self._file is not None
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, list[str]])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as problem:
            raise InvalidInput(
                f"The file of allowed calls {self._file} cannot be read ({problem}): delete it."
            ) from None

    def _save(self, rules: list[str]) -> None:
        self._rules = rules
        if self._file is None:
            return
        kept = {**self._read(), self._folder: rules}
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = msgspec.json.format(msgspec.json.encode({folder: one for folder, one in kept.items() if one}))
        write_file_atomically(self._file, content, new_mode=0o600)
