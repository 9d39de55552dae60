"""Dumps of every framework's messages, and what an edit of each part changes in them.

Of the steps of an edit `-path` drops, `path=json` replaces, and any other path gets the new text. A message that loses
all of its parts is hidden.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.messages import Json


class Case(NamedTuple):
    dump: Json
    texts: tuple[str | None, ...]
    """What another text changes, by part; None for a part without a text."""
    drops: tuple[str, ...]
    """What dropping a part changes."""


HIDDEN = "hidden"
CACHE: Json = {"type": "ephemeral"}
PNG = "iVBORw0KGgo="
ARGUMENTS = '{"at": "tide"}'


def call(call_id: str) -> Json:
    return {"name": "look", "args": {"at": "tide"}, "id": call_id, "type": "tool_call", "extras": {"x": 1}}


def openai_call(call_id: str) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": ARGUMENTS}}


def chunk(call_id: str, index: int) -> Json:
    return {"name": "look", "args": ARGUMENTS, "id": call_id, "index": index, "type": "tool_call_chunk"}


LANGCHAIN = {
    "text": Case({"type": "human", "content": "first", "id": "m1", "name": "Ann"}, ("content",), (HIDDEN,)),
    "texts": Case(
        {"type": "human", "content": ["first", {"type": "text", "text": "second", "cache_control": CACHE}]},
        ("content/0", "content/1/text"),
        ("-content/0", "-content/1"),
    ),
    "media and unknown": Case(
        {
            "type": "human",
            "content": [
                {"cache_control": CACHE, "type": "text-plain", "text": "first"},
                {"type": "image", "base64": PNG, "mime_type": "image/png"},
                {"type": "tide_chart", "feet": 3},
            ],
        },
        ("content/0/text", None, None),
        ("-content/0", "-content/1", "-content/2"),
    ),
    "reply of blocks": Case(
        {
            "type": "ai",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "first", "citations": [{"url": "https://x.test"}], "cache_control": CACHE},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {}, "caller": {"type": "direct"}},
                {"type": "tool_use", "id": "c2", "name": "look", "input": {}},
            ],
            "tool_calls": [call("c1"), call("c2")],
            "usage_metadata": {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10},
            "response_metadata": {"model_provider": "anthropic"},
            "id": "run-1",
        },
        (None, "content/1/text", None, None),
        ("-content/0", "-content/1", "-content/2 -tool_calls/0", "-content/3 -tool_calls/1"),
    ),
    "reply of items": Case(
        {
            "type": "ai",
            "content": [
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
                {"type": "text", "text": "first", "annotations": [], "id": "msg_1"},
                {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": ARGUMENTS},
            ],
            "tool_calls": [call("c1")],
        },
        (None, "content/1/text", None),
        ("-content/0", "-content/1", "-content/2 -tool_calls"),
    ),
    "reply of fields": Case(
        {
            "type": "ai",
            "content": "first",
            "additional_kwargs": {"reasoning_content": "hm", "tool_calls": [openai_call("c1"), openai_call("c2")]},
            "tool_calls": [call("c1")],
            "invalid_tool_calls": [
                {"type": "invalid_tool_call", "id": "c2", "name": "look", "args": "{", "error": None}
            ],
        },
        (None, "content", None, None),
        (
            "-additional_kwargs/reasoning_content",
            'content=""',
            "-additional_kwargs/tool_calls/0 -tool_calls",
            "-additional_kwargs/tool_calls/1 -invalid_tool_calls",
        ),
    ),
    "call alone": Case(
        {
            "type": "ai",
            "content": [{"type": "text", "text": "first"}],
            "additional_kwargs": {"tool_calls": [openai_call("c1")]},
            "tool_calls": [call("c1")],
        },
        ("content/0/text", None),
        ('content=""', "-additional_kwargs/tool_calls -tool_calls"),
    ),
    "streamed reply": Case(
        {
            "type": "AIMessageChunk",
            "content": "first",
            "tool_calls": [call("c1"), call("c2")],
            "tool_call_chunks": [chunk("c1", 0), chunk("c2", 1)],
        },
        ("content", None, None),
        ('content=""', "-tool_calls/0 -tool_call_chunks/0", "-tool_calls/1 -tool_call_chunks/1"),
    ),
    "legacy call": Case(
        {"type": "ai", "content": "first", "additional_kwargs": {"function_call": {"name": "look", "arguments": "{}"}}},
        ("content", None),
        ('content=""', "-additional_kwargs/function_call"),
    ),
    "result": Case(
        {"type": "tool", "content": "first", "name": "look", "id": "m2", "artifact": {"rows": 1}, "tool_call_id": "c1"},
        ("content",),
        (HIDDEN,),
    ),
    "failed result of blocks": Case(
        {
            "type": "tool",
            "content": [
                {"type": "image", "base64": PNG, "mime_type": "image/png"},
                {"type": "text", "text": "first", "cache_control": CACHE},
                {"type": "text", "text": "second"},
            ],
            "tool_call_id": "c1",
            "status": "error",
        },
        ("-content/0 content/1/text -content/2",),
        (HIDDEN,),
    ),
    "result of media": Case(
        {"type": "tool", "content": [{"type": "image", "base64": PNG}], "tool_call_id": "c1"}, ("content",), (HIDDEN,)
    ),
    "function": Case({"type": "function", "content": "first", "name": "look"}, ("content",), (HIDDEN,)),
}


def tool_return(content: Any, call_id: str = "c1", **more: Any) -> Json:
    return {"tool_name": "look", "content": content, "tool_call_id": call_id, "part_kind": "tool-return", **more}


PYDANTIC_AI = {
    "prompts": Case(
        {
            "parts": [
                {"content": "first", "timestamp": "2026-03-01T12:00:00Z", "part_kind": "user-prompt"},
                {"content": ["second", {"kind": "cache-point", "ttl": "5m"}], "part_kind": "user-prompt"},
                {"content": ["third"], "name": "Ann", "part_kind": "user-prompt"},
            ],
            "kind": "request",
            "instructions": "be brief",
        },
        ("parts/0/content", "parts/1/content/0", None, "parts/2/content/0"),
        ("-parts/0", "-parts/1/content/0", "-parts/1/content/1", "-parts/2"),
    ),
    "system": Case(
        {"parts": [{"content": "first", "part_kind": "system-prompt", "dynamic_ref": "d"}], "kind": "request"},
        ("parts/0/content",),
        (HIDDEN,),
    ),
    "items": Case(
        {
            "parts": [
                {
                    "content": [
                        {"content": "first", "metadata": {"a": 1}, "kind": "text-content"},
                        {"content": "<s>second</s>", "kind": "structured-content", "value": "second", "tag": "s"},
                        {"url": "https://x.test/a.png", "kind": "image-url", "media_type": "image/png"},
                    ],
                    "part_kind": "user-prompt",
                }
            ],
            "kind": "request",
        },
        (
            "parts/0/content/0/content",
            'parts/0/content/1/content parts/0/content/1/kind="text-content"'
            " -parts/0/content/1/value -parts/0/content/1/tag",
            None,
        ),
        ("-parts/0/content/0", "-parts/0/content/1", "-parts/0/content/2"),
    ),
    "reply": Case(
        {
            "parts": [
                {"content": "hm", "signature": "s", "provider_name": "anthropic", "part_kind": "thinking"},
                {
                    "content": "first",
                    "id": "t1",
                    "provider_name": "openai",
                    "provider_details": {"phase": "x"},
                    "part_kind": "text",
                },
                {"tool_name": "look", "args": {"id": "c1"}, "tool_call_id": "c1", "part_kind": "tool-call"},
                {"tool_name": "search", "args": {}, "tool_call_id": "n1", "part_kind": "builtin-tool-call"},
            ],
            "kind": "response",
            "model_name": "m",
        },
        (None, "parts/1/content", None, None),
        ("-parts/0", "-parts/1", "-parts/2", "-parts/3"),
    ),
    "returns": Case(
        {
            "parts": [
                tool_return("first", metadata={"rows": 1}),
                tool_return(["second", {"feet": 3}], "c2", content_file_digests=[], outcome="failed"),
                tool_return({"discovered_tools": []}, "c3", tool_kind="tool-search") | {"tool_name": "search_tools"},
                tool_return({"feet": 4}, "c4", tool_kind="harbour.depth"),
                {"content": [{"kind": "image-url", "url": "https://x.test"}, "third"], "part_kind": "user-prompt"},
            ],
            "kind": "request",
        },
        (
            "parts/0/content",
            "parts/1/content",
            "parts/2/content -parts/2/tool_kind",
            "parts/3/content",
            None,
            "parts/4/content/1",
        ),
        ("-parts/0", "-parts/1", "-parts/2", "-parts/3", "-parts/4/content/0", "-parts/4/content/1"),
    ),
    "return of nothing": Case(
        {
            "parts": [
                {"tool_name": "look", "tool_call_id": "c1", "part_kind": "tool-return", "outcome": "success"},
                tool_return("first", "c2"),
            ],
            "kind": "request",
        },
        ("parts/0/content", "parts/1/content"),
        ("-parts/0", "-parts/1"),
    ),
    "speech": Case(
        {
            "parts": [
                {"speaker": "user", "transcript": "ahoy", "part_kind": "speech"},
                {"content": "first", "part_kind": "user-prompt"},
            ],
            "kind": "request",
        },
        (None, "parts/1/content"),
        ("-parts/0", "-parts/1"),
    ),
    "retries": Case(
        {
            "parts": [
                {"content": "first", "tool_name": "look", "tool_call_id": "c1", "part_kind": "retry-prompt"},
                {
                    "content": [{"type": "missing", "loc": ["second"], "msg": "Field required", "input": {}}],
                    "retry": {"cause": "validation_error"},
                    "part_kind": "retry-feedback",
                },
            ],
            "kind": "request",
        },
        ("parts/0/content", "parts/1/content"),
        ("-parts/0", "-parts/1"),
    ),
}


def answer(result: Any, call_id: str, *, error: bool = False) -> Json:
    origin = {"tool_name": "look", "arguments": {"id": "x"}, "id": call_id, "extra": None}
    return {"tool_call_result": {"result": result, "origin": origin, "error": error}}


IMAGE = {"image": {"base64_image": PNG, "mime_type": "image/png", "detail": None, "meta": {}, "validation": False}}
HAYSTACK = {
    "texts": Case(
        {"role": "user", "meta": {"x": 1}, "name": "Ann", "content": [{"text": "first"}, IMAGE, {"text": "second"}]},
        ("content/0/text", None, "content/2/text"),
        ("-content/0", "-content/1", "-content/2"),
    ),
    "reply": Case(
        {
            "role": "assistant",
            "meta": {"usage": {"prompt_tokens": 9}},
            "name": None,
            "content": [
                {"reasoning": {"reasoning_text": "hm", "extra": {"signature": "s"}}},
                {"text": "first"},
                {"tool_call": {"tool_name": "look", "arguments": {"id": "c1"}, "id": "c1", "extra": {"x": 1}}},
            ],
        },
        (None, "content/1/text", None),
        ("-content/0", "-content/1", "-content/2"),
    ),
    "results": Case(
        {
            "role": "tool",
            "meta": {},
            "name": None,
            "content": [
                answer("first", "c1"),
                answer([IMAGE, {"text": "second"}, {"text": "third"}], "c2", error=True),
                answer([IMAGE], "c3"),
            ],
        },
        (
            "content/0/tool_call_result/result",
            "-content/1/tool_call_result/result/0 content/1/tool_call_result/result/1/text"
            " -content/1/tool_call_result/result/2",
            "content/2/tool_call_result/result",
        ),
        ("-content/0", "-content/1", "-content/2"),
    ),
}


def content(kind: str, **fields: Any) -> Json:
    return {"type": kind, **fields, "additional_properties": {"cache_control": CACHE}}


def microsoft(role: str, *contents: Json) -> Json:
    about = {"author_name": "Ann", "message_id": "m1", "additional_properties": {"berth": 2}}
    return {"type": "message", "role": role, "contents": list(contents), **about}


DATA = content("data", uri=f"data:image/png;base64,{PNG}", media_type="image/png")
AGENT_FRAMEWORK = {
    "texts": Case(
        microsoft("user", content("text", text="first"), DATA, content("text", text="second")),
        ("contents/0/text", None, "contents/2/text"),
        ("-contents/0", "-contents/1", "-contents/2"),
    ),
    "reply": Case(
        microsoft(
            "assistant",
            content("text_reasoning", text="hm", protected_data="xyz", id="rs_1"),
            content("text", text="first", annotations=[]),
            content("function_call", call_id="c1", name="look", arguments={"id": "c1"}, id="fc_1"),
            content("mcp_server_tool_call", call_id="n1"),
        ),
        (None, "contents/1/text", None, None),
        ("-contents/0", "-contents/1", "-contents/2", "-contents/3"),
    ),
    "results": Case(
        microsoft(
            "tool",
            content("function_result", call_id="c1", result="first", items=[content("text", text="first")]),
            content(
                "function_result",
                call_id="c2",
                exception="FunctionInvocationError",
                result="second\nthird",
                items=[DATA, content("text", text="second"), content("text", text="third")],
            ),
            content("function_result", call_id="c3", result="", items=[DATA]),
            content("function_result", call_id="c4", result="fourth"),
        ),
        (
            "contents/0/result contents/0/items/0/text",
            "contents/1/result -contents/1/items/0 contents/1/items/1/text -contents/1/items/2",
            'contents/2/result contents/2/items=[{"type":"text","text":"short"}]',
            "contents/3/result",
        ),
        ("-contents/0", "-contents/1", "-contents/2", "-contents/3"),
    ),
}


def llama(role: str, *blocks: Json, **more: Any) -> Json:
    return {"role": role, "blocks": list(blocks), "additional_kwargs": {"berth": 2, **more}}


def text_block(text: str) -> Json:
    return {"block_type": "text", "text": text}


LLAMA_CALL = {"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "look", "tool_kwargs": {"id": "c1"}}
LLAMA_IMAGE = {"block_type": "image", "image": PNG, "image_mimetype": "image/png"}
LLAMA_INDEX = {
    "texts": Case(
        llama("user", text_block("first"), LLAMA_IMAGE, text_block("second")),
        ("blocks/0/text", None, "blocks/2/text"),
        ("-blocks/0", "-blocks/1", "-blocks/2"),
    ),
    "reply": Case(
        llama(
            "assistant",
            {"block_type": "thinking", "content": "hm", "additional_information": {"signature": "s"}},
            text_block("first"),
            LLAMA_CALL,
            {"block_type": "cache", "cache_control": CACHE | {"ttl": "5m"}},
            tool_calls=[openai_call("c1"), openai_call("c2")],
        ),
        (None, "blocks/1/text", None, None, None),
        (
            "-blocks/0",
            "-blocks/1",
            "-blocks/2 -additional_kwargs/tool_calls/0",
            "-blocks/3",
            "-additional_kwargs/tool_calls/1",
        ),
    ),
    "signed reply": Case(
        llama(
            "assistant",
            {"block_type": "thinking", "content": "hm", "additional_information": {}},
            text_block("first"),
            LLAMA_CALL,
            thought_signatures=["a", "b", None],
        ),
        (None, "blocks/1/text", None),
        tuple(f"-blocks/{index} -additional_kwargs/thought_signatures/{index}" for index in range(3)),
    ),
    "older reply": Case(
        llama("assistant", text_block("first"), tool_calls=[openai_call("c1")]),
        ("blocks/0/text", None),
        ("-blocks", "-additional_kwargs/tool_calls"),
    ),
    "result": Case(
        llama(
            "tool", text_block("[tool error] first"), LLAMA_IMAGE, text_block("second"), tool_call_id="c1", name="look"
        ),
        ('blocks/0/text="[tool\\u0020error]\\u0020short" -blocks/1 -blocks/2',),
        (HIDDEN,),
    ),
    "result that quotes the mark of an error": Case(
        llama("tool", LLAMA_IMAGE, text_block("[tool error] first"), tool_call_id="c1"),
        ("-blocks/0 blocks/1/text",),
        (HIDDEN,),
    ),
    "result of media": Case(
        llama("tool", LLAMA_IMAGE, tool_call_id="c1"), ('blocks=[{"block_type":"text","text":"short"}]',), (HIDDEN,)
    ),
}


def event(kind: str, /, **fields: Any) -> Json:
    return {"__event__": f"ag2.events.{kind}", "created_at": 1.5, **fields}


def text_input(text: str) -> Json:
    return event("input_events.TextInput", metadata={"a": 1}, content=text)


def outcome(kind: str, call_id: str, *parts: Json, **more: Any) -> Json:
    data = {"parts": list(parts), "final": False, "metadata": {}}
    result = {"__dataclass__": "ag2.events.tool_events.ToolResult", "data": data}
    return event(f"tool_events.{kind}", parent_id=call_id, name="look", result=result, **more)


def response(content: Any, *calls: Json, **more: Any) -> Json:
    message = event("types.ModelMessage", metadata={"b": 2}, content=content) if content else None
    made = event("tool_events.ToolCallsEvent", calls=list(calls))
    return event("types.ModelResponse", response_force=False, tool_calls=made, model="m", **more, message=message)


AG2_CALL = event("tool_events.ToolCallEvent", id="c1", arguments=ARGUMENTS, vendor_metadata={"x": 1}, name="look")
AG2_IMAGE = event(
    "input_events.BinaryInput",
    vendor_metadata={"cache_control": CACHE},
    kind={"__enum__": "ag2.events.input_events.BinaryType", "value": "image"},
    media_type="image/png",
    data={"__bytes__": PNG},
)
AG2_DATA = event("input_events.DataInput", metadata={"a": 1}, data={"b": "data"})
FILE = {"__dataclass__": "ag2.events.types.BinaryResult", "data": {"data": {"__bytes__": PNG}, "metadata": {}}}
AG2 = {
    "request": Case(
        event("input_events.ModelRequest", parts=[text_input("first"), AG2_DATA, AG2_IMAGE]),
        (
            "parts/0/content",
            'parts/1/__event__="ag2.events.input_events.TextInput" parts/1/content -parts/1/data',
            None,
        ),
        ("-parts/0", "-parts/1", "-parts/2"),
    ),
    "reply": Case(
        response("first", AG2_CALL, files=[FILE]),
        ("message/content", None, None),
        ("message/content=[]", "-files", "-tool_calls/calls"),
    ),
    "reply of texts": Case(
        response(["first", "second"], AG2_CALL, AG2_CALL | {"id": "c2"}),
        ("message/content/0", "message/content/1", None, None),
        ("-message/content/0", "-message/content/1", "-tool_calls/calls/0", "-tool_calls/calls/1"),
    ),
    "results": Case(
        event(
            "tool_events.ToolResultsEvent",
            results=[
                outcome("ToolResultEvent", "c1", text_input("first")),
                outcome(
                    "ToolErrorEvent",
                    "c2",
                    AG2_IMAGE,
                    text_input("second"),
                    AG2_DATA,
                    error={"__exception__": "Exception", "message": "second"},
                ),
                outcome("ToolResultEvent", "c3", AG2_IMAGE),
            ],
        ),
        (
            "results/0/result/data/parts/0/content",
            "-results/1/result/data/parts/0 results/1/result/data/parts/1/content -results/1/result/data/parts/2"
            " results/1/error/message",
            'results/2/result/data/parts=[{"__event__":"ag2.events.input_events.TextInput","content":"short"}]',
        ),
        ("-results/0", "-results/1", "-results/2"),
    ),
    "summary": Case(
        {"__event__": "ag2.compact.CompactionSummary", "created_at": 1.5, "summary": "first", "event_count": 3},
        ("summary",),
        (HIDDEN,),
    ),
}


def agno(role: str, **fields: Any) -> Json:
    return {"id": "m1", "role": role, **fields, "created_at": 1}


AGNO_IMAGE = {"content": PNG, "id": "i", "mime_type": "image/png"}
CLAUDES: list[Json] = [
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "redacted_thinking", "data": "xyz"},
    {"type": "text", "text": "first", "citations": []},
    {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
]
AGNO = {
    "texts": Case(
        agno("user", content=["first", {"type": "text", "text": "second"}], images=[AGNO_IMAGE], name="Ann"),
        ("content/0", "content/1/text", None),
        ("-content/0", "-content/1", "-images"),
    ),
    "reply": Case(
        agno(
            "assistant",
            content="first",
            tool_calls=[openai_call("c1"), openai_call("c2")],
            redacted_reasoning_content="xyz",
            provider_data={"signature": "s", "thought_signature": "t"},
            reasoning_content="hm",
            metrics={"input_tokens": 9},
        ),
        (None, None, "content", None, None),
        (
            "-reasoning_content -provider_data/signature",
            "-redacted_reasoning_content",
            "-content",
            "-tool_calls/0",
            "-tool_calls/1",
        ),
    ),
    "reply of Claude": Case(
        agno(
            "assistant",
            content="first",
            tool_calls=[openai_call("c1")],
            redacted_reasoning_content="xyz",
            provider_data={"signature": "s", "content_blocks": CLAUDES, "server_tool_blocks": []},
            reasoning_content="hm",
        ),
        (None, None, "content -provider_data/content_blocks", None),
        (
            "-reasoning_content -provider_data/signature -provider_data/content_blocks/0",
            "-redacted_reasoning_content -provider_data/content_blocks/1",
            "-content -provider_data/content_blocks",
            "-tool_calls -provider_data/content_blocks/3",
        ),
    ),
    "reply of OpenAI": Case(
        agno(
            "assistant",
            content="first",
            provider_data={"response_id": "r", "reasoning_output": {"type": "reasoning", "id": "rs_1", "summary": []}},
            reasoning_content="hm",
        ),
        (None, "content"),
        ("-reasoning_content -provider_data/reasoning_output", "-content"),
    ),
    "result": Case(
        agno(
            "tool", content="first", compressed_content="fir", tool_call_id="c1", tool_name="look", tool_args={"a": 1}
        ),
        ("content compressed_content",),
        (HIDDEN,),
    ),
    "failed result of blocks": Case(
        agno(
            "tool",
            content=[{"type": "text", "text": "first", "cache_control": CACHE}, {"type": "text", "text": "second"}],
            tool_call_id="c1",
            images=[AGNO_IMAGE],
            tool_call_error=True,
        ),
        ("content/0/text -content/1 -images",),
        (HIDDEN,),
    ),
    "joined results": Case(
        agno("tool", content=["first"], tool_name="look", tool_calls=[{"tool_call_id": "c1", "content": "first"}]),
        ("content tool_calls/0/content",),
        (HIDDEN,),
    ),
}


def strands(role: str, *blocks: Json) -> Json:
    return {"role": role, "content": list(blocks), "tracking_id": "m1", "metadata": {"custom": {"berth": 2}}}


def tool_result(call_id: str, *blocks: Json, status: str = "success") -> Json:
    return {"toolResult": {"status": status, "toolUseId": call_id, "content": list(blocks)}}


CACHE_POINT = {"cachePoint": {"type": "default"}}
STRANDS_IMAGE = {"image": {"format": "png", "source": {"bytes": {"__bytes_encoded__": True, "data": PNG}}}}
STRANDS = {
    "texts": Case(
        strands("user", {"text": "first"}, STRANDS_IMAGE, {"guardContent": {"text": {"text": "second"}}}, CACHE_POINT),
        ("content/0/text", None, "content/2/guardContent/text/text", None),
        ("-content/0", "-content/1", "-content/2", "-content/3"),
    ),
    "reply": Case(
        strands(
            "assistant",
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
            {"citationsContent": {"citations": [{"title": "Log"}], "content": [{"text": "first"}, {"text": "second"}]}},
            {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"id": "c1"}, "reasoningSignature": "s"}},
        ),
        (None, "content/1/citationsContent/content/0/text -content/1/citationsContent/content/1", None),
        ("-content/0", "-content/1", "-content/2"),
    ),
    "results": Case(
        strands(
            "user",
            tool_result("c1", {"text": "first"}),
            tool_result("c2", STRANDS_IMAGE, {"text": "second"}, {"json": {"a": "third"}}, status="error"),
            tool_result("c3", {"json": {"a": "fourth"}}),
            tool_result("c4"),
            CACHE_POINT,
        ),
        (
            "content/0/toolResult/content/0/text",
            "-content/1/toolResult/content/0 content/1/toolResult/content/1/text -content/1/toolResult/content/2",
            'content/2/toolResult/content=[{"text":"short"}]',
            'content/3/toolResult/content=[{"text":"short"}]',
            None,
        ),
        ("-content/0", "-content/1", "-content/2", "-content/3", "-content/4"),
    ),
}
DUMPS: dict[str, dict[str, Case]] = {
    "langchain": LANGCHAIN,
    "pydantic_ai": PYDANTIC_AI,
    "haystack": HAYSTACK,
    "agent_framework": AGENT_FRAMEWORK,
    "llama_index": LLAMA_INDEX,
    "ag2": AG2,
    "agno": AGNO,
    "strands": STRANDS,
}
