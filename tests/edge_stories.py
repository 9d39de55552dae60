"""Short conversations with edges between messages: programs, approvals, searches, references to stored items.

Field names are those of the SDKs: `anthropic.types.beta`, `openai.types.responses`, `google.genai.types`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]
Messages = list[Json]
ASK: Json = {"role": "user", "content": "hi"}
ANSWER: Json = {"role": "assistant", "content": "hello"}
TEXT: Json = {"type": "text", "text": "there"}


def item(kind: str, **fields: Any) -> Json:
    return {"type": kind, **fields}


def call(name: str, **more: Any) -> Json:
    return item("function_call", call_id=name, name="read", arguments="{}", **more)


def output(name: str, text: str = "done", **more: Any) -> Json:
    return item("function_call_output", call_id=name, output=text, **more)


class Program:
    """OpenAI: a program of the model calls tools; its calls name it by its call id."""

    start = item("program", id="prg_1", call_id="p1", code="await read()", fingerprint="f")
    end = item("program_output", id="pro_1", call_id="p1", result="ok", status="completed")
    thought = item("reasoning", id="rs_9", summary=[], encrypted_content="gA")

    @staticmethod
    def call(name: str, program: str = "p1") -> Json:
        return call(name, id=f"fc_{name}", caller={"type": "program", "caller_id": program})

    @staticmethod
    def output(name: str, program: str = "p1", text: str = "done") -> Json:
        return output(name, text, caller={"type": "program", "caller_id": program})


class Approval:
    """OpenAI: a tool of an MCP server runs once the user has approved it."""

    request = item("mcp_approval_request", id="mcpr_1", name="read", arguments="{}", server_label="files")
    response = item("mcp_approval_response", approval_request_id="mcpr_1", approve=True)
    call = item(
        "mcp_call",
        id="mcp_1",
        name="read",
        arguments="{}",
        server_label="files",
        output="ok",
        approval_request_id="mcpr_1",
    )


def reference(name: str) -> Json:
    return item("item_reference", id=name)


def by_model(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def use(name: str, **more: Any) -> Json:
    return item("tool_use", id=name, name="read", input={}, **more)


def results(*names: str) -> Json:
    return {"role": "user", "content": [item("tool_result", tool_use_id=name, content="done") for name in names]}


def server_use(name: str, tool: str = "code_execution", **more: Any) -> Json:
    return {"type": "server_tool_use", "id": name, "name": tool, "input": {}, **more}


def server_result(name: str, tool: str = "code_execution", **more: Any) -> Json:
    content = {"type": f"{tool}_result", "stdout": "ok", "stderr": "", "return_code": 0, "content": []}
    return {"type": f"{tool}_tool_result", "tool_use_id": name, "content": content, **more}


def called_by(name: str, tool: str) -> Json:
    return use(name, caller={"type": "code_execution_20260120", "tool_id": tool})


def user(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


class Story(NamedTuple):
    profile: str
    messages: Messages
    starts: list[int]
    """Where its units start."""


STORIES: dict[str, Story] = {
    "a program with its calls": Story(
        "openai-responses",
        [
            ASK,
            Program.thought,
            Program.start,
            Program.call("a"),
            Program.call("b"),
            Program.output("a"),
            Program.output("b"),
            Program.call("c"),
            Program.output("c"),
            Program.end,
            ANSWER,
            ASK,
        ],
        [0, 1, 10, 11],
    ),
    "a program that runs an MCP tool in between": Story(
        "openai-responses",
        [
            ASK,
            Program.start,
            Program.call("a"),
            Program.output("a"),
            Approval.call | {"approval_request_id": None},
            Program.call("b"),
            Program.output("b"),
            Program.end,
            ANSWER,
            ASK,
        ],
        [0, 1, 8, 9],
    ),
    "an approval": Story(
        "openai-responses",
        [ASK, Approval.request, Approval.response, Approval.call, ANSWER, ASK],
        [0, 1, 4, 5],
    ),
    "an approval beside a call": Story(
        "openai-responses",
        [ASK, call("a"), Approval.request, Approval.response, output("a"), Approval.call, ANSWER],
        [0, 1, 6],
    ),
    "an approval after more words of the user": Story(
        "openai-responses",
        [ASK, Approval.request, ASK, ANSWER, Approval.response, Approval.call, ASK],
        [0, 1, 6],
    ),
    "references to calls, reasoning and messages": Story(
        "openai-responses",
        [
            ASK,
            reference("rs_1"),
            reference("fc_1"),
            output("a"),
            reference("fc_2"),
            reference("fc_3"),
            output("b"),
            output("c"),
            reference("msg_1"),
            ASK,
            reference("msg_2"),
            reference("msg_3"),
            ASK,
        ],
        [0, 1, 4, 8, 9, 10, 11, 12],
    ),
    "a reference to an approval request": Story(
        "openai-responses",
        [ASK, reference("mcpr_1"), Approval.response, Approval.call, ANSWER, ASK],
        [0, 1, 4, 5],
    ),
    "a reference to a program": Story(
        "openai-responses",
        [ASK, reference("prg_1"), Program.call("a"), Program.output("a"), Program.end, ANSWER],
        [0, 1, 5],
    ),
    "a search for tools that the API runs": Story(
        "openai-responses",
        [
            ASK,
            item("tool_search_call", call_id=None, arguments={}, execution="server"),
            item("tool_search_output", call_id=None, tools=[], execution="server"),
            ANSWER,
            ASK,
        ],
        [0, 1, 3, 4],
    ),
    "settings that a program changes": Story(
        "openai-responses",
        [
            ASK,
            call("a"),
            item("configuration_update", reasoning={"effort": "low"}),
            output("a"),
            ANSWER,
            ASK,
        ],
        [0, 1, 4, 5],
    ),
    "code that calls tools": Story(
        "anthropic",
        [
            ASK,
            by_model(TEXT, server_use("s"), called_by("a", "s"), called_by("b", "s")),
            results("a", "b"),
            by_model(called_by("c", "s")),
            results("c"),
            by_model(server_result("s"), TEXT),
            ASK,
            ANSWER,
        ],
        [0, 1, 6, 7],
    ),
    "code that calls a tool which calls nothing else": Story(
        "anthropic",
        [
            ASK,
            by_model(server_use("s"), called_by("a", "s")),
            results("a"),
            by_model(server_use("w", "web_search", caller={"type": "code_execution_20260120", "tool_id": "s"})),
            by_model(server_result("w", "web_search"), server_result("s"), TEXT),
            ASK,
        ],
        [0, 1, 5],
    ),
    "a turn that the API paused": Story(
        "anthropic",
        [ASK, by_model(server_use("w", "web_search")), by_model(server_result("w", "web_search"), TEXT), ASK],
        [0, 1, 3],
    ),
    "two tools that end in one message": Story(
        "anthropic",
        [ASK, by_model(server_use("w", "web_search"), server_result("w", "web_search"), TEXT), ASK, ANSWER],
        [0, 1, 2, 3],
    ),
    "a call that no code made": Story(
        "anthropic",
        [ASK, by_model(use("a", caller={"type": "direct"})), results("a"), ANSWER, ASK],
        [0, 1, 3, 4],
    ),
    "a tool that Gemini runs": Story(
        "gemini",
        [
            user({"text": "hi"}),
            model({"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}}),
            model({"toolResponse": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}}, {"text": "there"}),
            user({"text": "hi"}),
            model({"text": "hello"}),
        ],
        [0, 1, 3, 4],
    ),
}
"""Valid conversations, and where their units start."""
