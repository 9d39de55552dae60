"""A key of the gateway opens it however a client spells it, and reaches the provider in no spelling at all."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest
from gateway_harness import run_gateway
from raw_http import RawClient, RawMessage, chat_request, reply_with, run_upstream

from holdfast.gateway.client_keys import provider_key

pytestmark = pytest.mark.anyio
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
KEY = "harbour+key/of=ann+0123456789=="
ONCE = quote(KEY, safe="")
ALL = "".join(f"%{byte:02x}" for byte in KEY.encode())
IN_QUERY = {
    "as it is": f"key={KEY}",
    "encoded": f"key={ONCE}",
    "encoded throughout": f"key={ALL}",
    "encoded name": f"%6bey={ONCE}",
    "encoded name throughout": f"%6B%65%79={ALL}",
}
"""Spellings of the query that a server decodes to the key."""
HIDDEN_IN_QUERY = {
    "encoded twice": f"key={quote(ONCE)}",
    "encoded three times": f"key={quote(quote(ALL))}",
    "percent signs encoded in pieces": "key=" + ALL.replace("%", "%%32%35"),
    "another name": f"api_key={ONCE}",
    "a name": f"{ONCE}=1",
    "inside another value": f"next=https%3A%2F%2Fa.example%2F%3Fkey%3D{quote(ONCE)}",
    "after a semicolon": f"a=1;key={ONCE}",
}
IN_HEADERS = {
    "bearer": ("Authorization", f"Bearer {KEY}"),
    "lower case": ("authorization", f"bearer {KEY}"),
    "upper case": ("AUTHORIZATION", f"BEARER {KEY}"),
    "two blanks": ("Authorization", f"Bearer  {KEY}"),
    "a tab": ("Authorization", f"Bearer\t{KEY}"),
    "no scheme": ("Authorization", KEY),
    "Anthropic's": ("X-Api-Key", KEY),
    "Google's": ("x-goog-api-key", KEY),
    "Azure's": ("api-key", KEY),
}
HIDDEN_IN_HEADERS = {
    "basic, as the password": ("Authorization", f"Basic {base64.b64encode(f'ann:{KEY}'.encode()).decode()}"),
    "basic, as the user": ("Authorization", f"basic  {base64.urlsafe_b64encode(f'{KEY}:'.encode()).decode()}"),
    "basic, unpadded": ("Authorization", f"Basic {base64.b64encode(f'an:{KEY}'.encode()).decode().rstrip('=')}"),
    "another scheme": ("Authorization", f'Digest username="ann", response="{KEY}"'),
    "an unknown header": ("X-Custom", KEY),
    "encoded": ("X-Custom", ONCE),
    "the address of a page": ("Referer", f"http://127.0.0.1/?key={ONCE}"),
    "a protocol of websockets": ("Sec-WebSocket-Protocol", f"realtime, openai-insecure-api-key.{KEY}"),
    "a cookie": ("Cookie", f"key={KEY}"),
    "an encoded cookie": ("Cookie", f'key="{ONCE}"'),
}


async def send(url: str, target: str, *headers: tuple[str, str]) -> RawMessage:
    client = await RawClient.connect(url)
    given = [(b"Host", b"localhost"), *((name.encode(), value.encode()) for name, value in headers)]
    reply = await client.send(RawMessage(f"GET {target} HTTP/1.1".encode(), given).to_bytes())
    client.close()
    return reply


def has_key(request: RawMessage) -> bool:
    """Whether a request that arrived at the provider has the key in any of the spellings above."""
    sent = request.to_bytes().decode().lower()
    spelled = [*IN_QUERY.values(), *HIDDEN_IN_QUERY.values(), *(value for _, value in IN_HEADERS.values())]
    spelled += [value for _, value in HIDDEN_IN_HEADERS.values()]
    return any(part.lower() in sent for text in [KEY, ONCE, ALL, *spelled] for part in [text, *text.split()[1:]])


@pytest.mark.parametrize("held", [None, "sk-held"])
async def test_key_in_the_query_opens_the_gateway_and_is_not_forwarded(held: str | None) -> None:
    async with (
        run_upstream(reply_with(OK)) as upstream,
        run_gateway(upstream.url, keys={KEY: "ann"}, upstream_key=held) as running,
    ):
        for name, query in IN_QUERY.items():
            reply = await send(running.url, f"/v1beta/models?alt=sse&{query}&x=%31")
            assert b" 200 " in reply.first, (name, reply)
            own = f"&key={held}" if held else ""
            assert upstream.requests[-1].first == f"GET /v1beta/models?alt=sse{own}&x=%31 HTTP/1.1".encode(), name
            assert not has_key(upstream.requests[-1]), name
        for name, query in HIDDEN_IN_QUERY.items():
            reply = await send(running.url, f"/v1beta/models?{query}&x=%31", ("x-holdfast-key", KEY))
            assert b" 200 " in reply.first and upstream.requests[-1].first.split()[1].endswith(b"x=%31"), name
            assert not has_key(upstream.requests[-1]), name


@pytest.mark.parametrize("held", [None, "sk-held"])
async def test_key_in_a_header_opens_the_gateway_and_is_not_forwarded(held: str | None) -> None:
    async with (
        run_upstream(reply_with(OK)) as upstream,
        run_gateway(upstream.url, keys={KEY: "ann"}, upstream_key=held) as running,
    ):
        for name, header in IN_HEADERS.items():
            reply = await send(running.url, "/v1/models", header, ("X-Kept", "tide"))
            assert b" 200 " in reply.first, (name, reply)
            assert not has_key(upstream.requests[-1]), name
            assert upstream.requests[-1].get(b"x-kept") == b"tide"
            assert (held is None) or held.encode() in upstream.requests[-1].to_bytes()
        for name, header in HIDDEN_IN_HEADERS.items():
            reply = await send(running.url, "/v1/models", header, ("x-holdfast-key", KEY), ("X-Kept", "tide"))
            assert b" 200 " in reply.first and upstream.requests[-1].get(b"x-kept") == b"tide"
            assert not has_key(upstream.requests[-1]), name
        client = await RawClient.connect(running.url)
        both = [(b"Authorization", f"bearer {KEY}".encode()), (b"Cookie", f"a=1; key={ONCE}; b=2".encode())]
        await client.send(chat_request("Ahoy.", headers=both))
        client.close()
        assert not has_key(upstream.requests[-1]) and upstream.requests[-1].get(b"cookie") == b"a=1; b=2"


async def test_key_of_another_owner_is_not_forwarded_either() -> None:
    keys = {KEY: "ann", "b" * 20: "bob"}
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url, keys=keys) as running:
        bearer = ("Authorization", f"bearer {'b' * 20}")
        assert b" 200 " in (await send(running.url, f"/v1/models?key={ONCE}", bearer)).first
        assert b"bbbb" not in upstream.requests[-1].to_bytes() and not has_key(upstream.requests[-1])


async def test_key_in_the_path_is_refused() -> None:
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url, keys={KEY: "ann"}) as running:
        for path in (f"/{ONCE}/v1/models", f"/{quote(ALL)}/v1/models"):
            reply = await send(running.url, path, ("x-holdfast-key", KEY))
            assert b" 400 " in reply.first and b"x-holdfast-key" in reply.body
        assert upstream.requests == []


async def test_provider_key_of_the_client_is_forwarded_as_it_came() -> None:
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url, keys={KEY: "ann"}) as running:
        bearer = ("authorization", "bearer  sk-of-the-provider")
        await send(running.url, "/v1/models?key=AIza%2Dprovider&monkey=1", bearer, ("x-holdfast-key", KEY))
        [request] = upstream.requests
        assert request.first == b"GET /v1/models?key=AIza%2Dprovider&monkey=1 HTTP/1.1"
        assert (b"authorization", b"bearer  sk-of-the-provider") in request.headers


async def test_held_key_is_sent_although_another_parameter_ends_with_the_word_key() -> None:
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url, upstream_key="sk-held") as running:
        await send(running.url, "/v1/models?monkey=1")
        assert upstream.requests[-1].get(b"authorization") == b"Bearer sk-held"


def test_summaries_with_the_clients_model_are_never_asked_for_with_a_key_of_the_gateway() -> None:
    keys = {KEY: "ann"}
    assert provider_key({"Authorization": f"bearer  {KEY}"}, keys) == ""
    assert provider_key({"x-api-key": KEY, "Authorization": "bearer sk-own"}, keys) == "sk-own"
    assert provider_key({"x-goog-api-key": "AIza-own", "Authorization": f"Bearer {KEY}"}, keys) == "AIza-own"
