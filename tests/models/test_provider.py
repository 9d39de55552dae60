"""Calls with every provider: streaming, usage, finish, cancellation, and closed connections."""

from __future__ import annotations

import asyncio
import gc
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest
from step_conversation import cancel_while_stalled

from holdfast.errors import InvalidInput
from holdfast.io.installation import install_command
from holdfast.messages import Media
from holdfast.models import Anthropic, Gemini, OpenAIChat, OpenAIResponses, context_window_of
from holdfast.models.calls import Failure, ModelCall, Reply
from holdfast.tokens import Usage
from providers import ProviderServer, Request, Say, Stall, Status

CALL = ModelCall("Summarize this.", "Be brief.", max_tokens=200, temperature=0.3)
Connect = Callable[..., Any]
Serve = Callable[..., ProviderServer]


def ask(model: Any, call: ModelCall = CALL) -> tuple[Any, list[str]]:
    pieces: list[str] = []
    return anyio.run(model, call, pieces.append), pieces


def test_call_reply_is_streamed_with_usage_and_model(connect: Connect, serve: Serve) -> None:
    server = serve(Say("four score and seven", pieces=5, input=100, output=7, cached=60))
    reply, pieces = ask(connect(server))
    assert reply == Reply(
        "four score and seven", "stop", Usage(40, 7, cache_read=60), model=reply.model
    ) and reply.model.endswith("-test")
    assert pieces == ["four", " sco", "re a", "nd s", "even"]


def test_call_sends_prompt_system_and_limits(connect: Connect, serve: Serve) -> None:
    server = serve()
    ask(connect(server))
    (request,) = server.requests
    assert (request.prompt, request.system) == ("Summarize this.", "Be brief.")
    sent = str(request.body)
    assert "0.3" in sent and "200" in sent and "tools" not in sent


def test_call_without_options_is_valid(connect: Connect, serve: Serve) -> None:
    reply, _ = ask(connect(serve("fine")), ModelCall("Summarize this."))
    assert reply.text == "fine"


@pytest.mark.parametrize(
    "picture", [Media("image", "image/png", "aGVsbG8="), Media("image", url="https://a.test/b.png")]
)
def test_call_sends_images(connect: Connect, serve: Serve, picture: Media) -> None:
    server = serve("a harbour")
    reply, _ = ask(connect(server), ModelCall("What is it?", media=(picture,)))
    assert reply.text == "a harbour"
    assert (picture.data or picture.url) in str(server.requests[0].body)


@pytest.mark.parametrize("finish", ["stop", "length", "tool_call", "refused"])
def test_call_finish_reasons(connect: Connect, serve: Serve, finish: Any) -> None:
    reply, _ = ask(connect(serve(Say("so far", finish=finish))))
    assert reply.finish == finish


def test_call_empty_answer_is_an_empty_reply(connect: Connect, serve: Serve) -> None:
    reply, pieces = ask(connect(serve("")))
    assert (reply.text, reply.finish, pieces) == ("", "stop", [])


def test_call_reasoning_is_streamed_as_empty_deltas(connect: Connect, serve: Serve) -> None:
    reply, pieces = ask(connect(serve(Say("Yes.", thinking="Is it so?", pieces=2))))
    assert reply.text == "Yes."
    assert pieces == ["", "", "Ye", "s."]


def test_model_works_in_several_event_loops(connect: Connect, serve: Serve) -> None:
    model = connect(serve("again"))

    async def several() -> list[str]:
        replies: list[str] = []

        async def one() -> None:
            replies.append((await model(CALL, lambda _: None)).text)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(one)
        return replies

    assert [anyio.run(several) for _ in range(2)] == [["again"] * 3] * 2
    assert ask(model)[0].text == "again"
    gc.collect()


def test_aclose_closes_the_client_and_the_next_call_makes_a_new_one(connect: Connect, serve: Serve) -> None:
    model = connect(serve("here"))

    async def twice() -> str:
        await model.aclose()
        await model(CALL, lambda _: None)
        await model.aclose()
        again = await model(CALL, lambda _: None)
        await model.aclose()
        return str(again.text)

    assert anyio.run(twice) == "here"


async def cancel_scope(ask: Callable[[Callable[[str], None]], Any]) -> tuple[float, float]:
    with anyio.CancelScope() as scope:
        began: list[float] = []
        await ask(lambda _: (began.append(time.perf_counter()), scope.cancel())[0])
    return began[0], time.perf_counter()


async def cancel_task(ask: Callable[[Callable[[str], None]], Any]) -> tuple[float, float]:
    began: list[float] = []
    task = asyncio.ensure_future(ask(lambda _: (began.append(time.perf_counter()), task.cancel())[0]))
    with pytest.raises(asyncio.CancelledError):
        await task
    return began[0], time.perf_counter()


@pytest.mark.parametrize("cancel", [cancel_scope, cancel_task])
def test_call_cancelled_returns_at_once_and_disconnects(connect: Connect, serve: Serve, cancel: Any) -> None:
    server = serve(Say("one two three four", pieces=4, delay=20))
    model = connect(server)

    async def stop_at_first_piece() -> float:
        began, ended = await cancel(lambda listen: model(CALL, listen))
        return float(ended - began)

    assert anyio.run(stop_at_first_piece) < 15
    assert server.requests[0].disconnected.wait(30)
    assert server.requests[0].sent == 1


