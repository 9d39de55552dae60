"""Large requests are decided about in a process of their own: nobody else waits while they are parsed and counted.

The process has a service of its own on the same store. What takes longer than a request waits, or more memory than six
times its body, is forwarded as it is.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

import msgspec

from ..errors import InvalidInput
from ..hooks.events import CompactionEvent
from ..io.http_messages import Pieces
from ..messages import extract_media
from ..models.calls import Failure
from ..sessions import SessionService
from ..stores import MemoryStore
from ..tokens import Usage
from .answers import Answer
from .decisions import DecisionOptions, Decisions, GatewayCall
from .protocols import RequestBody
from .rewriting import RewriteDecision, failed

log = logging.getLogger("holdfast.gateway")
LARGE_BYTES = 2**20
"""Size of a body from which it is large."""
WAIT_SECONDS, WORK_SECONDS = 10.0, 60.0
"""Longest time that a request waits for a decision, and that the process works on it for the ones after it."""
MOST_TEXT = 8 * 2**20
"""Bytes of one message without its media that are read: no model's window has so much."""
_MEMORY_FACTOR, _MEMORY_BASE = 4, 3 * 2**26
"""Bytes that the process may take for each byte of the bodies that it works on, and beside them."""
_NICE, _STACK = 5, 2**20
"""The other requests go first; and threads with small stacks."""
_KEPT_BYTES = 2**26
"""Of requests whose replies have not ended."""
_PIECE = 2**18
"""Bytes that are read at once."""
_HEAD = struct.Struct("!QQ")
_NO_BODY: Pieces = []
_Reply = asyncio.Future[tuple[Any, Pieces]]
OpenSessions = Callable[[], SessionService]
_PROGRAM = "from holdfast.gateway.large_requests import work; work()"


class WorkerGone(Exception):
    """The process has ended before it answered."""


