"""Readme of the distribution: README.md with links and pictures that also work on the package index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"\]\((?!\w+:|#)([^)]+)\)")
_PICTURE = re.compile(r"\.(svg|webp|png)$")


class ReadmeHook(MetadataHookInterface):
    """Sets `readme`: relative links are made absolute, to the files of the tagged version."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        site, version = metadata["urls"]["Source"], metadata["version"]
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, site, f"v{version}")}


def absolute(text: str, site: str, tag: str) -> str:
    """Returns the text with relative links replaced; those of pictures lead to the file itself."""
    return _LINK.sub(lambda found: f"]({site}/{'raw' if _PICTURE.search(found[1]) else 'blob'}/{tag}/{found[1]})", text)
