"""`holdfast connect`: the lines of a client's configuration that send its requests to the gateway."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..errors import InvalidInput
from ..io.files import write_file_atomically
from ..io.installation import install_command
from . import options
from .client_setups import CLIENTS, DEFAULT_URL, ClientSetup, parse_gateway_url
from .options import NameChoice
from .output import echo, echo_json

BACKUP_SUFFIX = ".before-holdfast"
_Path = tuple[str, ...]


@click.command("connect")
@click.argument("client", type=NameChoice("client", lambda: list(CLIENTS)), metavar="CLIENT")
@click.option("--url", metavar="URL", help="Address of the gateway; default: http://127.0.0.1:8399.")
@click.option("--write", is_flag=True, help="Change the client's configuration file, and keep a backup beside it.")
@click.option("--undo", is_flag=True, help="Take the lines out again, and restore what was there before.")
@options.json_option
def connect_command(client: str, url: str | None, write: bool, undo: bool, as_json: bool) -> int:
    """Print the lines of CLIENT's configuration for the gateway.

    CLIENT is codex, claude-code, opencode, pi, gemini, aider, qwen-code, or sdk for the variables that the providers'
    SDKs read. Nothing is changed without --write or --undo.
    """
    if write and undo:
        raise click.UsageError("Use either --write or --undo.")
    setup = CLIENTS[client](parse_gateway_url(url or DEFAULT_URL))
    if (write or undo) and setup.file is None:
        raise InvalidInput(
            f"{client} has no configuration file: set the variables that holdfast connect {client} prints."
        )
    done = "printed"
    if setup.file is not None and write:
        done = "written" if write_setup(setup, setup.file) else "unchanged"
    elif setup.file is not None and undo:
        done = undo_setup(setup, setup.file)
    if as_json:
        echo_json(_as_json(client, setup, done))
    else:
        echo(_report(setup, done).rstrip("\n"))
    return 0


def _as_json(client: str, setup: ClientSetup, done: str) -> dict[str, Any]:
    backup = None if setup.file is None else _backup_of(setup.file)
    return {
        "client": client,
        "file": None if setup.file is None else str(setup.file),
        "lines": setup_lines(setup),
        "variables": dict(setup.variables),
        "upstreams": list(setup.upstreams),
        "outcome": done,
        "backup": str(backup) if backup is not None and backup.exists() else None,
    }


def _report(setup: ClientSetup, done: str) -> str:
    lines: list[str] = []
    match done:
        case "written":
            lines += [f"{setup.file} is changed; its former content is in {_backup_of(_file(setup)).name} beside it."]
        case "unchanged":
            lines += [f"{setup.file} has these settings already."]
        case "restored" | "removed":
            return f"{setup.file} is {done}.\n"
        case _ if setup.file is not None:
            lines += [f"# {setup.file}", setup_lines(setup).rstrip()]
    if done == "printed" and setup.variables:
        lines += ["", "# or in the shell"] if lines else []
        lines += [f"export {name}={value}" for name, value in setup.variables.items()]
    serve = " ".join(f"--upstream {upstream}" for upstream in setup.upstreams)
    return "\n".join([*lines, "", "# the gateway", f"holdfast serve {serve}"]) + "\n"


def _file(setup: ClientSetup) -> Path:
    assert setup.file is not None
    return setup.file


def setup_lines(setup: ClientSetup) -> str:
    """Returns the settings as a file that has nothing else."""
    return _changed("", setup, setup.settings) if setup.file is not None else ""


# -- files -----------------------------------------------------------------------------------------------------------


def write_setup(setup: ClientSetup, file: Path) -> bool:
    """Sets the values in the client's file, with a backup; returns false if they are there already."""
    text = _read(file)
    changed = _changed(text, setup, setup.settings)
    if changed == text or _parsed(changed, setup, file) == _parsed(text, setup, file):
        return False
    if not (backup := _backup_of(file)).exists():
        _write(backup, text, like=file)
    _write(file, changed, like=file)
    return True


def undo_setup(setup: ClientSetup, file: Path) -> str:
    """Restores the values of the backup, and keeps what was changed since; returns what became of the file."""
    backup = _backup_of(file)
    if not backup.exists():
        raise InvalidInput(f"There is nothing to undo: {backup} does not exist.")
    before, now = _read(backup), _read(file)
    if setup.kind == "lines":
        kept = {path: _line_value(before, path[0]) for path in setup.settings}
        restored = _with_lines(now, {path[0]: value for path, value in kept.items()})
    else:
        restored = _changed(
            now, setup, {path: _value_at(_parsed(before, setup, file), path) for path in setup.settings}
        )
    same = _parsed(restored, setup, file) == _parsed(before, setup, file)
    outcome = "restored"
    if same and not before:
        file.unlink(missing_ok=True)
        outcome = "removed"
    else:
        _write(file, before if same else restored, like=file)
    backup.unlink()
    return outcome


