"""Lists as real clients send them: each request is the whole list, in the form that its client gives it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from holdfast.messages import Json

RULES = """To suggest changes to a file you MUST return the entire content of the updated file.

path/to/filename.js
```
// entire file content ...
```

Every *file listing* MUST use this format:
- First line: the filename with any originally provided path
- Second line: opening ```

To suggest changes to a file you MUST return a *file listing* that contains the entire content of the file.
*NEVER* skip, omit or elide content from a *file listing* using "..." or by adding comments!"""
EXAMPLES: list[Json] = [
    {"role": "user", "content": "Change the greeting to be more casual"},
    {"role": "assistant", "content": "Ok, I will:\n\n1. Switch the greeting text.\n\nshow_greeting.py\n```\nHey\n```"},
    {"role": "user", "content": "I switched to a new code base. Please don't consider the above files."},
    {"role": "assistant", "content": "Ok."},
]


def aider_requests(
    asked: Sequence[str],
    reminder: Literal["user", "sys"] = "user",
    *,
    examples: Sequence[Json] = EXAMPLES,
    rules: str = RULES,
) -> Iterator[list[Json]]:
    """Yields the list of each request of aider, which ends with its rules: in the newest user message, or after it."""
    done: list[Json] = []
    for text in asked:
        lead = [{"role": "system", "content": "Act as an expert software developer."}, *examples]
        if reminder == "user":
            yield [*lead, *done, {"role": "user", "content": f"{text}\n\n{rules}"}]
        else:
            yield [*lead, *done, {"role": "user", "content": text}, {"role": "system", "content": rules}]
        done += [{"role": "user", "content": text}, {"role": "assistant", "content": f"Done: {text}"}]
