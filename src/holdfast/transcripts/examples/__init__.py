"""Example sessions that ship with the project, to try everything without a key and without your data.

All of them are invented. Each is a complete request in its provider's format.
"""

from __future__ import annotations

import atexit
import functools
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

from ...errors import InvalidInput

__all__ = [
    "EXAMPLES",
    "example_path",
]
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
    """Returns the file of an example; from a zipped install it is unpacked until the program ends."""
    if name not in EXAMPLES:
        raise InvalidInput(f"There is no example {name!r}: choose one of {', '.join(EXAMPLES)}.")
    return _unpacked.enter_context(resources.as_file(resources.files(__package__) / f"{name}.json"))
