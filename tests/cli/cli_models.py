"""Summaries served by a local model server."""

from __future__ import annotations

from collections.abc import Callable

from providers import ProviderServer

Serve = Callable[..., ProviderServer]
SUMMARY = """\
### Completed Work
| File/Component | Action | Description |
| --- | --- | --- |
| berths | looked up | one after the other |

### Key Technical Decisions
- The crane may not swing above force six.

### Current State
- Working on: the list of berths
- Last completed: the tide table

### Pending Work
- [ ] Look at the last berths.
"""


def at(server: ProviderServer) -> str:
    """The --summarizer value for a model of this server."""
    return f"{server.openai_url}#gpt-test"