def _backup_of(file: Path) -> Path:
    return file.with_name(file.name + BACKUP_SUFFIX)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"{file} cannot be read ({getattr(problem, 'strerror', None) or 'not text'}).") from None


def _write(file: Path, text: str, *, like: Path) -> None:
    """Writes a file with the permissions of another, through a symbolic link if it is one."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = stat.S_IMODE(like.stat().st_mode) if like.exists() else 0o600
        write_file_atomically(os.path.realpath(file), text.encode(), new_mode=mode)
    except OSError as problem:
        raise InvalidInput(f"{file} cannot be written ({problem.strerror}): check its folder.") from None


# -- formats ---------------------------------------------------------------------------------------------------------


def _changed(text: str, setup: ClientSetup, values: Mapping[_Path, str | None]) -> str:
    """Returns the file with these values; None removes one."""
    file = _file(setup)
    match setup.kind:
        case "lines":
            return _with_lines(text, {path[0]: value for path, value in values.items()})
        case "json":
            document = _parsed(text, setup, file)
            _set_all(document, values, file, dict)
            return json.dumps(document, indent=_indent(text), ensure_ascii=False) + "\n"
    tomlkit = _tomlkit()
    document = _parsed(text, setup, file)
    _set_all(document, values, file, tomlkit.table)
    return str(tomlkit.dumps(document))


def _parsed(text: str, setup: ClientSetup, file: Path) -> Any:
    if setup.kind == "lines":
        return text.rstrip("\n")
    try:
        document = _tomlkit().parse(text) if setup.kind == "toml" else json.loads(text or "{}")
    except ValueError as problem:
        raise InvalidInput(
            f"{file} cannot be parsed ({problem}): add the lines that holdfast connect prints by hand."
        ) from None
    if not isinstance(document, dict):
        raise InvalidInput(f"{file} is not an object of settings: add the lines that holdfast connect prints by hand.")
    return document


def _tomlkit() -> Any:
    try:
        import tomlkit
    except ImportError:
        raise InvalidInput(f"Reading TOML files needs tomlkit: {install_command('gateway')}") from None
    return tomlkit


def _set_all(document: Any, values: Mapping[_Path, str | None], file: Path, new_table: Any) -> None:
    for path, value in values.items():
        if value is None:
            _remove(document, path)
            continue
        table = document
        for at, name in enumerate(path[:-1], 1):
            if name not in table:
                table[name] = new_table()
            table = table[name]
            if not isinstance(table, dict):
                raise InvalidInput(f"{file}: {'.'.join(path[:at])} is not a table of settings; change it by hand.")
        table[path[-1]] = value


def _remove(table: Any, path: _Path) -> None:
    """Removes a value, and the tables that are empty without it."""
    name, *below = path
    if not isinstance(table, dict) or name not in table:
        return
    if below:
        _remove(table[name], tuple(below))
    if not below or not table[name]:
        del table[name]


def _value_at(document: Any, path: _Path) -> str | None:
    for name in path:
        if not isinstance(document, dict) or name not in document:
            return None
        document = document[name]
    return None if document is None else document


def _indent(text: str) -> int | str:
    """Returns the indentation of a JSON file: the file's own, else two spaces."""
    found = re.search(r"^[{\[]\s*?\n([ \t]+)", text)
    return found[1] if found else 2


def _with_lines(text: str, values: Mapping[str, str | None]) -> str:
    """Sets, replaces or removes lines that begin with these names."""
    lines = text.splitlines()
    for start, value in values.items():
        own = [at for at, line in enumerate(lines) if line.startswith(start.rstrip())]
        if value is not None and value.startswith("[") and any(not _names_ours(lines[at], value) for at in own):
            name = start.partition(":")[0]
            raise InvalidInput(f"The file has a list {name} already: add {value[1:-1]} to it by hand.")
        new = [] if value is None else [start + value]
        place = own[0] if own else len(lines)
        lines[place:] = [*new, *(line for at, line in enumerate(lines) if at >= place and at not in own)]
    return "\n".join(lines) + "\n" if lines else ""


def _names_ours(line: str, value: str) -> bool:
    """Whether a line has the list that was written before, perhaps with another address."""
    names = re.findall(r"(\w+)=", value)
    return re.findall(r"(\w+)=", line) == names


def _line_value(text: str, start: str) -> str | None:
    lines = (line for line in text.splitlines() if line.startswith(start.rstrip()))
    return next((line[len(start.rstrip()) :].strip() for line in lines), None)
