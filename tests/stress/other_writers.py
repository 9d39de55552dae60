"""Random histories in a store that is other people's, too, beside a running gateway and a running keeper.

Usage: python -m tests.stress.other_writers [--minutes 30] [--seed 1] [--store memory|sqlite|jsonl]

Episodes, each with a seed of its own: clients in every wire format talk through two gateways over one store, programs
use keepers, and an administrator deletes sessions, lets old ones expire, redacts, undoes, restores, compacts and forks,
each with a service and connection of its own. A scripted provider judges every request. Violations: a request or
context that is invalid, over the window, or has what was redacted before it began; an error of the gateway or of a
keeper; compaction that has stopped; a view that differs from its log; a message that is lost without being deleted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gateway"))

from gateway_harness import FORMATS, ClientConversation, RunningGateway, run_gateway

from holdfast import JSONLStore, Keeper, MemoryStore, SessionService, SQLiteStore, check
from holdfast.errors import HoldfastError, UnknownSession
from holdfast.messages import Message, Text, ToolResult, decode_all, encode_all
from holdfast.sessions.origin import listed_events
from holdfast.stores import Log
from holdfast.strategies import KeepLedger
from holdfast.triggers import always
from providers import Answer, Call, ProviderServer, Request, Say

WINDOW = 4_000
STORES = ("memory", "sqlite", "jsonl")
_MARKER = re.compile(r"\[(\w+):(\w\d+)\]")
_FILLER = "The depth at the berth is seven feet at low water. "


def markers(value: Any, owner: str) -> list[str]:
    """Returns the markers of one conversation in some messages, each once, in their order."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return list(dict.fromkeys(name for whose, name in _MARKER.findall(text) if whose == owner))


