"""Mentions in the input: completion of `@path` by a fuzzy search in the folder, and images dropped onto it."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

import anyio
from anyio import to_thread

from ..agent.mentions import image_type, quote_mention
from ..agent.tools import WorkingFolder

MAX_MATCHES = 50
_MAX_FILES = 50_000
"""Files searched in a folder without git."""
_INDEX_SECONDS = 5.0
"""How long a list of files is used before it is made again."""
_UNFINISHED = re.compile(r'(?<!\S)@("[^"\n]*|[^\s"]*)$')


def unfinished_mention(before_cursor: str) -> str | None:
    """Returns the mention that ends at the cursor, with its @; None if there is none."""
    found = _UNFINISHED.search(before_cursor)
    return found[0] if found else None


def dropped_image(pasted: str) -> Path | None:
    """Returns the image whose path was pasted, as terminals do for a file dropped onto them; None for other text."""
    text = pasted.strip()
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    elif text[:1] in "'\"" or "\\" in text:
        with suppress(ValueError):
            words = shlex.split(text)
            text = words[0] if len(words) == 1 else ""
    try:
        path = Path(text).expanduser()
        return (
            path.resolve() if path.is_absolute() and "\n" not in text and path.is_file() and image_type(path) else None
        )
    except (OSError, RuntimeError, ValueError):
        return None


class MentionIndex:
    """The files of a folder, listed by git where it can, so that ignored files are left out."""

    def __init__(self, folder: WorkingFolder) -> None:
        self._folder = folder
        self._files: Sequence[str] = ()
        self._listed = float("-inf")

    async def complete(self, mention: str) -> list[str]:
        """Returns mentions of the files that match an unfinished one, the best first."""
        if time.monotonic() - self._listed > _INDEX_SECONDS:
            self._files = await self._list()
            self._listed = time.monotonic()
        query = mention[1:].removeprefix('"')
        best = await to_thread.run_sync(best_matches, query, self._files)
        exists = (name for name in best if (self._folder.root / name).exists())
        return [quote_mention(name) for name in islice(exists, MAX_MATCHES)]

    async def _list(self) -> Sequence[str]:
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        try:
            listed = await anyio.run_process(command, cwd=self._folder.root, check=False)
        except OSError:
            listed = None
        if listed is not None and listed.returncode == 0:
            return [name for name in listed.stdout.decode(errors="replace").split("\0") if name]
        walked = partial(islice, self._folder.files(".", "*"), _MAX_FILES)
        return await to_thread.run_sync(lambda: [self._folder.display_name(path) for path in walked()])


def best_matches(query: str, files: Iterable[str]) -> list[str]:
    """Returns the paths that contain the query's characters in order, the closest match first.

    A query with a capital letter is case-sensitive.
    """
    exact = query != query.lower()
    scored = []
    for name in files:
        score = _score(query, name if exact else name.lower())
        if score is not None:
            scored.append((score, len(name), name))
    return [name for _, _, name in sorted(scored)]


def _score(query: str, name: str) -> tuple[int, int] | None:
    """Returns a sort key, smaller for a closer match; None if the characters do not occur in order."""
    base = name.rpartition("/")[2]
    for rank, holds in enumerate((base.startswith(query), name.startswith(query), query in base, query in name)):
        if holds:
            return rank, 0
    start = position = -1
    for character in query:
        position = name.find(character, position + 1)
        if position < 0:
            return None
        start = position if start < 0 else start
    return 4, position - start
