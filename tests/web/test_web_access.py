"""Attacks on the inspector: each request that must not be answered is refused, and tells nothing."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from web_harness import WRITE, RunningInspector, run_inspector, talk

from holdfast import SessionService
from holdfast.context.events import new_id
from holdfast.errors import InvalidInput
from holdfast.stores import PostgresStore
from holdfast.web import Access, api, server
from holdfast.web.access import MAX_LOGINS
from holdfast.web.assets import asset_path

pytestmark = pytest.mark.anyio
PAGES = (
    "/",
    "/s/s",
    "/s/s/at/3",
    "/s/s/try",
    "/s/s/cost",
    "/search?q=ship",
    "/lab",
    "/jobs",
    "/api/jobs",
    "/api/s/s",
    "/api/s/s/rows",
    "/api/s/s/live",
)
POLICY = ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'")


@pytest.mark.parametrize("path", PAGES)
async def test_without_a_cookie_nothing_is_shown(path: str) -> None:
    async with run_inspector(logs_in=False) as running:
        await talk(running.sessions)
        reply = await running.get(path)
        assert reply.status_code == 401
        assert "harbour" not in reply.text and "Ship" not in reply.text


async def test_token_works_once_and_becomes_a_strict_cookie() -> None:
    async with run_inspector(logs_in=False) as running:
        url = running.access.opening_url
        first = await running.client.get(url)
        assert first.status_code == 303 and first.headers["location"] == "/"
        cookie = first.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie
        assert cookie.startswith(f"holdfast-{running.inspector.access.address.rstrip('/').rpartition(':')[2]}=")
        async with httpx.AsyncClient(timeout=30) as other:
            assert (await other.get(url)).status_code == 401
        assert (await running.client.get(url)).status_code == 303  # with the cookie, the address may be loaded again
        assert (await running.get("/")).status_code == 200


async def test_token_is_in_no_page_and_no_referrer() -> None:
    async with run_inspector(logs_in=False) as running:
        token = running.access.token or ""
        await running.log_in()
        await talk(running.sessions)
        for path in PAGES[:-1]:
            reply = await running.get(path)
            assert token not in reply.text
            assert reply.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example:{port}", ""])
async def test_other_host_names_are_refused_against_dns_rebinding(host: str) -> None:
    async with run_inspector() as running:
        port = running.url.rpartition(":")[2]
        reply = await running.get("/", headers={"host": host.replace("{port}", port)})
        assert reply.status_code == 421
        for own in ("localhost", "127.0.0.1", "LOCALHOST"):
            assert (await running.get("/", headers={"host": f"{own}:{port}"})).status_code in (200, 401)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"x_holdfast": ""},
    ],
    ids=str,
)
async def test_cross_site_write_is_refused(headers: dict[str, str]) -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        reply = await running.post("/api/s/s/do/fork", {"version": 25}, **headers)
        assert reply.status_code == 403
        assert len(await running.sessions.list()) == 1


async def test_write_without_origin_or_length_is_refused() -> None:
    async with run_inspector() as running:
        path = f"{running.url}/api/s/s/do/fork"
        assert (await running.client.post(path, json={"version": 1}, headers=WRITE)).status_code == 403

        async def endless() -> object:
            yield b"{"

        headers = WRITE | {"origin": running.url}
        assert (await running.client.post(path, content=endless(), headers=headers)).status_code == 413
        assert (await running.client.post(path, content=b" " * 70_000, headers=headers)).status_code == 413


async def test_other_sites_may_not_read_data() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        reply = await running.get("/api/s/s", headers={"sec-fetch-site": "cross-site"})
        assert reply.status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
async def test_other_methods_are_refused(method: str) -> None:
    async with run_inspector() as running:
        assert (await running.client.request(method, running.url)).status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        asset_path("../server.py"),
        asset_path("..%2fserver.py"),
        asset_path("%2e%2e/%2e%2e/pyproject.toml"),
        asset_path("%2fetc%2fpasswd"),
        asset_path("server.py"),
        "/static/0/page.js",
        "/s/..%2f..%2fetc",
        "/api/s/~!!!/rows",
    ],
)
async def test_paths_lead_nowhere_else(path: str) -> None:
    async with run_inspector() as running:
        request = running.client.build_request("GET", running.url)
        request.url = httpx.URL(running.url).copy_with(raw_path=path.encode())
        reply = await running.client.send(request)
        assert reply.status_code == 404
        assert "import" not in reply.text and "root:" not in reply.text


async def test_every_reply_has_the_security_headers() -> None:
    async with run_inspector() as running:
        await talk(running.sessions)
        for path in ("/", "/s/s", "/api/s/s", asset_path("page.js"), "/missing", "/api/missing"):
            headers = (await running.get(path)).headers
            assert all(rule in headers["content-security-policy"] for rule in POLICY)
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cross-origin-opener-policy"] == "same-origin"


async def test_named_host_behind_a_proxy_with_tls_may_read_and_write() -> None:
    async with run_inspector(names=("Ships.example",)) as running:
        await talk(running.sessions)
        host = {"host": "ships.example"}
        assert (await running.get("/", headers=host)).status_code == 200
        reply = await running.post("/api/s/s/do/fork", {"version": 25}, origin="https://ships.example", **host)
        assert reply.status_code == 200
        for origin in ("https://evil.example", "https://127.0.0.1", "http://ships.example.evil.example"):
            assert (await running.post("/api/s/s/do/fork", {"version": 25}, origin=origin)).status_code == 403


async def log_in_as(running: RunningInspector, key: str) -> None:
    running.client.cookies.clear()
    await running.log_in(key)


async def test_owner_sees_only_own_sessions() -> None:
    keys = {"ann-key-0123456789": "ann", "ben-key-0123456789": "ben"}
    async with run_inspector(keys=keys, logs_in=False) as running:
        await talk(running.sessions, "ann-s", owner="ann")
        await running.sessions.create(id="ben-s", owner="ben", metadata={"title": "The pilot's list"})
        await running.sessions.append("ben-s", {"role": "user", "content": "A pilot for the schooner, please."})
        assert (await running.get("/")).headers["location"] == "/login"
        assert (await running.post("/login", {"key": "a wrong key of some length"})).status_code == 401
        await log_in_as(running, "ann-key-0123456789")
        assert "pilot" not in (await running.get("/api/sessions")).text
        for path in ("/s/ben-s", "/s/ben-s/cost", "/api/s/ben-s", "/api/s/ben-s/rows", "/api/s/ben-s/at/1"):
            reply = await running.get(path)
            assert reply.status_code == 404 and "schooner" not in reply.text
        assert (await running.get("/api/search?q=pilot&session=ben-s")).status_code == 404
        assert (await running.json("/api/search?q=pilot"))["hits"] == []
        assert (await running.act("undo", {"version": 1}, "ben-s")).status_code == 404
        await log_in_as(running, "ben-key-0123456789")
        assert "pilot" in (await running.get("/api/sessions")).text
        assert (await running.json("/api/search?q=pilot"))["hits"][0]["session"] == "ben-s"


async def test_cookies_of_keys_that_are_gone_or_changed_hands_end_at_a_reload() -> None:
    keys = {"ann-key-0123456789": "ann", "ben-key-0123456789": "ben", "cid-key-0123456789": "cid"}
    async with run_inspector(keys=keys, logs_in=False) as running:
        await talk(running.sessions, "ann-s", owner="ann")
        cookies = {}
        for key, owner in keys.items():
            await log_in_as(running, key)
            cookies[owner] = {"cookie": "; ".join(f"{c.name}={c.value}" for c in running.client.cookies.jar)}
        running.client.cookies.clear()
        running.access.reload({"ann-key-0123456789": "ann", "cid-key-0123456789": "dan", "new-key-0123456789": "eve"})
        assert (await running.get("/api/s/ann-s", headers=cookies["ann"])).status_code == 200
        for gone in ("ben", "cid"):
            assert (await running.get("/api/s/ann-s", headers=cookies[gone])).status_code == 401
        assert (await running.post("/login", {"key": "ben-key-0123456789"})).status_code == 401
        await log_in_as(running, "new-key-0123456789")


async def test_session_of_another_tenant_does_not_exist(postgres: str) -> None:
    ours, theirs = (f"web-{new_id()}" for _ in range(2))
    async with (
        run_inspector(PostgresStore(postgres, tenant=ours)) as running,
        SessionService(PostgresStore(postgres, tenant=theirs)) as other,
    ):
        await talk(other, "their-s")
        assert "their-s" not in (await running.get("/api/sessions")).text
        assert "their-s" not in (await running.get("/api/jobs")).text
        for path in (
            "/s/their-s",
            "/api/s/their-s",
            "/api/s/their-s/rows",
            "/api/s/their-s/at/1",
            "/api/s/their-s/live",
        ):
            assert (await running.get(path)).status_code == 404
        assert (await running.act("fork", {"version": 25}, "their-s")).status_code == 404
        assert (await running.json("/api/search?q=timber"))["hits"] == []
        await running.sessions.close()


async def test_owner_option_hides_other_sessions_on_loopback() -> None:
    async with run_inspector(owner="ann") as running:
        await talk(running.sessions, "ann-s", owner="ann")
        await running.sessions.create(id="free")
        assert (await running.get("/api/s/ann-s")).status_code == 200
        assert (await running.get("/api/s/free")).status_code == 404


def test_other_addresses_need_keys() -> None:
    with pytest.raises(InvalidInput, match="--key-file"):
        Access("0.0.0.0", 8398)
    assert Access("0.0.0.0", 8398, keys={"k" * 20: "ann"}).token is None


async def test_unexpected_failure_tells_nothing_and_keeps_the_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_inspector() as running:

        async def fail(*_: object) -> None:
            raise RuntimeError("the secret of the harbour")

        monkeypatch.setattr(running.sessions, "list", fail)
        reply = await running.get("/api/sessions")
        assert reply.status_code == 500 and "secret" not in reply.text
        assert POLICY[0] in reply.headers["content-security-policy"]


async def test_login_with_anything_but_a_key_is_refused() -> None:
    async with run_inspector(keys={"ann-key-0123456789": "ann"}, logs_in=False) as running:
        bodies: list[Any] = ["no object", {"key": 7}, {}, {"key": ""}]
        replies = await asyncio.gather(*(running.post("/login", body) for body in bodies))
        assert [reply.status_code for reply in replies] == [401] * len(bodies)


async def test_read_only_server_changes_nothing() -> None:
    async with run_inspector(read_only=True) as running:
        await talk(running.sessions)
        reply = await running.act("fork", {"version": 25})
        assert reply.status_code == 403 and "--read-only" in reply.json()["error"]
        assert len(await running.sessions.list()) == 1
        assert 'id="undo"' not in (await running.get("/s/s")).text


async def test_key_in_the_address_opens_nothing() -> None:
    """An address stays in the history of a browser and in the logs of proxies: keys are sent by the login page."""
    key = "ann-key-0123456789"
    async with run_inspector(keys={key: "ann"}, logs_in=False) as running:
        for query in (f"token={key}", f"key={key}", f"token={key.replace('-', '%2d')}"):
            reply = await running.get(f"/?{query}")
            assert reply.headers["location"] == "/login" and "set-cookie" not in reply.headers
        assert (await running.post(f"/login?key={key}", {})).status_code == 401


async def test_one_owner_logs_out_nobody_else() -> None:
    keys = {"ann-key-0123456789": "ann", "ann-key-9876543210": "ann", "ben-key-0123456789": "ben"}
    async with run_inspector(keys=keys, logs_in=False) as running:
        first = [running.access.log_in("ben-key-0123456789"), running.access.log_in("ann-key-0123456789")]
        for key in list(keys)[:2]:
            for _ in range(1_500):
                last = running.access.log_in(key)
        status = {}
        for name, value in (("ben", first[0]), ("ann, first", first[1]), ("ann, last", last)):
            cookie = {"cookie": f"{running.access.cookie}={value}"}
            status[name] = (await running.get("/api/search?q=x", headers=cookie)).status_code
        assert status == {"ben": 200, "ann, first": 401, "ann, last": 200}
        assert running.access.login_count <= 2 * MAX_LOGINS


async def test_one_owner_takes_no_other_owners_live_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MAX_STREAMS", 3)
    keys = {"ann-key-0123456789": "ann", "ben-key-0123456789": "ben"}
    async with run_inspector(keys=keys, logs_in=False) as running, AsyncExitStack() as open_pages:
        for owner in keys.values():
            await talk(running.sessions, f"{owner}-s", owner=owner, turns=1)

        async def follow(owner: str) -> int:
            request = running.client.stream("GET", f"{running.url}/api/s/{owner}-s/live")
            return (await open_pages.enter_async_context(request)).status_code

        await log_in_as(running, "ann-key-0123456789")
        assert [await follow("ann") for _ in range(5)] == [200, 200, 200, 503, 503]
        await log_in_as(running, "ben-key-0123456789")
        assert await follow("ben") == 200
        await open_pages.aclose()
        async with asyncio.timeout(5):
            while running.inspector.api.streams.total():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await log_in_as(running, "ann-key-0123456789")
        assert await follow("ann") == 200


async def test_wrong_keys_of_one_client_delay_no_right_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many wrong keys at once wait for their answer, further ones are refused at once; a right one never waits."""
    monkeypatch.setattr(server, "MAX_WRONG_KEYS", 5)
    async with run_inspector(keys={"ann-key-0123456789": "ann"}, logs_in=False) as running:
        wrong = [asyncio.create_task(running.post("/login", {"key": "a wrong key"})) for _ in range(20)]
        refused = 0
        async with asyncio.timeout(5):
            while refused < 15:
                await asyncio.sleep(0.01)
                refused = sum(task.done() for task in wrong)
        assert (await running.post("/login", {"key": "ann-key-0123456789"})).status_code == 200
        assert sorted([(await task).status_code for task in wrong]) == [401] * 5 + [429] * 15
        assert (await running.post("/login", {"key": "a wrong key"})).status_code == 401
