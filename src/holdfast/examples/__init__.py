"""Sessions that ship with the project, so that everything can be tried without a key and without your data.

All of them are invented. Each is a whole request in its provider's own format.
"""

from __future__ import annotations

import atexit
import functools
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

from holdfast.errors import InvalidInput

__all__ = ["EXAMPLES", "example_path"]

EXAMPLES = {
    "harbor": "Anthropic Messages: a coding agent works through the tickets of a release, 652 messages",
    "journal": "Gemini: planning a journey in English, Spanish and Chinese, without tools",
    "review": "OpenAI Responses: a code review with encrypted reasoning",
    "support": "OpenAI Chat: a service agent with orders, refunds and a policy",
}

_unpacked = ExitStack()
atexit.register(_unpacked.close)


@functools.cache
def example_path(name: str = "harbor") -> Path:
    """The file of one example; from a zipped install it is unpacked until the program ends."""
    if name not in EXAMPLES:
        raise InvalidInput(f"There is no example {name!r}: choose one of {', '.join(EXAMPLES)}.")
    return _unpacked.enter_context(resources.as_file(resources.files(__package__) / f"{name}.json"))
