"""Web pages may not spend the user's money: only those of listed origins call the gateway. Other programs all do."""

from __future__ import annotations

import json

import pytest
from gateway_harness import run_gateway
from raw_http import RawClient, RawMessage, RawUpstream, reply_with, run_upstream

from holdfast.errors import InvalidInput
from holdfast.gateway import GatewayOptions

pytestmark = pytest.mark.anyio
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Ahoy."}]}).encode()
APP = "https://app.example"
PAGES = {
    "another site": [("Origin", "https://evil.example")],
    "no origin of its own": [("Origin", "null")],
    "a file": [("Origin", "file://")],
    "an extension of Chrome": [("Origin", "chrome-extension://abcdefghijklmnop")],
    "an extension of Firefox": [("Origin", "moz-extension://0f1e2d3c")],
    "a desktop application's page": [("Origin", "tauri://localhost")],
    "an empty origin": [("Origin", "")],
    "a name that begins like this machine's": [("Origin", "http://localhost.evil.example")],
    "no URL": [("Origin", "http://[x")],
    "two origins": [("Origin", APP), ("Origin", "https://evil.example")],
    "a request without an origin": [("Sec-Fetch-Site", "cross-site")],
    "a sibling's request without an origin": [("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "no-cors")],
    "another site, with fetch metadata": [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "same-origin")],
    "a prefix of the listed origin": [("Origin", "https://app.exampl")],
    "the listed origin at another port": [("Origin", f"{APP}:444")],
    "the listed origin without TLS": [("Origin", "http://app.example")],
}
PROGRAMS = {
    "a program": [],
    "fetch of Node": [("Sec-Fetch-Mode", "cors"), ("Accept-Language", "*")],
    "the address bar": [("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate")],
    "a page on this machine": [("Origin", "http://localhost:3000"), ("Sec-Fetch-Site", "same-site")],
    "the listed origin": [("Origin", APP), ("Sec-Fetch-Site", "cross-site")],
}
NAMES = (
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "0.0.0.0:{port}",
    "",
    "[::1",
    "localhost.",
)


def answer(*headers: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"Content-Length: 2", *headers, b"", b"{}"])


async def call(
    url: str, headers: list[tuple[str, str]], *, method: str = "POST", host: str = "localhost", body: bytes = BODY
) -> RawMessage:
    client = await RawClient.connect(url)
    given = [(b"Host", host.replace("{port}", url.rpartition(":")[2]).encode())]
    given += [(name.encode(), value.encode()) for name, value in headers]
    given += [(b"Content-Length", b"%d" % len(body))]
    first = f"{method} /v1/chat/completions HTTP/1.1".encode()
    try:
        return await client.send(RawMessage(first, given, body).to_bytes(), has_body=method != "OPTIONS")
    finally:
        client.close()


async def test_pages_that_are_not_listed_reach_nobody_and_say_what_to_do() -> None:
    async with (
        run_upstream(reply_with(answer())) as upstream,
        run_gateway(upstream.url, upstream_key="sk-held", allowed_origins=(APP,)) as running,
    ):
        for name, headers in PAGES.items():
            reply = await call(running.url, headers)
            assert b" 403 " in reply.first, (name, reply)
            message = json.loads(reply.body)["error"]["message"]
            assert "--allow-origin" in message and message.endswith(".") and message.count(". ") == 0
            assert reply.get(b"access-control-allow-origin") is None
        assert upstream.requests == []


async def test_programs_and_listed_pages_call_as_before() -> None:
    async with (
        run_upstream(reply_with(answer())) as upstream,
        run_gateway(upstream.url, upstream_key="sk-held", allowed_origins=(APP,)) as running,
    ):
        own = f"http://localhost:{running.url.rpartition(':')[2]}"
        pages = PROGRAMS | {"its own page": [("Origin", own), ("Sec-Fetch-Site", "same-origin")]}
        for name, headers in pages.items():
            reply = await call(running.url, headers, host="localhost:{port}")
            assert b" 200 " in reply.first and reply.body == b"{}", (name, reply)
            listed = ("Origin", APP) in headers
            assert (reply.get(b"access-control-allow-origin") == APP.encode()) is listed, name
        assert len(upstream.requests) == len(pages)


