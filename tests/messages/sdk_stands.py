"""How each type of the SDKs stands in a conversation.

A call needs its result, a result its call, a program its output, an approval its request. A type that is not in the
tables fails the test of the tables: somebody looks at it and adds it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Role = Literal["user", "assistant", "system"]


class Stands(NamedTuple):
    """Who says a type, and what belongs to it: `.` is the type itself, the others are tags, in order.

    `^` marks what has the id of a program, or of code that calls tools; `@` what it calls; `~` what may be left out.
    """

    role: Role
    unit: str = "."
    called: str = ""
    """The unit where a program is the caller."""
    approved: str = ""
    """The unit where it names an approval request."""
    place: Literal["", "first", "last"] = ""
    """The only place where it may stand."""
    on: str = ""
    """The data that it describes: a field of a Gemini part beside others."""


def _result(call: str, result: str) -> dict[str, Stands]:
    """A call and its result; a program may have made the call."""
    return {
        call: Stands("assistant", f". {result}", f"^program . @{result} ^program_output"),
        result: Stands("assistant", f"{call} .", f"^program @{call} . ^program_output"),
    }


def _server_result(result: str, use: str = "server_tool_use") -> dict[str, Stands]:
    return {result: Stands("assistant", f"{use} .", f"^server_tool_use @{use} . ^code_execution_tool_result")}


_ALONE = Stands("assistant")
STANDS: dict[str, dict[str, Stands]] = {
    "openai-chat": {
        "developer": Stands("system", place="first"),
        "system": Stands("system", place="first"),
        "user": Stands("user"),
        "assistant": Stands("assistant", ". results"),
        "tool": Stands("assistant", "call ."),
        "function": Stands("assistant", "legacy ."),
    },
    "openai-responses": {
        "message": Stands("user"),
        **_result("function_call", "function_call_output"),
        **_result("custom_tool_call", "custom_tool_call_output"),
        **_result("computer_call", "computer_call_output"),
        **_result("local_shell_call", "local_shell_call_output"),
        **_result("shell_call", "shell_call_output"),
        **_result("apply_patch_call", "apply_patch_call_output"),
        **_result("tool_search_call", "tool_search_output"),
        **_result("multi_agent_call", "multi_agent_call_output"),
        **dict.fromkeys(("file_search_call", "web_search_call", "image_generation_call", "mcp_list_tools"), _ALONE),
        **dict.fromkeys(("code_interpreter_call", "agent_message", "compaction"), _ALONE),
        "program": Stands("assistant", "^. @function_call @function_call_output ^program_output"),
        "program_output": Stands("assistant", "^program @function_call @function_call_output ^."),
        "mcp_call": Stands("assistant", approved="mcp_approval_request mcp_approval_response ."),
        "mcp_approval_request": Stands("assistant", ". mcp_approval_response mcp_call"),
        "mcp_approval_response": Stands("assistant", "mcp_approval_request . mcp_call"),
        "reasoning": Stands("assistant", ". reply"),
        "item_reference": Stands("assistant", ". function_call_output"),
        "additional_tools": Stands("user"),
        "configuration_update": Stands("user"),
        "compaction_trigger": Stands("user", place="last"),
    },
    "anthropic": {
        "user": Stands("user"),
        "assistant": Stands("assistant"),
        "system": Stands("system"),
        **dict.fromkeys(("image", "document", "search_result", "container_upload"), Stands("user")),
        **dict.fromkeys(("text", "mcp_tool_listing", "fallback", "compaction"), _ALONE),
        **dict.fromkeys(("thinking", "redacted_thinking"), Stands("assistant", "~.")),
        **dict.fromkeys(("tool_addition", "tool_removal"), Stands("system")),
        "tool_use": Stands("assistant", ". tool_result", "^server_tool_use . tool_result ^code_execution_tool_result"),
        "tool_result": Stands("assistant", "tool_use ."),
        "server_tool_use": Stands("assistant", ". result", "^server_tool_use . result ^code_execution_tool_result"),
        **_server_result("web_search_tool_result"),
        **_server_result("web_fetch_tool_result"),
        **_server_result("advisor_tool_result"),
        **_server_result("code_execution_tool_result"),
        **_server_result("bash_code_execution_tool_result"),
        **_server_result("text_editor_code_execution_tool_result"),
        **_server_result("tool_search_tool_result"),
        "mcp_tool_use": Stands("assistant", ". mcp_tool_result"),
        **_server_result("mcp_tool_result", "mcp_tool_use"),
    },
    "gemini": {
        "text": _ALONE,
        "inlineData": Stands("user"),
        "fileData": Stands("user"),
        "functionCall": Stands("assistant", ". functionResponse"),
        "functionResponse": Stands("assistant", "functionCall ."),
        "executableCode": Stands("assistant", ". codeExecutionResult"),
        "codeExecutionResult": Stands("assistant", "executableCode ."),
        "toolCall": Stands("assistant", ". toolResponse"),
        "toolResponse": Stands("assistant", "toolCall ."),
        "thought": Stands("assistant", "~.", on="text"),
        **dict.fromkeys(("thoughtSignature", "partMetadata", "speechMetadata"), Stands("assistant", on="text")),
        **dict.fromkeys(("videoMetadata", "mediaResolution", "mediaProcessing"), Stands("user", on="fileData")),
        "audioTranscription": Stands("user", on="inlineData"),
    },
}
INSIDE: dict[str, dict[str, str]] = {
    "openai-chat": {
        "content": "text image_url input_audio file refusal",
        "tool_calls": "function custom",
    },
    "openai-responses": {
        "content": "input_text input_image input_file output_text refusal reasoning_text encrypted_content",
        "summary": "summary_text",
        "annotations": "file_citation url_citation container_file_citation file_path",
        "output": "input_text input_image input_file output_text computer_screenshot",
        "outputs": "logs image",
        "outcome": "timeout exit",
        "action": "click double_click drag keypress move screenshot scroll type wait "
        "search open_page find_in_page exec",
        "actions": "click double_click drag keypress move screenshot scroll type wait",
        "operation": "create_file delete_file update_file",
        "sources": "url",
        "caller": "direct program",
        "error": "mcp_protocol_error mcp_tool_execution_error http_error",
    },
    "anthropic": {
        "content": "text image document search_result tool_reference browser_state thinking redacted_thinking "
        "tool_use tool_result server_tool_use mcp_tool_use mcp_tool_result mcp_tool_listing container_upload "
        "compaction tool_addition tool_removal fallback "
        "web_search_tool_result web_search_result web_search_tool_result_error "
        "web_fetch_tool_result web_fetch_result web_fetch_tool_result_error "
        "advisor_tool_result advisor_result advisor_redacted_result advisor_tool_result_error "
        "code_execution_tool_result code_execution_result encrypted_code_execution_result code_execution_output "
        "code_execution_tool_result_error "
        "bash_code_execution_tool_result bash_code_execution_result bash_code_execution_output "
        "bash_code_execution_tool_result_error "
        "text_editor_code_execution_tool_result text_editor_code_execution_view_result "
        "text_editor_code_execution_create_result text_editor_code_execution_str_replace_result "
        "text_editor_code_execution_tool_result_error "
        "tool_search_tool_result tool_search_tool_search_result tool_search_tool_result_error",
        "tool_references": "tool_reference",
        "cache_control": "ephemeral",
        "citations": "char_location page_location content_block_location web_search_result_location "
        "search_result_location",
        "source": "base64 url file text content",
        "caller": "direct code_execution_20250825 code_execution_20260120",
        "trigger": "refusal",
        "state_changes": "tab_opened download_started download_completed download_failed",
    },
    "gemini": {},
}
"""Types inside others, by the field that holds them."""
SERVER_TOOLS = {
    "web_search": "web_search_tool_result",
    "web_fetch": "web_fetch_tool_result",
    "advisor": "advisor_tool_result",
    "code_execution": "code_execution_tool_result",
    "bash_code_execution": "bash_code_execution_tool_result",
    "text_editor_code_execution": "text_editor_code_execution_tool_result",
    "tool_search_tool_regex": "tool_search_tool_result",
    "tool_search_tool_bm25": "tool_search_tool_result",
}
"""The result of each tool that Anthropic runs."""
