"""What the sections of a page are called: the writer and the reader of pages agree on it here."""

OPENING = "[Notes on the earlier conversation: "
TASK = "## Task"
USER = "## What the user said since"
PLAN = "## Open work"
ERRORS = "## Last errors in tool output, exactly"
FILES = "## Files (only read, unless it says more)"
COMMANDS = "## Commands"
SAID = "## What was said (decisions, findings)"
AT_HAND = '## Lines to have at hand (single lines in their order, not whole texts; "also": more names from there)'
ATTACHED = "Attached: "
GROUP = "### "
ALSO = "also: "
