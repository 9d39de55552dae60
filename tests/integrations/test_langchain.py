"""LangChain messages in every form, and the middleware: async, restarts, recall, sub-agents, peers' defects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from tests.integrations.agents.langchain import chat_model
from tests.integrations.harbour_task import ANSWER, SMALL, SYSTEM, Harbour, HarbourModel, read_log
from tests.providers import Call, Request, Say

from holdfast import Keeper, SessionService, check, compact, open_store
from holdfast.errors import InvalidInput, InvalidLimit
from holdfast.integrations.conversation import AgentConversations
from holdfast.integrations.langchain import HoldfastMiddleware
from holdfast.messages import Media, Opaque, Reasoning, Text, ToolCall, ToolResult, decode_all, encode_all
from holdfast.messages.frameworks import dump_objects, load_object
from holdfast.tokens import Tokenizer

PNG = "iVBORw0KGgo="
CALL = {"name": "look", "args": {"at": "tide"}, "id": "c1", "type": "tool_call"}
LOOKED = ToolCall("c1", "look", {"at": "tide"})
MESSAGES: dict[str, tuple[Any, str, tuple[Any, ...]]] = {
    "text": (HumanMessage("ahoy", id="m1", name="Ann"), "user", (Text("ahoy"),)),
    "system": (SystemMessage("be brief"), "system", (Text("be brief"),)),
    "texts": (HumanMessage(["a", {"type": "text", "text": "b", "cache": 1}]), "user", (Text("a"), Text("b"))),
    "call": (AIMessage("", tool_calls=[CALL]), "assistant", (LOOKED,)),
    "call as a block": (
        AIMessage([{"type": "tool_use", "id": "c1", "name": "look", "input": {}}], tool_calls=[CALL]),
        "assistant",
        (LOOKED,),
    ),
    "invalid call": (
        AIMessage("", invalid_tool_calls=[{"name": "look", "args": "{", "id": "c2", "error": "cut off"}]),
        "assistant",
        (ToolCall("c2", "look", "{"),),
    ),
    "legacy call": (
        AIMessage("", additional_kwargs={"function_call": {"name": "look", "arguments": "{}"}}),
        "assistant",
        (ToolCall("nameless-0-0", "look", "{}", "function_call"),),
    ),
    "thinking": (
        AIMessage([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "so"}]),
        "assistant",
        (Reasoning("hm", "s", origin="langchain"), Text("so")),
    ),
    "redacted thinking": (
        AIMessage([{"type": "redacted_thinking", "data": "xyz"}]),
        "assistant",
        (Reasoning("", None, "xyz", origin="langchain"),),
    ),
    "reasoning item": (
        AIMessage([{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}]),
        "assistant",
        (Reasoning("hm", None, None, "rs_1", "langchain"),),
    ),
    "reasoning content": (
        AIMessage("so", additional_kwargs={"reasoning_content": "hm"}),
        "assistant",
        (Reasoning("hm", origin="langchain"), Text("so")),
    ),
    "image url": (
        HumanMessage([{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]),
        "user",
        (Media("image", "image/png", PNG),),
    ),
    "image block": (
        HumanMessage([{"type": "image", "base64": PNG, "mime_type": "image/png"}]),
        "user",
        (Media("image", "image/png", PNG),),
    ),
    "source block": (
        HumanMessage([{"type": "file", "source_type": "url", "url": "https://x.test/a.pdf"}]),
        "user",
        (Media("file", None, None, "https://x.test/a.pdf"),),
    ),
    "unknown block": (
        HumanMessage([{"type": "tide_chart", "feet": 3}]),
        "user",
        (Opaque("tide_chart", {"type": "tide_chart", "feet": 3}, "langchain"),),
    ),
    "result": (
        ToolMessage("3 feet", tool_call_id="c1", name="look", artifact={"rows": [1]}),
        "tool",
        (ToolResult("c1", (Text("3 feet"),), False, "look"),),
    ),
    "failed result": (
        ToolMessage("no tide", tool_call_id="c1", status="error"),
        "tool",
        (ToolResult("c1", (Text("no tide"),), True),),
    ),
    "usage": (
        AIMessage("hi", usage_metadata={"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}, id="run-1"),
        "assistant",
        (Text("hi"),),
    ),
    "chunk": (AIMessageChunk("hi"), "assistant", (Text("hi"),)),
    "chat": (ChatMessage("hi", role="assistant"), "assistant", (Text("hi"),)),
    "function": (
        FunctionMessage("3", name="look"),
        "tool",
        (ToolResult("nameless-0-0", (Text("3"),), False, "look", "function_call"),),
    ),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_message_is_decoded_and_comes_back_equal(kind: str) -> None:
    given, role, parts = MESSAGES[kind]
    (message,), format = decode_all([given])
    assert (message.role, message.parts, format) == (role, parts, "langchain")
    (payload,) = encode_all([message], format)
    assert load_object(payload) == given
    assert type(load_object(payload)) is type(given)
    payloads, originals = dump_objects([given])
    assert originals is not None and originals.restore(payloads)[0] is given


def test_message_with_an_object_that_is_not_json_is_returned_as_it_came() -> None:
    given = [
        HumanMessage("look"),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("3", tool_call_id="c1", artifact=object()),
    ]
    assert compact(given, budget=1_000).messages[2] is given[2]


def test_message_that_is_not_for_a_model_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="RemoveMessage is not a message of langchain"):
        compact([RemoveMessage(id="m1")], budget=1_000)


def test_messages_convert_to_a_wire_format() -> None:
    given = [HumanMessage("look"), AIMessage("", tool_calls=[CALL]), ToolMessage("3", tool_call_id="c1")]
    result = compact(given, budget=1_000, format="anthropic")
    assert check(result.messages, "anthropic") == []
    assert result.messages[1]["content"][0]["type"] == "tool_use"


@pytest.mark.anyio
async def test_keeper_takes_messages_and_returns_them() -> None:
    keeper = Keeper(window=3_000)
    history: list[Any] = [SystemMessage("be brief"), HumanMessage("Read the logs.")]
    compacted = 0
    for number in range(12):
        context = await keeper.prepare_step(history)
        assert all(type(message).__module__.startswith("langchain_core") for message in context.messages)
        assert context.messages[0] is history[0]
        assert check(context.messages[1:], "langchain") == []
        compacted += context.is_compacted
        call = {"name": "read_log", "args": {"number": number}, "id": f"c{number}"}
        history += [AIMessage("", tool_calls=[call]), ToolMessage(read_log(number), tool_call_id=f"c{number}")]
    assert compacted


# -- the middleware ----------------------------------------------------------------------------------------------------


def test_async_streaming_agent_finishes() -> None:
    async def run(server: Any) -> str:
        agent = create_agent(
            chat_model(server), [read_log], system_prompt=SYSTEM, middleware=[HoldfastMiddleware(window=SMALL.window)]
        )
        shown = ""
        async for token, _ in agent.astream(
            {"messages": [("user", SMALL.prompt)]}, {"recursion_limit": 2_000}, stream_mode="messages"
        ):
            shown += token.text if token.type != "tool" else ""
        return shown

    with Harbour() as server:
        assert ANSWER in anyio.run(run, server)
    assert server.refused == [] and server.overflowed == 0


def test_state_and_checkpointer_keep_every_message_and_a_new_process_continues(tmp_path: Path) -> None:
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "harbour"}, "recursion_limit": 2_000}
    with Harbour() as server:
        for prompt in (SMALL.prompt, "What was the seal word?"):
            middleware = HoldfastMiddleware(window=SMALL.window, store=tmp_path / "agent.db")  # as in another process
            agent = create_agent(
                chat_model(server), [read_log], system_prompt=SYSTEM, middleware=[middleware], checkpointer=saver
            )
            state = agent.invoke({"messages": [("user", prompt)]}, config)
        assert len(state["messages"]) > 2 * SMALL.logs and ANSWER in state["messages"][-1].text
        assert server.requests[-1].size < SMALL.window

    async def rounds() -> tuple[int, int]:
        async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
            assert [record.id for record in await sessions.list()] == ["harbour"]
            return await sessions.round("harbour"), len(await sessions.events("harbour", kind="message"))

    done, messages = anyio.run(rounds)
    assert done >= 2 and messages >= len(state["messages"]) - 1


def test_agent_recalls_what_was_archived() -> None:
    numbers = iter(range(1, 1_000))

    def read_next() -> str:
        """Reads the next log."""
        return read_log(next(numbers))

    with Harbour() as server:
        server.script = _recalling
        agent = create_agent(chat_model(server), [read_next], middleware=[HoldfastMiddleware(window=SMALL.window)])
        state = agent.invoke({"messages": [("user", "Read the logs.")]}, {"recursion_limit": 500})
    assert state["messages"][-1].text == "It has 97 feet."
    assert server.refused == []


def _recalling(request: Request) -> Any:
    """Reads more than the window holds, then looks up the log of a berth."""
    messages = request.body["messages"]
    last = messages[-1]
    if last["role"] == "tool" and last["content"].startswith("#"):
        return "It has 97 feet." if "berth 2 has 97 feet" in last["content"] else "I cannot find it."
    if request.number > SMALL.logs:
        return Say("", calls=(Call("recall_search", {"query": "berth 2 has"}),))
    return Say("", calls=(Call("read_next"),))


def test_sub_agent_has_a_conversation_of_its_own(tmp_path: Path) -> None:
    with Harbour() as server:
        middleware = HoldfastMiddleware(window=SMALL.window, store=tmp_path / "agent.db")
        sub_agent = create_agent(chat_model(server), [read_log], middleware=[middleware])

        def ask_clerk(question: str) -> str:
            """Asks the clerk."""
            state = sub_agent.invoke({"messages": [("user", question)]}, {"recursion_limit": 2_000})
            return str(state["messages"][-1].text)

        clerk = HarbourModel()

        def script(request: Request) -> Any:
            if any(tool["function"]["name"] == "ask_clerk" for tool in request.body["tools"]):
                asked = any(message["role"] == "tool" for message in request.body["messages"])
                return "Done." if asked else Say("", calls=(Call("ask_clerk", {"question": SMALL.prompt}),))
            return clerk(request)

        server.script = script
        agent = create_agent(chat_model(server), [ask_clerk], middleware=[middleware], checkpointer=InMemorySaver())
        state = agent.invoke(
            {"messages": [("user", "Ask the clerk.")]}, {"configurable": {"thread_id": "t"}, "recursion_limit": 2_000}
        )
    assert ANSWER in state["messages"][-2].text and server.refused == []

    async def names() -> list[str]:
        async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
            return sorted(record.id for record in await sessions.list())

    first, second = anyio.run(names)
    assert first == "t" and second.startswith("t/")


def test_summary_by_a_chat_model_is_verified_and_not_streamed() -> None:
    with Harbour() as server:
        middleware = HoldfastMiddleware(window=SMALL.window, summarizer=chat_model(server))
        agent = create_agent(chat_model(server), [read_log], system_prompt=SYSTEM, middleware=[middleware])
        tokens = [
            token.text
            for token, _ in agent.stream(
                {"messages": [("user", SMALL.prompt)]}, {"recursion_limit": 2_000}, stream_mode="messages"
            )
            if token.type != "tool"
        ]
        assert ANSWER in "".join(tokens)
        assert "The user wants all logs" not in "".join(tokens)
        assert server.model.summaries >= 2 and server.refused == []


# -- defects of LangChain's own means, in the same set-up --------------------------------------------------------------


def test_results_of_other_calls_between_are_not_orphaned() -> None:
    """SummarizationMiddleware keeps a result whose call it removed, if another id of the run matches."""
    run = [
        HumanMessage("x " * 200),
        AIMessage("", tool_calls=[CALL | {"id": "Z"}]),
        AIMessage("", tool_calls=[CALL | {"id": "A"}]),
        ToolMessage("z", tool_call_id="Z"),
        ToolMessage("a", tool_call_id="A"),
        HumanMessage("go on"),
    ]
    theirs = SummarizationMiddleware(FakeListChatModel(responses=["s"]), trigger=("messages", 2), keep=("messages", 3))
    kept = theirs.before_model({"messages": list(run)}, None)["messages"][2:]  # type: ignore[typeddict-item,arg-type,index]
    assert any(problem.rule == "orphan-result" for problem in check(kept, "langchain"))
    assert check(compact(run, budget=150).messages, "langchain") == []


def test_long_tool_loop_after_one_request_keeps_the_task() -> None:
    """SummarizationMiddleware replaces it by a sentence, without a call of the model."""
    history: list[Any] = [HumanMessage(SMALL.prompt)]
    for number in range(60):
        call = {"name": "read_log", "args": {"number": number}, "id": f"c{number}"}
        history += [AIMessage("", tool_calls=[call]), ToolMessage(read_log(number), tool_call_id=f"c{number}")]
    theirs = SummarizationMiddleware(FakeListChatModel(responses=["s"]), trigger=("tokens", 9_000))
    kept = theirs.before_model({"messages": list(history)}, None)["messages"][1:]  # type: ignore[typeddict-item,arg-type,index]
    assert not any("seal word" in message.text for message in kept)
    ours = compact(history, budget=9_000).messages
    assert any("seal word" in message.text for message in ours)


def test_window_below_one_is_refused_at_once() -> None:
    with pytest.raises(InvalidLimit, match="window must be a whole number of at least 1, not -5"):
        HoldfastMiddleware(window=-5)


@pytest.mark.parametrize(
    "words", ["the tide turns at noon ", "港の水は深く、起重機は遅い。", "𝔥𝔞𝔯𝔟𝔬𝔲𝔯 ⟁⟁ ᚠᚢᚦ "], ids=ascii
)
def test_growing_history_stays_inside_the_window_in_any_script(words: str) -> None:
    conversation, count = AgentConversations(window=8_000).conversation("tides"), Tokenizer()
    history: list[BaseMessage] = []
    for number in range(40):
        history.append(HumanMessage(f"{number} {words * 12}"))
        sent, _ = decode_all(conversation.prepare(history))
        assert count.tokens(sum(map(count.measure, sent))) < 8_000
        history.append(AIMessage(words * 12))
