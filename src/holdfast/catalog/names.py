"""From the many spellings of a model id to the name its maker gave it."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LEADING = re.compile(r"[^:.]*[:.]")
LONG_SUFFIX = "[1m]"
"""How coding agents ask for the extended window inside the id itself."""


def spellings(model_id: str) -> Iterator[str]:
    """The id as given, then with one more leading provider part taken off each time.

    The order matters: a dot is a separator in ``us.anthropic.claude-3-haiku`` and part of the name in
    ``gpt-4.1``, and only the catalog can tell, by finding the longer spelling first.
    """
    whole = model_id.strip().lower().removesuffix(LONG_SUFFIX)
    yield whole
    rest = whole.rsplit("/", 1)[-1]
    if rest != whole:
        yield rest
    while (part := _LEADING.match(rest)) is not None:
        rest = rest[part.end() :]
        if not rest:
            return
        yield rest