@pytest.mark.parametrize("stall", [Stall(), Stall(after=2)], ids=["silent", "midway"])
def test_call_stalled_can_be_cancelled(connect: Connect, serve: Serve, stall: Stall) -> None:
    server = serve(stall)
    model = connect(server)
    deltas: list[str] = []

    assert anyio.run(cancel_while_stalled, server, partial(model, CALL, deltas.append))
    assert server.requests[0].disconnected.wait(30)
    assert len(deltas) <= 2


def test_call_exception_of_on_delta_is_raised(connect: Connect, serve: Serve) -> None:
    def listen(_: str) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        anyio.run(connect(serve("some text")), CALL, listen)


def test_call_refused_temperature_is_dropped_for_good(connect: Connect, serve: Serve) -> None:
    def script(request: Request) -> Any:
        if "temperature" not in str(request.body) or request.protocol == "gemini":
            return "warm enough"
        return Status(400, "Unsupported value: 'temperature' does not support 0.3 with this model.")

    server = serve(script)
    model = connect(server)
    assert ask(model)[0].text == "warm enough"
    first = len(server.requests)
    assert ask(model)[0].text == "warm enough"
    assert (first, len(server.requests) - first) in [(2, 1), (1, 1)]


@pytest.mark.parametrize(
    ("make", "variable"),
    [
        (lambda: OpenAIChat("gpt-x"), "OPENAI_API_KEY"),
        (lambda: OpenAIResponses("gpt-x"), "OPENAI_API_KEY"),
        (lambda: Anthropic("claude-x"), "ANTHROPIC_API_KEY"),
        (lambda: Gemini("gemini-x"), "GEMINI_API_KEY"),
    ],
)
def test_missing_key_raises_at_construction(make: Callable[[], Any], variable: str) -> None:
    with pytest.raises(InvalidInput, match=variable):
        make()


def test_anthropic_id_for_a_long_context_is_sent_as_the_plain_id_with_its_beta_header(serve: Serve) -> None:
    server = serve()
    model = Anthropic("claude-test[1m]", api_key="k", base_url=server.anthropic_url)
    ask(model)
    ask(Anthropic("claude-test", api_key="k", base_url=server.anthropic_url))
    long, plain = server.requests
    assert (long.body["model"], long.headers["anthropic-beta"]) == ("claude-test", "context-1m-2025-08-07")
    assert plain.body["model"] == "claude-test" and "anthropic-beta" not in plain.headers
    assert context_window_of(model) == 1_000_000


def test_environment_key_is_not_sent_to_other_base_urls(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    ask(OpenAIChat("gpt-test", base_url=server.openai_url))
    assert "sk-from-the-environment" not in str(server.requests[0].headers)
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    ask(OpenAIChat("gpt-test"))
    assert server.requests[1].headers["authorization"] == "Bearer sk-from-the-environment"


def test_wrong_key_is_an_auth_failure(connect: Connect, serve: Serve) -> None:
    server = serve("hello", key="the-right-key")
    assert ask(connect(server, api_key="another-key"))[0].kind == "auth"
    assert ask(connect(server, api_key="the-right-key"))[0].text == "hello"


def test_custom_client_is_used_without_its_retries(serve: Serve) -> None:
    import openai

    server = serve(Status(500))

    async def run() -> Any:
        async with openai.AsyncOpenAI(api_key="k", base_url=server.openai_url, timeout=60) as client:
            return await OpenAIChat("gpt-test", client=client)(CALL, lambda _: None)

    assert anyio.run(run).kind == "transport"
    assert len(server.requests) == 1


def test_sdk_timeout_is_a_timeout_failure(serve: Serve) -> None:
    import anthropic

    server = serve(Stall(after=1))

    async def run() -> Any:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=server.anthropic_url, timeout=0.1) as client:
            return await Anthropic("claude-test", client=client)(CALL, lambda _: None)

    assert anyio.run(run).kind == "timeout"


def test_blocking_client_is_a_request_failure(serve: Serve) -> None:
    import openai

    with openai.OpenAI(api_key="k", base_url=serve().openai_url) as client:
        assert anyio.run(OpenAIChat("gpt-test", client=client), CALL, lambda _: None).kind == "request"


def test_missing_model_name_is_a_request_failure() -> None:
    answer, _ = ask(Anthropic(None, api_key="k"))
    assert (answer.kind, answer.why) == ("request", "Name the model: anthropic:MODEL.")


def test_unreachable_server_is_a_transport_failure(connect: Connect, serve: Serve) -> None:
    with ProviderServer() as gone:
        pass
    answer, _ = ask(connect(gone))
    assert isinstance(answer, Failure) and answer.kind == "transport"


def test_missing_sdk_raises_with_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.models.provider.find_spec", lambda _: None)
    with pytest.raises(InvalidInput, match=re.escape(install_command("anthropic"))):
        Anthropic("claude-x", api_key="k")


@pytest.mark.anyio
async def test_sdks_are_imported_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share HTTPX, whose parts import each other."""
    running: list[str] = []
    most = 0

    def importing(module: str) -> None:
        nonlocal most
        running.append(module)
        most = max(most, len(running))
        time.sleep(0.02)
        running.remove(module)

    monkeypatch.setattr("holdfast.models.provider.import_module", importing)
    async with anyio.create_task_group() as group:
        for provider in (Anthropic, Gemini, OpenAIChat):
            group.start_soon(anyio.to_thread.run_sync, provider.sdk.load)
    assert most == 1
