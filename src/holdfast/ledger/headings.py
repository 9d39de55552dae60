"""Headings and fixed phrases of a page: its renderer writes them, and its parser looks for them."""

from __future__ import annotations

from .lines import LineKind

PAGE_OPENING = "[Notes on the earlier conversation: "
ROUND = "Compaction round "
"""Precedes the number of the round, on pages and in summaries."""
COUNTED = "Counts reach to "
"""Precedes the number of the newest message that a page counts; it may still be shown."""
TASK = "## Task"
USER_MESSAGES = "## Later user messages"
OMITTED = "(Omitted: "
APPROVED, APPROVED_ITEMS = "## Approved plan", "## Approved plan, items not known to be done"
PLAN = "## Open work"
CALLS = "## Calls since last user message"
ERRORS = "## Last tool errors, verbatim"
FILES = "## Files (only read unless marked)"
FOUND = "## Found by searches, not opened"
COMMANDS = "## Commands"
CONCLUSIONS = "## Decisions and findings"
STEPS = "## Last steps before the messages below"
REJECTED = "(rejected by the user)"
EXCERPTS = '## Relevant excerpts (single lines, not whole texts; "also": more names from there)'
CITED_SECTIONS = (TASK, PLAN, APPROVED, APPROVED_ITEMS)
"""Headings that cite a message; a plan need not."""
SECTIONS = (USER_MESSAGES, PLAN, CALLS, ERRORS, FILES, FOUND, COMMANDS, CONCLUSIONS, EXCERPTS, STEPS)
"""Headings that stand alone."""
ATTACHED = "Attached: "
GROUP = "### "
SPEAKERS: dict[LineKind, str] = {"said": "the assistant", "user": "the user"}
"""Titles of excerpts from messages, by the kind of their lines."""
RAN_AGAIN, NO_ERRORS = " (ran again in ", ", no errors"
ALSO = "also: "
ROOT, ROOT_IS = "…/", "…/ is "
"""Abbreviates the common root folder of most files."""
