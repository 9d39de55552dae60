"""The tools that an agent can be given, in the words of each provider."""

from __future__ import annotations

from ..messages import Json, Tool, tools_in
from .conditions import ROLES

SEARCH, READ = "recall_search", "recall_read"
TOOL_NAMES = (SEARCH, READ)

SEARCH_PARAMETERS: Json = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": "Words that must all occur, in any order; parts of words count. Not a question.",
        },
        "role": {"type": "string", "enum": list(ROLES), "description": "Who spoke."},
        "tool": {"type": "string", "description": "Only calls of this tool and their results."},
        "since": {"type": "string", "description": "A date, a time, or an age such as 2h or 3d."},
        "until": {"type": "string", "description": "The same, for the end."},
        "archived": {"type": "boolean", "description": "true: only what is no longer in your context."},
        "limit": {"type": "integer", "description": "How many to list; 10 unless said otherwise."},
        "offset": {"type": "integer", "description": "How many to skip, to see more."},
    },
    "required": ["query"],
}
READ_PARAMETERS: Json = {
    "type": "object",
    "properties": {
        "ref": {
            "type": "string",
            "description": (
                "#123 or, as notes cite it, [123] for one event; #123-#130 for several; #123@4000 to go on from a "
                "character of it."
            ),
        },
    },
    "required": ["ref"],
}
_SEARCH_SAYS = (
    "Search everything that was said and done in this conversation, also what is no longer in your context: "
    "messages, tool calls, tool results. Lists short excerpts with references such as #123."
)
_READ_SAYS = (
    "Read in full what a reference such as #123, or [123] in notes, points at: an earlier message, tool call or tool "
    "result."
)
TOOLS = (Tool(SEARCH, _SEARCH_SAYS, SEARCH_PARAMETERS), Tool(READ, _READ_SAYS, READ_PARAMETERS))


def tool_definitions(format: str = "openai-chat") -> list[Json]:
    """What to add to the `tools` of a request in this format."""
    return tools_in(format, TOOLS)
