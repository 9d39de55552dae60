"""HTTP at both ends: requests that the library of a server would refuse, framing, and the environment's proxies."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
from gateway_harness import run_gateway
from raw_http import RawClient, RawMessage, chat_request, read_message, reply_with, run_upstream

pytestmark = pytest.mark.anyio
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
HOST = (b"Host", b"localhost")


async def test_duplicate_headers_are_forwarded_in_their_order() -> None:
    """Google's SDK in pydantic-ai names two programs in two `User-Agent` headers."""
    twice = [(b"User-Agent", b"one/1"), (b"Content-Type", b"application/json"), (b"user-agent", b"two/2")]
    twice += [(b"Content-Type", b"application/json; charset=utf-8"), (b"Accept", b"*/*"), (b"Accept", b"text/plain")]
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url) as running:
        client = await RawClient.connect(running.url)
        reply = await client.send(chat_request("Ahoy.", headers=twice))
        assert b" 200 " in reply.first and reply.body == b"{}"
        assert upstream.requests[0].headers[2:] == twice
        client.close()


async def test_requests_on_one_connection_are_answered_in_their_order() -> None:
    """Also those that were sent before the replies, on one connection upstream."""

    async def answer(request: RawMessage, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05 if b"first" in request.body else 0.0)
        body = json.loads(request.body)["messages"][0]["content"].encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async with run_upstream(answer) as upstream, run_gateway(upstream.url) as running:
        client = await RawClient.connect(running.url)
        words = ["first", "second", "third"]
        client.writer.write(b"".join(map(chat_request, words)))
        assert [(await read_message(client.reader)).body.decode() for _ in words] == words
        assert upstream.connections == 1
        client.close()


async def test_replies_without_a_body_and_old_clients() -> None:
    """HEAD, a client of HTTP/1.0, one that waits for `100 Continue`, and an upstream that ends by closing."""

    async def answer(_: RawMessage, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end")
        writer.close()

    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url) as running:
        client = await RawClient.connect(running.url)
        head = await client.send(RawMessage(b"HEAD /v1/models HTTP/1.1", [HOST]).to_bytes(), has_body=False)
        assert head.get(b"content-length") == b"2"
        assert (await client.send(RawMessage(b"GET /v1/models HTTP/1.1", [HOST]).to_bytes())).body == b"{}"
        client.close()
    async with run_upstream(answer) as upstream, run_gateway(upstream.url) as running:
        client = await RawClient.connect(running.url)
        client.writer.write(b"GET /v1/models HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert (await client.reader.read()).endswith(b"\r\n\r\nuntil the end")
        client.close()
        client = await RawClient.connect(running.url)
        waiting = RawMessage(
            b"POST /v1/files HTTP/1.1", [HOST, (b"Content-Length", b"3"), (b"Expect", b"100-continue")]
        )
        assert b" 100 " in (await client.send(waiting.to_bytes(), has_body=False)).first
        assert (await client.send(b"abc")).body == b"until the end"
        assert upstream.requests[-1].body == b"abc" and upstream.requests[-1].get(b"expect") is None
        client.close()


async def test_upstream_is_reached_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`HTTP_PROXY` gets the whole address, `HTTPS_PROXY` a tunnel; loopback and `NO_PROXY` are reached directly."""
    refuses = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"

    async def answer(request: RawMessage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reply_with(refuses if request.first.startswith(b"CONNECT") else OK)(request, reader, writer)

    for name in ("NO_PROXY", "no_proxy", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with run_upstream(answer) as proxy, run_upstream(reply_with(OK)) as near:
        address = proxy.url.replace("http://", "http://ann:s%20x@")
        monkeypatch.setenv("HTTP_PROXY", address)
        monkeypatch.setenv("HTTPS_PROXY", address)
        for upstream, first in (
            ("http://harbor.example/base", b"POST http://harbor.example/base/v1/chat/completions HTTP/1.1"),
            ("https://harbor.example", b"CONNECT harbor.example:443 HTTP/1.1"),
        ):
            async with run_gateway(upstream) as running:
                client = await RawClient.connect(running.url)
                reply = await client.send(chat_request("Ahoy."))
                client.close()
            seen = proxy.requests[-1]
            assert seen.first == first
            assert seen.get(b"proxy-authorization") == b"Basic " + base64.b64encode(b"ann:s x")
            assert reply.first.split()[1] == (b"502" if upstream.startswith("https") else b"200")
        async with run_gateway(near.url) as running:
            client = await RawClient.connect(running.url)
            assert (await client.send(chat_request("Ahoy."))).body == b"{}"
            client.close()
        assert len(proxy.requests) == 2 and near.requests[0].get(b"proxy-authorization") is None
