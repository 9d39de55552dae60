"""Rules for calls that need no approval: tools and command prefixes that the user always allows in one folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec

from ...errors import InvalidInput
from ...io.files import write_file_atomically
from ...messages import ToolCall

_COMMAND_TOOL = "run_command"
_SHELL_SYNTAX = re.compile(r"[;&|<>$`(){}\\\n\r]|(?:^|\s)(?:!|#)")
"""What makes the shell do more than run one program with these words."""
_WITH_SUBCOMMANDS = frozenset(
    "apt brew bundle cargo composer conda docker dotnet gh git go gradle helm just kubectl make mvn nox npm pip pip3 "
    "pnpm podman poetry ruff rustup systemctl terraform tox uv yarn".split()
)
"""Programs whose second word says what they do."""
_RUNS_OTHER_PROGRAMS = frozenset(
    "awk bash busybox chroot command dash doas env eval exec find fish flock ksh lua nice node nohup npx parallel perl "
    "php ruby script setsid sh ssh stdbuf su sudo sed time timeout uvx watch xargs zsh .".split()
)
"""Programs that run whatever their arguments say: allowing them would allow everything."""
_PYTHON = re.compile(r"python[\d.]*")


def command_prefix(command: str) -> str | None:
    """Returns the words that say what a simple command does, as in `git status`; None if they would not say it."""
    if _SHELL_SYNTAX.search(command) or not command.isprintable():
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not words or "=" in words[0] or words[0] in _RUNS_OTHER_PROGRAMS:
        return None
    if _PYTHON.fullmatch(words[0]):
        return shlex.join(words[:3]) if words[1:2] == ["-m"] and len(words) > 2 else None
    if words[0] in _WITH_SUBCOMMANDS:
        return shlex.join(words[:2]) if words[1:] and not words[1].startswith("-") else None
    return shlex.join(words[:1])


def rule_for(call: ToolCall) -> str | None:
    """Returns the rule that would allow this call and others like it; None if there is none short of everything."""
    if call.name != _COMMAND_TOOL:
        return call.name
    command = call.arguments_dict.get("command")
    prefix = command_prefix(command) if isinstance(command, str) else None
    return None if prefix is None else f"{_COMMAND_TOOL} {prefix}"


class PermissionRules:
    """The rules of one folder, in a file shared by all folders; without a file they last as long as this object."""

    def __init__(self, folder: str | Path = "", file: Path | None = None) -> None:
        self._folder, self._file = str(folder), file
        self._rules: list[str] = []

    @property
    def rules(self) -> list[str]:
        """The rules in the order in which they were added."""
        return self._read().get(self._folder, []) if self._file else list(self._rules)

    def allows(self, call: ToolCall) -> bool:
        """Whether a rule allows this call."""
        rule = rule_for(call)
        return rule is not None and rule in self.rules

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
