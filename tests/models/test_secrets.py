"""Keys never occur in a reason, a repr, a log or an exception."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from holdfast.errors import InvalidInput
from holdfast.models import FunctionModel, OpenAIChat, classify, public_url, resolve_model, scrub
from holdfast.models.calls import ModelCall
from providers import ProviderServer, Request, Status, StreamError

CALL = ModelCall("Summarize this.")
KEY = "planted+key/of/the=object-9f8e7d"
Connect = Callable[..., Any]
Serve = Callable[..., ProviderServer]


def echo_headers(request: Request) -> Status:
    return Status(400, f"I do not like {request.headers}, not at all; your key {KEY} least of all")


def echo_in_stream(request: Request) -> StreamError:
    return StreamError(400, f"Broken: {request.headers} {KEY}")


def echo_as_text(request: Request) -> Status:
    return Status(500, body=f"<pre>{request.headers}</pre> {KEY}")


@pytest.mark.parametrize("script", [echo_headers, echo_in_stream, echo_as_text])
def test_key_echoed_by_the_server_is_hidden(
    connect: Connect, serve: Serve, script: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    model = connect(serve(script), api_key=KEY)
    answer = anyio.run(model, CALL, lambda _: None)
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("holdfast")]
    for text in (answer.why, repr(answer), repr(model), str(model), model.name, *logged):
        assert KEY not in text
        assert "9f8e7d" not in text


def test_key_in_the_environment_is_hidden(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve(echo_headers)
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    answer = anyio.run(OpenAIChat("gpt-test"), CALL, lambda _: None)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "9f8e7d" not in answer.why


def test_password_in_a_url_is_hidden(serve: Serve) -> None:
    server = serve(Status(500, "cannot reach http://harbour:pass-9f8e7d@host/v1?token=query-9f8e7d"))
    address = server.openai_url.replace("http://", "http://harbour:pass-9f8e7d@")
    model: Any = resolve_model(f"{address}#gpt")
    answer = anyio.run(model, CALL, lambda _: None)
    for text in (repr(model), model.name, answer.why.replace("query-9f8e7d", "")):
        assert "9f8e7d" not in text
    assert repr(model) == f"OpenAIChat('gpt', base_url='{server.openai_url}')"
    assert public_url("https://u:p@host:1/v1?key=x#y") == "https://host:1/v1"


@pytest.mark.parametrize(
    "url",
    [
        "redis://:X9#f8e7d@host:6379/0",
        "redis://:X9/f8e7d@host:6379/0",
        "redis://:X9@f8e7d@host:6379/0",
        "redis://:X9?f8e7d@host:6379/0",
        "redis://:X9@f8e7d/a?b#c@host:6379/0",
        "redis://me:X9[f8e7d@host:6379/0",
        "postgresql://host/db?password=X9f8e7d",
        "postgresql://host/db?user=me&sslpassword=X9f8e7d&x=1",
        "postgressql://me:X9f8e7d@host/db",
        "postgres:me:X9f8e7d@host/db",
        "postgresql:/me:X9f8e7d@host/db",
        "host=a password=X9f8e7d",
    ],
)
def test_password_in_an_address_is_hidden_however_it_is_written(url: str) -> None:
    for text in (public_url(url), scrub(f"cannot open {url!r}"), scrub(url)):
        assert "X9" not in text and "f8e7d" not in text, text
    assert "host" in public_url(url)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "unit",
    ["eyJ-", "eyJa.", "api_key= ", "basic ", "://a:", ":a", "sk-", "password=", "?key=", "Bearer \t", "x-api-key"],
)
def test_scrub_takes_time_in_proportion_to_its_text(unit: str) -> None:
    """Steps of the regular expression are counted by the clock: a quadratic one takes minutes here."""
    assert len(scrub(unit * (100_000 // len(unit)))) > 0
    assert len(scrub("api_key=" + unit[-1] * 100_000)) > 0


def test_key_given_as_model_name_is_hidden() -> None:
    for given in ("sk-abcdef1234567890", "sk-abcdef1234567890:x", "http://:sk-abcdef1234567890@"):
        with pytest.raises(InvalidInput) as caught:
            resolve_model(given)
        assert "abcdef1234567890" not in "".join(traceback.format_exception(caught.value))


def test_key_in_an_exception_of_a_function_is_hidden() -> None:
    def fail(_: str) -> str:
        raise RuntimeError("401 for Authorization: Bearer abcdef1234567890")

    assert "abcdef1234567890" not in anyio.run(FunctionModel(fail), CALL, lambda _: None).why


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-SECRET1234567890.",
        "Authorization: Bearer SECRET1234567890",
        "{'authorization': 'Bearer SECRET1234567890', 'x': 1}",
        '{"x-api-key": "SECRET1234567890"}',
        "('x-goog-api-key', 'SECRET1234567890')",
        "x-api-key: SECRET1234567890",
        "api_key=SECRET1234567890&alt=sse",
        "https://host/v1?key=SECRET1234567890&alt=sse",
        "https://user:SECRET1234567890@host/v1",
        "AIzaSECRET1234567890abc",
        "basic SECRET1234567890==",
        "gsk_SECRET1234567890",
        "token eyJSECRET1234567890.eyJzdWIi.abc",
    ],
)
def test_scrub_hides_text_that_looks_like_a_key(text: str) -> None:
    assert "SECRET" not in scrub(text)
    assert "[hidden]" in scrub(text)
    assert "SECRET" not in classify(400, text).why


def test_scrub_keeps_other_text() -> None:
    text = "This model's maximum context length is 128000 tokens; the task-list has 12 keys, see http://a.test/b?c=d"
    assert scrub(text) == text
    assert scrub("a none b", ["none", ""]) == "a none b"