async def test_page_with_a_key_needs_no_list() -> None:
    async with (
        run_upstream(reply_with(answer())) as upstream,
        run_gateway(upstream.url, upstream_key="sk-held", keys={"a" * 20: "ann"}) as running,
    ):
        page = [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")]
        assert b" 401 " in (await call(running.url, page)).first and upstream.requests == []
        assert b" 200 " in (await call(running.url, [*page, ("Authorization", f"Bearer {'a' * 20}")])).first


@pytest.mark.parametrize("keys", [{}, {"a" * 20: "ann"}], ids=["without keys", "with keys"])
async def test_preflight_of_a_listed_origin_is_answered_and_no_other(keys: dict[str, str]) -> None:
    asked = [
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization,content-type,x-stainless-lang"),
        ("Access-Control-Request-Private-Network", "true"),
    ]
    async with (
        run_upstream(reply_with(answer())) as upstream,
        run_gateway(upstream.url, upstream_key="sk-held", keys=keys, allowed_origins=(APP,)) as running,
    ):
        reply = await call(running.url, [("Origin", APP), *asked], method="OPTIONS", body=b"")
        assert b" 204 " in reply.first
        assert reply.get(b"access-control-allow-origin") == APP.encode() and reply.get(b"vary") == b"Origin"
        assert reply.get(b"access-control-allow-headers") == b"authorization,content-type,x-stainless-lang"
        assert b"POST" in (reply.get(b"access-control-allow-methods") or b"")
        assert reply.get(b"access-control-allow-private-network") == b"true"
        assert reply.get(b"access-control-allow-credentials") is None
        for origin in ("https://evil.example", "null"):
            reply = await call(running.url, [("Origin", origin), *asked], method="OPTIONS", body=b"")
            assert reply.first.split()[1] in (b"401", b"403")
            assert not [name for name, _ in reply.headers if name.lower().startswith(b"access-control")]
        assert upstream.requests == []


async def test_reply_to_a_listed_page_has_the_gateways_rules_in_place_of_the_upstreams() -> None:
    theirs = (b"Access-Control-Allow-Origin: *", b"Access-Control-Allow-Credentials: true", b"Vary: Accept-Encoding")
    async with (
        run_upstream(reply_with(answer(*theirs))) as upstream,
        run_gateway(upstream.url, allowed_origins=(APP.upper(),)) as running,
    ):
        reply = await call(running.url, [("Origin", APP)])
        allowed = [value for name, value in reply.headers if name.lower() == b"access-control-allow-origin"]
        assert allowed == [APP.encode()] and reply.get(b"access-control-allow-credentials") is None
        assert [value for name, value in reply.headers if name.lower() == b"vary"] == [b"Accept-Encoding", b"Origin"]
        plain = await call(running.url, [])
        assert plain.get(b"access-control-allow-origin") == b"*"


async def test_names_that_are_not_the_gateways_are_refused_against_dns_rebinding() -> None:
    async def ask(upstream: RawUpstream, url: str, name: str) -> RawMessage:
        page = [
            ("Origin", f"http://{name.replace('{port}', url.rpartition(':')[2])}"),
            ("Sec-Fetch-Site", "same-origin"),
        ]
        return await call(url, page, host=name)

    async with (
        run_upstream(reply_with(answer())) as upstream,
        run_gateway(upstream.url, upstream_key="sk-held", allowed_hosts=("Gateway.example",)) as running,
    ):
        for name in NAMES:
            reply = await ask(upstream, running.url, name)
            assert reply.first.split()[1] in (b"400", b"421"), (name, reply)
        assert upstream.requests == []
        for name in (
            "localhost:{port}",
            "127.0.0.1:{port}",
            "[::1]:{port}",
            "GATEWAY.example",
            "gateway.example:{port}",
        ):
            assert b" 200 " in (await ask(upstream, running.url, name)).first, name


@pytest.mark.parametrize("given", ["*", "null", "app.example", "https://app.example/path", "https://", "https://a b"])
def test_what_is_no_origin_cannot_be_listed(given: str) -> None:
    with pytest.raises(InvalidInput, match="the origin of a page"):
        GatewayOptions(upstreams={}, allowed_origins=(given,))