class LargeRequests:
    """Asks the process, which starts with the first large request."""

    def __init__(
        self,
        open_sessions: OpenSessions | None,
        options: DecisionOptions,
        on_event: Callable[[CompactionEvent, str], object],
    ) -> None:
        """`open_sessions` is pickled; without it, the process has sessions of its own in memory."""
        self._setup = open_sessions, options
        self._on_event = on_event
        self._process: asyncio.subprocess.Process | None = None
        self._answers: dict[int, _Reply] = {}
        self._number = 0
        self._sending = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def decide(self, call: GatewayCall, sent: Pieces) -> Answer:
        """Returns what to forward or to reply; `too_large` forwards the request as it is.

        The body of the call is in `sent`: its pieces go to the process and to the upstream as they came.
        """
        self._number += 1
        number, call.raw = self._number, b""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                answer, pieces = await self._ask(number, "decide", call, sent)
        except (TimeoutError, WorkerGone, OSError) as problem:
            size = sum(map(len, sent))
            log.warning("a request of %d bytes is forwarded as it is: %s", size, type(problem).__name__)
            return Answer(RewriteDecision("too_large"))
        if isinstance(answer, InvalidInput):
            raise answer
        decided: Answer = answer
        decided.number, decided.pieces = number, pieces or None
        return decided

    async def recover(self, answer: Answer, failure: Failure) -> RewriteDecision | None:
        """As `Decisions.recover`."""
        with suppress(TimeoutError, WorkerGone, OSError):
            async with asyncio.timeout(WORK_SECONDS):
                smaller, pieces = await self._ask(answer.number, "recover", failure)
                if isinstance(smaller, RewriteDecision):
                    answer.pieces = pieces
                    return smaller
        return None

    async def finish(self, answer: Answer, usage: Usage | None) -> None:
        """As `Decisions.finish`."""
        with suppress(TimeoutError, WorkerGone, OSError):
            await self._ask(answer.number, "finish", usage)

    async def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(2):
                    await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(self, number: int, what: str, value: Any, body: Pieces = _NO_BODY) -> tuple[Any, Pieces]:
        answer: _Reply = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._start(self._send((number, what, value), body, answer))
        try:
            return await asyncio.shield(answer)
        finally:
            if not answer.done():  # nobody waits any more, but the next request will find what was written
                asyncio.get_running_loop().call_later(WORK_SECONDS, self._end_late, number, answer)

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _end_late(self, number: int, answer: _Reply) -> None:
        if not answer.done() and self._process is not None and self._answers.get(number) is answer:
            log.warning("the process for large requests is ended: one took more than %.0f s", WORK_SECONDS)
            self._process.kill()

    async def _send(self, head: Any, body: Pieces, answer: _Reply) -> None:
        """Sends one whole frame, even if nobody waits for its answer any more."""
        try:
            async with self._sending:
                process = await self._running()
                assert process.stdin is not None
                encoded = pickle.dumps(head)
                process.stdin.write(_HEAD.pack(len(encoded), sum(map(len, body))) + encoded)
                for piece in body:
                    process.stdin.write(piece)
                    await process.stdin.drain()
                    await asyncio.sleep(0)
        except Exception as problem:
            if not answer.done():
                answer.set_exception(problem if isinstance(problem, OSError) else WorkerGone())

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _PROGRAM, stdin=pipe, stdout=pipe, limit=_PIECE
            )
            assert self._process.stdin is not None
            setup = pickle.dumps(self._setup)
            self._process.stdin.write(_HEAD.pack(len(setup), 0) + setup)
            self._start(self._receive(self._process))
        return self._process

    async def _receive(self, process: asyncio.subprocess.Process) -> None:
        """Hands the answers of a process to those who wait, until it ends."""
        assert process.stdout is not None
        try:
            while True:
                size, length = _HEAD.unpack(await process.stdout.readexactly(_HEAD.size))
                number, answer, events = pickle.loads(await process.stdout.readexactly(size))  # noqa: S301 - our own
                body = Pieces()
                while length:
                    body.append(await process.stdout.readexactly(min(length, _PIECE)))
                    length -= len(body[-1])
                for event, owner in events:
                    self._on_event(event, owner)
                if (waiting := self._answers.pop(number, None)) is not None and not waiting.done():
                    waiting.set_result((answer, body))
        except asyncio.IncompleteReadError:
            await process.wait()
        finally:
            waiting_ones, self._answers = self._answers, {}
            for waiting in waiting_ones.values():
                if not waiting.done():
                    waiting.set_exception(WorkerGone())


# -- the process -----------------------------------------------------------------------------------------------------


def work() -> None:
    """Answers on stdout what is asked on stdin, until its end."""
    asked, answered = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed is no answer
    threading.stack_size(_STACK)
    if sys.platform != "win32":
        os.nice(_NICE)
    head = _read_frame(asked)
    if head is not None:
        logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
        asyncio.run(_Worker(*head[0]).run(asked, answered))


def _read_frame(source: BinaryIO) -> tuple[Any, bytes] | None:
    sizes = source.read(_HEAD.size)
    if len(sizes) < _HEAD.size:
        return None
    size, length = _HEAD.unpack(sizes)
    head = pickle.loads(source.read(size))  # noqa: S301 - from the gateway itself
    return head, source.read(length)


