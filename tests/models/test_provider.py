"""What holds for every provider: it streams, counts, says how it ended, can be stopped, and leaves nothing open."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from holdfast.calls import Failure, ModelCall, Reply
from holdfast.errors import InvalidInput
from holdfast.messages import Media
from holdfast.models import Anthropic, Gemini, OpenAIChat, OpenAIResponses
from holdfast.tokens import Usage
from providers import ProviderServer, Request, Say, Stall, Status

CALL = ModelCall("Summarize this.", "Be brief.", max_tokens=200, temperature=0.3)
Connect = Callable[..., Any]
Serve = Callable[..., ProviderServer]


def ask(model: Any, call: ModelCall = CALL) -> tuple[Any, list[str]]:
    pieces: list[str] = []
    return anyio.run(model, call, pieces.append), pieces


def test_a_reply_is_streamed_counted_and_named(connect: Connect, serve: Serve) -> None:
    server = serve(Say("four score and seven", pieces=5, input=100, output=7, cached=60))
    reply, pieces = ask(connect(server))
    assert reply == Reply(
        "four score and seven", "stop", Usage(40, 7, cache_read=60), model=reply.model
    ) and reply.model.endswith("-test")
    assert pieces == ["four", " sco", "re a", "nd s", "even"]


def test_prompt_system_and_limits_go_out_in_the_providers_own_way(connect: Connect, serve: Serve) -> None:
    server = serve()
    ask(connect(server))
    (request,) = server.requests
    assert (request.prompt, request.system) == ("Summarize this.", "Be brief.")
    told = str(request.body)
    assert "0.3" in told and "200" in told and "tools" not in told


def test_a_call_that_sets_nothing_is_valid_too(connect: Connect, serve: Serve) -> None:
    reply, _ = ask(connect(serve("fine")), ModelCall("Summarize this."))
    assert reply.text == "fine"


@pytest.mark.parametrize(
    "picture", [Media("image", "image/png", "aGVsbG8="), Media("image", url="https://a.test/b.png")]
)
def test_images_go_along(connect: Connect, serve: Serve, picture: Media) -> None:
    server = serve("a harbour")
    reply, _ = ask(connect(server), ModelCall("What is it?", media=(picture,)))
    assert reply.text == "a harbour"
    assert (picture.data or picture.url) in str(server.requests[0].body)


@pytest.mark.parametrize("finish", ["stop", "length", "tool_call", "refused"])
def test_how_it_ended(connect: Connect, serve: Serve, finish: Any) -> None:
    reply, _ = ask(connect(serve(Say("so far", finish=finish))))
    assert reply.finish == finish


def test_an_empty_answer_is_an_empty_reply(connect: Connect, serve: Serve) -> None:
    reply, pieces = ask(connect(serve("")))
    assert (reply.text, reply.finish, pieces) == ("", "stop", [])


def test_a_model_that_thinks_first_gives_signs_of_life(connect: Connect, serve: Serve) -> None:
    reply, pieces = ask(connect(serve(Say("Yes.", thinking="Is it so?", pieces=2))))
    assert reply.text == "Yes."
    assert pieces == ["", "", "Ye", "s."]


def test_many_runs_and_many_calls_with_one_model(connect: Connect, serve: Serve) -> None:
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


def test_closing_lets_go_of_the_client_and_the_next_call_makes_a_new_one(connect: Connect, serve: Serve) -> None:
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
def test_cancelling_returns_before_the_next_piece_and_hangs_up(connect: Connect, serve: Serve, cancel: Any) -> None:
    server = serve(Say("one two three four", pieces=4, delay=0.25))
    model = connect(server)

    async def stop_at_first_piece() -> float:
        began, ended = await cancel(lambda listen: model(CALL, listen))
        return float(ended - began)

    assert anyio.run(stop_at_first_piece) < 0.25
    assert server.requests[0].disconnected.wait(2)
    assert server.requests[0].sent == 1


@pytest.mark.parametrize("stall", [Stall(), Stall(after=2)], ids=["silent", "midway"])
def test_a_stalled_call_can_be_left(connect: Connect, serve: Serve, stall: Stall) -> None:
    server = serve(stall)
    model = connect(server)
    heard: list[str] = []

    async def give_up() -> None:
        with anyio.move_on_after(0.15) as scope:
            await model(CALL, heard.append)
        assert scope.cancelled_caught

    anyio.run(give_up)
    if server.requests:
        assert server.requests[0].disconnected.wait(1)
    assert len(heard) <= 2


def test_what_the_listener_raises_is_the_listeners(connect: Connect, serve: Serve) -> None:
    def listen(_: str) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        anyio.run(connect(serve("some text")), CALL, listen)


def test_a_refused_temperature_is_left_out_and_not_sent_again(connect: Connect, serve: Serve) -> None:
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
def test_a_missing_key_is_named_when_the_model_is_made(make: Callable[[], Any], variable: str) -> None:
    with pytest.raises(InvalidInput, match=variable):
        make()


def test_the_environments_key_goes_to_the_provider_but_not_to_other_addresses(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    ask(OpenAIChat("gpt-test", base_url=server.openai_url))
    assert "sk-from-the-environment" not in str(server.requests[0].headers)
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    ask(OpenAIChat("gpt-test"))
    assert server.requests[1].headers["authorization"] == "Bearer sk-from-the-environment"


def test_a_wrong_key_is_an_auth_failure(connect: Connect, serve: Serve) -> None:
    server = serve("hello", key="the-right-key")
    assert ask(connect(server, api_key="another-key"))[0].kind == "auth"
    assert ask(connect(server, api_key="the-right-key"))[0].text == "hello"


def test_a_client_of_ones_own_is_used_without_its_retries(serve: Serve) -> None:
    import openai

    server = serve(Status(500))

    async def run() -> Any:
        async with openai.AsyncOpenAI(api_key="k", base_url=server.openai_url, timeout=2) as client:
            return await OpenAIChat("gpt-test", client=client)(CALL, lambda _: None)

    assert anyio.run(run).kind == "transport"
    assert len(server.requests) == 1


def test_the_sdks_own_time_limit_is_a_timeout(serve: Serve) -> None:
    import anthropic

    server = serve(Stall(after=1))

    async def run() -> Any:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=server.anthropic_url, timeout=0.1) as client:
            return await Anthropic("claude-test", client=client)(CALL, lambda _: None)

    assert anyio.run(run).kind == "timeout"


def test_the_sdks_blocking_client_is_refused_without_a_retry(serve: Serve) -> None:
    import openai

    with openai.OpenAI(api_key="k", base_url=serve().openai_url) as client:
        assert anyio.run(OpenAIChat("gpt-test", client=client), CALL, lambda _: None).kind == "request"


def test_a_model_without_a_name_says_so() -> None:
    answer, _ = ask(Anthropic(None, api_key="k"))
    assert (answer.kind, answer.why) == ("request", "Name the model: anthropic:MODEL.")


def test_nobody_listens_there(connect: Connect, serve: Serve) -> None:
    with ProviderServer() as gone:
        pass
    answer, _ = ask(connect(gone))
    assert isinstance(answer, Failure) and answer.kind == "transport"


def test_a_missing_sdk_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.models.sdk.find_spec", lambda _: None)
    with pytest.raises(InvalidInput, match=r"pip install 'holdfast\[anthropic\]'"):
        Anthropic("claude-x", api_key="k")
