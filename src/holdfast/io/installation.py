"""The command that adds an extra to the installation that runs: it works as written, wherever Holdfast came from."""

from __future__ import annotations

import json
import shlex
import sys
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from urllib.request import url2pathname

NAME = "holdfast-context"


@cache
def install_command(extra: str) -> str:
    """Returns the shell command that installs an extra into this environment, by the installer that made it.

    An installation from a clone or a wheel (PEP 610) is named by its path, since the index need not have it.
    """
    source = json.loads(_recorded("direct_url.json") or "{}")
    editable = "-e " if source.get("dir_info", {}).get("editable") else ""
    wanted = editable + shlex.quote(_requirement(urlsplit(source.get("url", "")), extra))
    if Path(sys.prefix, "uv-receipt.toml").exists():
        return f"uv tool install {wanted}"
    if Path(sys.prefix, "pipx_metadata.json").exists():
        return f"pipx install --force {wanted}"
    if _recorded("INSTALLER") == "uv":
        return f"uv pip install --python {shlex.quote(sys.executable)} {wanted}"
    return f"{shlex.quote(sys.executable)} -m pip install {wanted}"


def _requirement(url: SplitResult, extra: str) -> str:
    if url.scheme != "file":
        return f"{NAME}[{extra}]" + (f" @ {url.geturl()}" if url.scheme else "")
    return f"{url2pathname(url.path)}[{extra}]"


def _recorded(file: str) -> str:
    try:
        return (Distribution.from_name(NAME).read_text(file) or "").strip()
    except PackageNotFoundError:
        return ""