class _Worker:
    """Decides about large requests, several at once."""

    def __init__(self, open_sessions: OpenSessions | None, options: DecisionOptions) -> None:
        self._sessions = SessionService(MemoryStore()) if open_sessions is None else open_sessions()
        self._events: list[tuple[CompactionEvent, str]] = []

        def on_event(event: CompactionEvent, owner: str) -> None:
            self._events.append((event, owner))

        self._options = options
        self._decisions = Decisions(self._sessions, options, on_event, store_seconds=WORK_SECONDS)
        self._answers: OrderedDict[int, Answer] = OrderedDict()
        self._bytes = 0
        """Of the bodies that are worked on."""

    async def run(self, asked: BinaryIO, answered: BinaryIO) -> None:
        loop, frames = asyncio.get_running_loop(), asyncio.Queue[tuple[Any, bytes]]()

        def read() -> None:
            """Runs in a thread of its own, since the memory for another one may be missing later."""
            while (frame := _read_frame(asked)) is not None:
                loop.call_soon_threadsafe(frames.put_nowait, frame)
            os._exit(0)  # the gateway has ended

        threading.Thread(target=read, daemon=True).start()
        async with self._sessions, asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._answer(answered, *await frames.get()))

    async def _answer(self, answered: BinaryIO, head: Any, raw: bytes) -> None:
        number, what, value = head
        result: Any
        body, size = b"", 0
        try:
            if what == "decide":
                value.raw = raw
                del raw
                with suppress(InvalidInput):
                    value.unpack(self._options.max_body)
                size = len(value.raw)
                self._limit_memory(size)
            result, body = await self._perform(number, what, value)
        except MemoryError:
            log.warning("a request of %d bytes needs too much memory", size)
            result = Answer(RewriteDecision("too_large"))
        except InvalidInput as problem:
            result = problem
        except Exception as problem:
            log.exception("a large request failed: %s", type(problem).__name__)
            result = Answer(failed(problem))
        finally:
            self._limit_memory(-size)
        events, self._events = self._events, []
        encoded = pickle.dumps((number, result, events))
        answered.write(_HEAD.pack(len(encoded), len(body)) + encoded)
        answered.write(body)
        answered.flush()

    async def _perform(self, number: int, what: str, value: Any) -> tuple[Any, bytes]:
        """Returns the answer, and the request to forward if it is another than the client's."""
        if what == "decide":
            return await self._decide(number, value)
        answer = self._answers.pop(number, None)
        if answer is None:
            return None, b""
        if what == "finish":
            await self._decisions.finish(answer, value)
            return None, b""
        smaller = await self._decisions.recover(answer, value)
        if smaller is None:
            return None, b""
        answer.decision = smaller
        self._answers[number] = answer
        return _sendable(smaller), smaller.body or b""

    async def _decide(self, number: int, call: GatewayCall) -> tuple[Answer, bytes]:
        if _has_endless_message(call):
            return Answer(RewriteDecision("too_large")), b""
        answer = await self._decisions.decide(call)
        body, changed = answer.body, answer.decision.body
        if body is not None:
            self._keep(number, answer)
            if changed is None and body.is_changed:
                changed = body.encode()
        return msgspec.structs.replace(answer, decision=_sendable(answer.decision), body=None), changed or b""

    def _keep(self, number: int, answer: Answer) -> None:
        """Keeps a decision until its reply has ended, or until many others are kept."""
        self._answers[number] = answer
        while len(self._answers) > 1 and sum(map(_kept_bytes, self._answers.values())) > _KEPT_BYTES:
            self._answers.popitem(last=False)

    def _limit_memory(self, change: int) -> None:
        """Bounds what the process takes by the bodies that it works on."""
        self._bytes += change
        if sys.platform != "linux":
            return
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = _MEMORY_BASE + _MEMORY_FACTOR * max(self._bytes, MOST_TEXT)
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))


def _kept_bytes(answer: Answer) -> int:
    return 0 if answer.body is None else len(answer.body.raw)


def _sendable(decision: RewriteDecision) -> RewriteDecision:
    """Returns a decision without what only this process has, and without the request, which is sent in pieces."""
    body = None if decision.body is None else b""
    return msgspec.structs.replace(decision, body=body, conversation=None, given=None, summarizer=None, writing=None)


def _has_endless_message(call: GatewayCall) -> bool:
    """Whether a message has more text than any model reads."""
    with suppress(Exception):  # what is no list of messages has none
        body = RequestBody(call.protocol[0], call.raw, call.path)
        items = msgspec.json.decode(body.fields[body.protocol.messages], type=list[msgspec.Raw])
        for item in items:
            if memoryview(item).nbytes > MOST_TEXT:
                text = msgspec.json.encode(extract_media(msgspec.json.decode(item))[0])
                if len(text) > MOST_TEXT:
                    return True
    return False