class Talk:
    """One conversation: what it may not contain any more, and what the log must have."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name, self.chance = name, chance
        self.count = 0
        self.secrets: list[str] = []
        self.gone: set[str] = set()
        """Secrets that were redacted wherever the store has them."""
        self.forbidden: frozenset[str] = frozenset()
        """Those that were gone when the running step began."""
        self.redacted: set[str] = set()
        """Markers of messages that were redacted whole: they come back where the session was deleted later."""
        self.scattered = False
        """Whether a session was deleted while others of the conversation stay: who starts anew does not find those."""
        self.undone = False
        """Whether a compaction was undone since the user last wrote: then none is made, and prompts may be too long."""

    def write(self, kind: str, *, secret: float = 0.0) -> str:
        """Returns the text of a message: marked, of a random length, and sometimes with a secret."""
        self.count += 1
        text = f"[{self.name}:{kind}{self.count}] " + _FILLER * self.chance.randrange(2, 40)
        if self.chance.random() < secret:
            self.secrets.append(f"secret-{self.name}-{self.count}-kelp")
            text += f"The password is {self.secrets[-1]}."
        return text

    def leaks(self, value: Any) -> list[str]:
        """Returns what is in a request although it was gone when it began, and still is."""
        text = json.dumps(value, default=str)
        return [secret for secret in self.forbidden & self.gone if secret in text]

    def forget(self) -> None:
        """Notes that a session was deleted: what the client still has comes back as new."""
        self.gone.clear()


class Episode:
    """Some conversations over one store, with an administrator beside them."""

    def __init__(self, kind: str, seed: int, steps: int) -> None:
        self.kind, self.seed, self.steps = kind, seed, steps
        self.chance = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.talks: dict[str, Talk] = {}
        self._replies = 0
        self._running = 0
        self._opened: set[str] = set()
        self._begun = asyncio.Event()
        """Set when the keepers have opened their sessions: one that was never there is an error."""
        self._over = asyncio.Event()
        """Set when all conversations have made their steps, and the administrator has ended."""

    def _end(self) -> None:
        self._running -= 1

    def complain(self, problem: str) -> None:
        self.problems.append(f"seed {self.seed}, {self.kind}: {problem}")

    # -- the provider --------------------------------------------------------------------------------------

    def model(self, request: Request) -> Answer:
        """Judges a request, then answers it: text, or one or two calls."""
        named = _MARKER.search(json.dumps(request.body))
        talk = self.talks.get(named[1]) if named else None
        if talk is None:
            return "Aye."
        for secret in talk.leaks(request.body):
            self.complain(f"{talk.name} sent {secret}, which was redacted")
        given = request.body.get("messages") or request.body.get("input") or request.body.get("contents")
        for problem in check(given, request.protocol)[:1]:
            self.complain(f"{talk.name} sent an invalid request: {problem}")
        self.counts["requests"] += 1
        self._replies += 1
        calls = random.Random(self._replies).choice((0, 0, 1, 1, 1, 2))
        called = tuple(Call("read_file", {"path": f"berths/{self._replies}-{at}.txt"}) for at in range(calls))
        return Say(f"[{talk.name}:r{self._replies}] Noted.", calls=called)

    # -- clients of the gateways ---------------------------------------------------------------------------

    async def client(self, talk: Talk, format: str, gateways: list[RunningGateway]) -> None:
        models = [one.model(format) for one in gateways]
        client = ClientConversation(models[0])
        client.say(talk.write("m", secret=0.5))
        for _ in range(self.steps):
            client.model = talk.chance.choice(models)
            if not await self._step(talk, client):
                return
            self._continue(talk, client)
        if not _is_open(client.messages):
            client.say(talk.write("m"))
        self._end()
        await self._over.wait()  # the last step is made when nobody deletes any more
        sent = markers(client.messages, talk.name)
        if await self._step(talk, client):
            await self._require_logged(talk, sent)

    async def _step(self, talk: Talk, client: ClientConversation) -> bool:
        talk.forbidden = frozenset(talk.gone)
        before = len(client.messages)
        try:
            reply = await client.step([])
        except AssertionError as failed:
            self.complain(f"{talk.name} got an error: {str(failed)[:300]}")
            self._end()
            return False
        if reply.calls:
            client.messages = client.messages[: before + len(reply.messages)]
            answers = tuple(
                ToolResult(call.id, (Text(talk.write("t", secret=0.1)),), False, call.name) for call in reply.calls
            )
            client.messages += encode_all([Message("tool", answers)], client.model.format)
        self.counts["steps of clients"] += 1
        return True

    def _continue(self, talk: Talk, client: ClientConversation) -> None:
        """Writes what comes next: the user's words, an edit of an earlier message, or nothing after results."""
        if _is_open(client.messages):
            return
        client.messages = (
            _edited(talk, client.messages, client.model.format)
            if talk.chance.random() < 0.15
            else list(client.messages)
        )
        client.say(talk.write("m", secret=0.2))
        talk.undone = False

    async def _require_logged(self, talk: Talk, sent: list[str]) -> None:
        """Requires a session with exactly the messages that the client sent, but for those that were redacted."""
        wanted = [name for name in sent if name not in talk.redacted]
        logs = []
        for record in await self.admin.list():
            events = await listed_events(self.admin, record.id)
            logs.append([name for name in markers([e.body for e in events], talk.name) if name not in talk.redacted])
        if wanted not in logs:
            nearest = max(logs, key=lambda log: len(set(log) & set(wanted)), default=[])
            lost, more = [name for name in wanted if name not in nearest], [n for n in nearest if n not in wanted]
            self.complain(f"the log of {talk.name} has lost {lost}, and has {more} in addition")

    # -- programs with keepers -----------------------------------------------------------------------------

    async def program(self, talk: Talk, service: SessionService, *, stored: bool) -> None:
        if stored:
            await service.create(id=talk.name, format="openai-chat")
            keeper = Keeper(service, talk.name, window=WINDOW, preset="holdfast")
        else:
            keeper = Keeper(service, window=WINDOW, preset="holdfast")
        messages: list[Any] = [{"role": "user", "content": talk.write("m", secret=0.5)}]
        took = False
        for _ in range(self.steps):
            context = await self._prepare(talk, keeper, messages)
            if context is None:
                return
            if talk.chance.random() < 0.3:
                messages, took = list(context), True  # the program continues from what it was given
            answer = self.model(_as_request(talk, messages))
            calls = answer.calls if isinstance(answer, Say) else ()
            reply: dict[str, Any] = {"role": "assistant", "content": answer.text if isinstance(answer, Say) else "Aye."}
            if calls:
                reply["tool_calls"] = [
                    {
                        "id": f"call_{self._replies}_{at}",
                        "type": "function",
                        "function": {"name": one.name, "arguments": "{}"},
                    }
                    for at, one in enumerate(calls)
                ]
            await keeper.on_step_finish(reply, {"input": context.tokens, "output": 20})
            messages = [*messages, reply]
            for call in reply.get("tool_calls", ()):
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": talk.write("t", secret=0.1)})
            if not calls:
                if talk.chance.random() < 0.15:
                    messages = _edited(talk, messages, "openai-chat")
                    if took:  # an edited context is another conversation, with all that its notes say
                        talk.forget()
                messages = [*messages, {"role": "user", "content": talk.write("m", secret=0.2)}]
                talk.undone = False
            await asyncio.sleep(talk.chance.random() * 0.02)
        self._end()
        await self._over.wait()
        if await self._prepare(talk, keeper, messages) is not None:
            self.counts["sessions of keepers"] += 1

    async def _prepare(self, talk: Talk, keeper: Keeper, messages: list[Any]) -> Any:
        talk.forbidden = frozenset(talk.gone)
        try:
            context = await keeper.prepare_step(messages)
        except Exception as failed:  # whatever it is, the program has nothing to send
            self.complain(f"the keeper of {talk.name} raised {type(failed).__name__}: {failed}")
            self._end()
            return None
        self.counts["steps of keepers"] += 1
        self._opened.add(talk.name)
        if len(self._opened) == 2:
            self._begun.set()
        self.counts["compacted steps of keepers"] += context.is_compacted
        for secret in talk.leaks(list(context)):
            self.complain(f"the keeper of {talk.name} returned {secret}, which was redacted")
        for problem in check(list(context), "openai-chat")[:1]:
            self.complain(f"the keeper of {talk.name} returned an invalid context: {problem}")
        if context.tokens > WINDOW and not talk.undone:
            self.complain(f"the keeper of {talk.name} returned {context.tokens} tokens")
        return context

    # -- the administrator ---------------------------------------------------------------------------------

    async def administer(self) -> None:
        """Does something to a random session again and again, until all conversations have ended."""
        acts: list[tuple[float, Callable[[str, list[Talk]], Awaitable[object]]]] = [
            (2.0, self._delete), (0.5, self._expire), (3.0, self._redact_text), (1.5, self._redact), (2.0, self._undo),
            (2.0, self._restore), (2.0, self._compact), (1.0, self._fork), (0.5, self._pin),
        ]  # fmt: skip
        await self._begun.wait()
        while self._running:
            await asyncio.sleep(self.chance.random() * 0.15)
            records = await self.admin.list()
            if not records or not self._running:
                continue
            session = self.chance.choice(records).id
            act = self.chance.choices([one for _, one in acts], [weight for weight, _ in acts])[0]
            with suppress(HoldfastError, IndexError):  # somebody else was faster, or there is nothing to do it to
                await act(session, await self._talks_in(session))
                self.counts[act.__name__.strip("_")] += 1
        self._over.set()

    async def _talks_in(self, session_id: str) -> list[Talk]:
        text = json.dumps([event.body for event in await self.admin.events(session_id, kind="message", last=20)])
        return [talk for name, talk in self.talks.items() if f"[{name}:" in text]

    async def _talks_of(self, session_id: str) -> list[Talk]:
        with suppress(HoldfastError):
            text = json.dumps([event.body for event in await self.admin.events(session_id, kind="message")])
            return [talk for name, talk in self.talks.items() if f"[{name}:" in text]
        return []

    async def _delete(self, session_id: str, talks: list[Talk]) -> None:
        here = await self._talks_of(session_id)
        for talk in here:
            talk.forget()
        await self.admin.delete(session_id)
        left = {talk.name for record in await self.admin.list() for talk in await self._talks_of(record.id)}
        for talk in here:
            talk.forget()
            talk.scattered = talk.name in left

    async def _expire(self, _session_id: str, talks: list[Talk]) -> None:
        """Deletes the older half, as a job that keeps sessions for so many days does."""
        records = await self.admin.list()
        for record in records[len(records) // 2 :]:
            with suppress(HoldfastError):
                await self._delete(record.id, talks)

    async def _redact_text(self, session_id: str, talks: list[Talk]) -> None:
        secrets = [(talk, secret) for talk in talks for secret in talk.secrets]
        if not secrets:
            return
        talk, secret = self.chance.choice(secrets)
        deleted = self.counts["delete"], self.counts["expire"]
        found = done = 0
        while done := sum([await self._redact_in(record.id, secret) for record in await self.admin.list()]):
            found += done  # somebody may have started a session meanwhile
        if found and not talk.scattered and deleted == (self.counts["delete"], self.counts["expire"]):
            talk.gone.add(secret)

    async def _redact_in(self, session_id: str, secret: str) -> int:
        with suppress(UnknownSession):
            done = await self.admin.redact_text(session_id, secret)
            if done.left:
                self.complain(f"a redacted text is left: {done.left}")
            return done.events
        return 0

    async def _redact(self, session_id: str, _talks: list[Talk]) -> None:
        events = await self.admin.events(session_id, kind="message")
        event = self.chance.choice([one for one in events if not one.body.get("synthetic")])
        for talk in self.talks.values():  # a session may have had no message yet when its conversations were looked up
            talk.redacted.update(markers(event.body, talk.name))
        await self.admin.redact(session_id, event.id)

    async def _undo(self, session_id: str, talks: list[Talk]) -> None:
        version = (await self.admin.get(session_id)).version
        for talk in talks:  # after the version: words that are written meanwhile end this, and make the undo too late
            talk.undone = True
        await self.admin.undo(session_id, after=version)

    async def _restore(self, session_id: str, talks: list[Talk]) -> None:
        events = await self.admin.events(session_id, kind="message", archived=True)
        if events:
            await self.admin.restore(session_id, self.chance.choice(events).id, max_tokens=WINDOW // 4)

    async def _compact(self, session_id: str, talks: list[Talk]) -> None:
        strategy = self.chance.choice((None, KeepLedger(self.chance.randrange(200, 900))))
        await self.admin.compact(session_id, always, strategy, "rebase")

    async def _fork(self, session_id: str, talks: list[Talk]) -> None:
        await self.admin.fork(session_id, self.chance.choice(await self.admin.events(session_id)).id)

    async def _pin(self, session_id: str, talks: list[Talk]) -> None:
        events = await self.admin.events(session_id, kind="message")
        await self.admin.pin(session_id, self.chance.choice(events).id, pinned=self.chance.random() < 0.5)

    # -- all of it -----------------------------------------------------------------------------------------

    async def run(self, folder: Path) -> Episode:
        memory = MemoryStore()
        stores: dict[str, Callable[[], Log]] = {
            "memory": lambda: memory,
            "sqlite": lambda: SQLiteStore(folder / "sessions.db"),
            "jsonl": lambda: JSONLStore(folder / "sessions"),
        }

        def service() -> SessionService:
            services.append(SessionService(stores[self.kind]()))
            return services[-1]

        services: list[SessionService] = []
        async with AsyncExitStack() as stack:
            server = stack.enter_context(ProviderServer(self.model, window=WINDOW))
            self.admin = service()
            gateways = [
                await stack.enter_async_context(run_gateway(server.anthropic_url, sessions=service(), window=WINDOW))
                for _ in range(2)
            ]
            work: list[Awaitable[None]] = []
            for number, format in enumerate(FORMATS):
                talk = self._talk(f"c{number}")
                work.append(self.client(talk, format, gateways))
            work += [self.program(self._talk(f"k{at}"), service(), stored=bool(at)) for at in range(2)]
            self._running = len(work)
            await asyncio.gather(self.administer(), *work)
            for gateway in gateways:
                for (_, outcome), count in gateway.gateway.metrics.requests.items():
                    self.counts[f"requests {outcome}"] += count
                for reply, count in gateway.gateway.metrics.replies.items():
                    if reply.startswith("5"):
                        self.complain(f"{count} replies {reply}")
            self.problems += [f"seed {self.seed}, {self.kind}: refused: {one}" for one in server.refused]
            self.counts["overflows"] += server.overflowed
            if server.overflowed > self.counts["undo"] + self.counts["expire"] + self.counts["delete"]:
                self.complain(f"{server.overflowed} requests were over the window")
            if self.counts["requests failed"]:
                self.complain(f"{self.counts['requests failed']} decisions failed")
            await self._compare_views(services, stores[self.kind])
            for one in services:
                self.counts["views healed"] += one.healed_views
                if self.kind != "memory":
                    await one.close()
        return self

    def _talk(self, name: str) -> Talk:
        self.talks[name] = Talk(name, random.Random(f"{self.seed}/{name}"))
        return self.talks[name]

    async def _compare_views(self, services: list[SessionService], open_log: Callable[[], Log]) -> None:
        """Compares what each process holds with what one that has just opened the store reads."""
        fresh = SessionService(open_log())
        for record in await fresh.list():
            self.counts["compactions in the end"] += len(await fresh.events(record.id, kind="compaction"))
            for problem in await fresh.verify(record.id):
                self.complain(f"session {record.id}: {problem}")
            context = await fresh.context(record.id)
            for one in services:
                if await one.context(record.id) != context:
                    self.complain(f"the view of session {record.id} differs from its log")
        if self.kind != "memory":
            await fresh.close()


def _is_open(messages: list[Any]) -> bool:
    """Whether a list ends with results of tools, or with words that were not answered."""
    decoded, _ = decode_all(messages[-1:])
    return bool(decoded) and decoded[-1].role != "assistant"


def _edited(talk: Talk, messages: list[Any], format: str) -> list[Any]:
    """Returns a list up to one of the user's messages, which is written anew."""
    own = [
        at
        for at, message in enumerate(messages)
        if at and message.get("role") == "user" and markers(decode_all([message], format)[0][0].text, talk.name)
    ]
    return messages[: talk.chance.choice(own)] if own else list(messages)


def _as_request(talk: Talk, messages: list[Any]) -> Request:
    """Returns what a keeper's program asks the model: judged as a context already."""
    talk.forbidden = frozenset()
    return Request("openai-chat", "", {}, {"messages": [{"role": "user", "content": f"[{talk.name}:m0]"}]})


def run_episodes(minutes: float, seed: int, kinds: tuple[str, ...], steps: int = 25, most: int = 10**9) -> Counter[str]:
    """Runs episodes until the time is over; returns what was counted, with the problems as `violations`."""
    until, total = time.monotonic() + 60 * minutes, Counter[str]()
    for number in range(most):
        kind = kinds[number % len(kinds)]
        with tempfile.TemporaryDirectory() as folder:
            episode = asyncio.run(Episode(kind, seed + number, steps).run(Path(folder)))
        total += episode.counts
        total[f"episodes {kind}"] += 1
        total["violations"] += len(episode.problems)
        print(*episode.problems[:20], sep="\n", end="\n" if episode.problems else "", flush=True)
        if time.monotonic() > until:
            break
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=STORES, help="only this store; default: all in turn")
    given = parser.parse_args()
    logging.getLogger("holdfast").setLevel(logging.CRITICAL)
    total = run_episodes(given.minutes, given.seed, STORES if given.store is None else (given.store,))
    for name, number in sorted(total.items()):
        print(f"  {name:32}{number:10}")
    print(f"{total['violations']} violations")
    return 1 if total["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
