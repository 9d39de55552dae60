"""The gateway beside a direct connection and other proxies: latency, streams, memory, and what a decision costs.

Upstream and proxies are processes of their own. nginx, LiteLLM's proxy (`litellm[proxy]`) and headroom
(`headroom-ai[proxy]`) are left out, with a message, where their programs are not on the PATH.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median

import msgspec

from benchmarks.measure import Options, Ratio
from benchmarks.mixes import agent
from holdfast import SessionService, SQLiteStore
from holdfast.gateway.client_sessions import Caller
from holdfast.gateway.protocols import PROTOCOLS, RequestBody
from holdfast.gateway.rewriting import Rewriter

HISTORY = 10_000
DECISION_AIM = 1.2
STREAMS = 1_000
FRAMES, PAUSE = 60, 0.3
"""Frames of each of the concurrent streams, and the seconds between two."""
ROUNDS = 5
ADDED_MS = {(20_000, "p50"): 1.0, (20_000, "p99"): 5.0, (500_000, "p50"): 3.0}
"""Most milliseconds that the gateway may add to a direct request."""
CONNECTIONS, REQUESTS_A_SECOND = 16, 600
SLOW_READERS = 50
SLOW_READER_MB = 4.0
"""Memory that a stream whose client reads nothing may take."""
_WITHOUT_A_KEY = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
_WITHOUT_DOWNLOADS = {"HF_HUB_OFFLINE": "1"}
"""headroom looks for a model at its start."""


def run(options: Options) -> Iterator[Ratio]:
    yield from asyncio.run(_decision(HISTORY))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    with ExitStack() as stack:
        upstream = stack.enter_context(run_python("benchmarks.gateway", "upstream"))
        gateway = stack.enter_context(run_gateway(upstream.port))
        places = {"direct": upstream.port}
        for name, start in (("nginx", _nginx), ("litellm", _litellm), ("headroom", _headroom)):
            if shutil.which(name):
                places[name] = stack.enter_context(start(upstream.port))
            else:
                print(f"{name} is not installed: left out", file=sys.stderr)
        places["gateway"] = gateway.port
        for size, rounds in ((20_000, 300), (500_000, 60)):
            yield from _latency(size, rounds // (5 if options.quick else 1), places)
        yield from _throughput(1_600 if options.quick else 6_400, places, gateway)
        exact = {name: port for name, port in places.items() if name not in ("litellm", "headroom")}
        yield from _frames(200 if options.quick else 1_000, exact)
        yield from asyncio.run(_concurrent(STREAMS // (5 if options.quick else 1), gateway))
        yield asyncio.run(_slow_readers(gateway))
    yield from asyncio.run(_cancellations(20))


# -- what a decision costs -------------------------------------------------------------------------------------------


async def _decision(size: int) -> Iterator[Ratio]:
    """A request of which two messages are new, which are written to a database after it, beside parsing its JSON."""
    messages, caller = agent(size + 80), Caller("", "", "openai-chat")

    def request(count: int) -> bytes:
        return json.dumps({"model": "m", "stream": True, "messages": messages[:count]}).encode()

    decided, parsed = list[tuple[float, float]](), list[tuple[float, float]]()
    with tempfile.TemporaryDirectory() as folder:
        async with SessionService(SQLiteStore(Path(folder) / "s.db"), preset="holdfast", window=10**9) as sessions:
            rewriter = Rewriter(sessions)
            await rewriter.decide(RequestBody(PROTOCOLS[0], request(size)), "generate", caller)
            for number in range(1, 40):
                raw = request(size + 2 * number)
                gc.disable()
                started = time.process_time(), time.perf_counter()
                decision = await rewriter.decide(RequestBody(PROTOCOLS[0], raw), "generate", caller)
                between = time.process_time(), time.perf_counter()
                msgspec.json.decode(raw)
                parsed.append((time.process_time() - between[0], time.perf_counter() - between[1]))
                gc.enable()
                decided.append((between[0] - started[0], between[1] - started[1]))
                assert decision.outcome == "unchanged" and await decision.written()
    ratios: list[Ratio] = []
    for at, unit in enumerate(("CPU", "elapsed")):
        one, other = min(times[at] for times in decided), min(times[at] for times in parsed)
        name, about = f"decision on {size:,} messages, {unit}", "2 of them new / JSON parse"
        ratios.append(Ratio(name, about, one / other, DECISION_AIM, seconds={"decision": one, "parse": other}))
    return iter(ratios)


# -- requests --------------------------------------------------------------------------------------------------------


def _latency(size: int, rounds: int, places: dict[str, int]) -> Iterator[Ratio]:
    """Medians of five rounds, and what the gateway adds to a direct request."""
    raw = chat_request(size)
    clients = {name: connect(port) for name, port in places.items()}
    for client in [*clients.values()] * 5:
        time_request(client, raw)
    figures: dict[str, list[dict[str, float]]] = {"p50": [], "p99": []}
    for _ in range(ROUNDS):
        times: dict[str, list[float]] = {name: [] for name in places}
        for _ in range(rounds):
            for name, client in clients.items():
                times[name].append(time_request(client, raw))
        for share, name in ((0.5, "p50"), (0.99, "p99")):
            figures[name].append({place: sorted(taken)[int(rounds * share)] for place, taken in times.items()})
    for client in clients.values():
        client.close()
    for name, seen in figures.items():
        seconds = {place: median(one[place] for one in seen) for place in places}
        seconds["added"] = median(one["gateway"] - one["direct"] for one in seen)
        bound = ADDED_MS.get((size, name))
        what = f"request of {size // 1_000} KB, {name}"
        if bound is None:
            yield Ratio(what, "gateway / direct", seconds["gateway"] / seconds["direct"], seconds=seconds)
        else:
            yield Ratio(what, f"added / {bound:g} ms", seconds["added"] * 1_000 / bound, 1.0, seconds=seconds)


def time_request(client: socket.socket, raw: bytes) -> float:
    started = time.perf_counter()
    client.sendall(raw)
    _read_reply(client)
    return time.perf_counter() - started


def _throughput(count: int, places: dict[str, int], gateway: _Server) -> Iterator[Ratio]:
    """Unchanged requests of sixteen connections; the CPU time of the gateway is that of one core."""
    seconds: dict[str, float] = {}
    for name, port in places.items():
        before, started = gateway.cpu_seconds, time.perf_counter()
        asyncio.run(_send_from_many(port, count))
        seconds[f"a request, {name}"] = (time.perf_counter() - started) / count
        if name == "gateway":
            seconds["CPU a request"] = (gateway.cpu_seconds - before) / count
    for basis in ("CPU a request", "a request, gateway"):
        name = f"requests of 20 KB on {CONNECTIONS} connections, by {basis.partition(' ')[0]}"
        about = f"a second / {REQUESTS_A_SECOND}"
        yield Ratio(name, about, 1 / seconds[basis] / REQUESTS_A_SECOND, 1.0, "at least", seconds=seconds)


async def _send_from_many(port: int, count: int) -> None:
    async def send(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        raw = chat_request(20_000, text=f"Ship {number}. ")
        for _ in range(count // CONNECTIONS):
            writer.write(raw)
            head = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 " in head[:20], head
            await reader.readexactly(int(_header(head.lower(), b"content-length")))
        writer.close()

    await asyncio.gather(*map(send, range(CONNECTIONS)))


def _frames(frames: int, places: dict[str, int]) -> Iterator[Ratio]:
    """Delay of each frame of a stream; the upstream writes the time into it."""
    times: dict[str, list[float]] = {}
    for name, port in places.items():
        with connect(port) as client:
            client.sendall(chat_request(2_000, stream=(frames, 0.002)))
            times[name] = [arrived - sent for sent, arrived in _read_frames(client, frames)]
    yield from _compare("frame of a stream", times)


def _compare(what: str, times: dict[str, list[float]]) -> Iterator[Ratio]:
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        seconds = {place: sorted(taken)[int(len(taken) * share)] for place, taken in times.items()}
        yield Ratio(f"{what}, {name}", "gateway / direct", seconds["gateway"] / seconds["direct"], seconds=seconds)


# -- streams ---------------------------------------------------------------------------------------------------------


async def _concurrent(count: int, gateway: _Server) -> Iterator[Ratio]:
    before, started = gateway.cpu_seconds, time.perf_counter()
    delays: list[float] = []
    complete = await asyncio.gather(*(_one_stream(gateway.port, number, delays) for number in range(count)))
    delays.sort()
    taken = {
        "CPU a frame": (gateway.cpu_seconds - before) / (count * FRAMES),
        "p50 of a frame": delays[len(delays) // 2],
        "p99 of a frame": delays[int(len(delays) * 0.99)],
        "all": time.perf_counter() - started,
    }
    whole = sum(complete) / count
    return iter(
        (Ratio(f"{count:,} concurrent streams", "complete and in order / all", whole, 1.0, "at least", seconds=taken),)
    )


async def _one_stream(port: int, number: int, delays: list[float]) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(chat_request(500 + number, stream=(FRAMES, PAUSE)))
    seen: list[int] = []
    try:
        async with asyncio.timeout(300):
            while len(seen) < FRAMES:
                line = await reader.readline()
                if line.startswith(b"data:"):
                    at, sent = line.removeprefix(b"data:").split()
                    seen.append(int(at))
                    delays.append(time.perf_counter() - float(sent))
                elif not line:
                    break
    finally:
        writer.close()
    return seen == list(range(FRAMES))


async def _slow_readers(gateway: _Server) -> Ratio:
    """Streams without an end whose clients read nothing."""
    before, clients = gateway.resident_bytes, [connect(gateway.port) for _ in range(SLOW_READERS)]
    for number, client in enumerate(clients):
        client.sendall(chat_request(700 + number, stream=(10**9, 0.0)))
    sizes = [before]
    for _ in range(10):
        await asyncio.sleep(0.5)
        sizes.append(gateway.resident_bytes)
    for client in clients:
        client.close()
    each = (max(sizes) - before) / SLOW_READERS / 2**20
    return Ratio(f"{SLOW_READERS} clients that read nothing", "MB of memory for each", each, SLOW_READER_MB)


async def _cancellations(rounds: int) -> list[Ratio]:
    """How long after one side of a stream has left the other side learns of it."""
    left: asyncio.Queue[float] = asyncio.Queue()
    abort = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(_header(head.lower(), b"content-length")))
        opening = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(opening + b"9\r\ndata: 1\n\n\r\n")
        gone, aborted = asyncio.ensure_future(reader.read()), asyncio.ensure_future(abort.wait())
        await asyncio.wait((gone, aborted), return_when=asyncio.FIRST_COMPLETED)
        left.put_nowait(time.perf_counter())
        writer.transport.abort()
        gone.cancel()
        aborted.cancel()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    clients, upstreams = list[float](), list[float]()
    with run_gateway(server.sockets[0].getsockname()[1]) as gateway:
        for number in range(rounds):
            for leaver, times in (("client", clients), ("upstream", upstreams)):
                abort.clear()
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
                writer.write(chat_request(900 + number, stream=(1, 0.0)))
                await reader.readuntil(b"data: 1\n\n")
                started = time.perf_counter()
                if leaver == "client":
                    writer.transport.abort()
                    times.append(await left.get() - started)
                else:
                    abort.set()
                    with suppress(ConnectionError):
                        await reader.read()
                    times.append(time.perf_counter() - await left.get())
                    writer.close()
    server.close()
    return [
        Ratio(
            f"a stream that its {name} leaves", "slowest of the others to learn of it / 100 ms", max(times) / 0.1, 1.0
        )
        for name, times in (("client", clients), ("upstream", upstreams))
    ]


# -- servers ---------------------------------------------------------------------------------------------------------


class _Server:
    """A process that listens."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_bytes(self) -> int:
        return _resident_bytes(self.process.pid)

    @property
    def family_bytes(self) -> int:
        """Memory of the process and of its children."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return self.resident_bytes + sum(map(_resident_bytes, map(int, children)))


def _resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def run_python(module: str, *arguments: str) -> Iterator[_Server]:
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        try:
            yield _Server(process, port)
        finally:
            process.kill()


@contextmanager
def run_gateway(upstream: int, *more: str) -> Iterator[_Server]:
    with tempfile.TemporaryDirectory() as folder:
        store = ("--store", f"{folder}/s.db", "--port", "0", "--window", "1000000")
        with run_python("holdfast", "serve", "--upstream", f"http://127.0.0.1:{upstream}", *store, *more) as server:
            yield server


@contextmanager
def _listening(port: int, command: Sequence[str], **variables: str) -> Iterator[int]:
    """Runs a program until the end of the block, from the moment when it accepts connections."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet, env=os.environ | variables) as process:
        try:
            for _ in range(1_800):
                with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            yield port
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def _litellm(upstream: int) -> Iterator[int]:
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "config.yaml"
        model = {"model": "openai/m", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "none"}
        settings.write_text(json.dumps({"model_list": [{"model_name": "m", "litellm_params": model}]}))
        command = ["litellm", "--config", str(settings), "--host", "127.0.0.1", "--port", str(port)]
        with _listening(port, command, LITELLM_LOCAL_MODEL_COST_MAP="True", **_WITHOUT_A_KEY):
            yield port


@contextmanager
def _headroom(upstream: int) -> Iterator[int]:
    port = _free_port()
    command = ["headroom", "proxy", "--port", str(port), "--openai-api-url", f"http://127.0.0.1:{upstream}/v1"]
    with _listening(
        port, [*command, "--stateless", "--no-telemetry", "--no-cache", "--no-rate-limit"], **_WITHOUT_DOWNLOADS
    ):
        yield port


@contextmanager
def _nginx(upstream: int) -> Iterator[int]:
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "nginx.conf"
        settings.write_text(
            f"daemon off; pid {folder}/pid; error_log /dev/null; worker_processes 1;"
            "events { worker_connections 4096; } http { access_log off; client_max_body_size 64m;"
            f"client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;"
            f"upstream up {{ server 127.0.0.1:{upstream}; keepalive 64; }}"
            f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://up; proxy_http_version 1.1;"
            'proxy_set_header Connection ""; proxy_buffering off; proxy_request_buffering off; } } }'
        )
        with _listening(port, ["nginx", "-c", str(settings), "-p", folder]):
            yield port


def chat_request(size: int, stream: tuple[int, float] | None = None, text: str = "") -> bytes:
    text += "The tide turns at noon. " * (size // 24)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    asked = b"" if stream is None else b"x-frames: %d\r\nx-pause: %f\r\n" % stream
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(body)
    head += b"Content-Type: application/json\r\nAuthorization: Bearer none\r\n"
    return head + asked + b"\r\n" + body


def connect(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def _read_reply(client: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += client.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    assert b" 200 " in head[:20], data[:500]
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += client.recv(65_536)


def _read_frames(client: socket.socket, count: int) -> Iterator[tuple[float, float]]:
    with client.makefile("rb") as lines:
        for line in lines:
            if line.startswith(b"data:"):
                at, sent = line.removeprefix(b"data:").split()
                yield float(sent), time.perf_counter()
                if int(at) == count - 1:
                    return


async def _serve_upstream() -> None:
    """Answers 2 KB, or as many frames as a header asks for, each with its number and the time."""
    message = {"role": "assistant", "content": "The tide turns at noon. " * 75}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    body = json.dumps(reply).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    opening = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length, frames, pause = (_header(head, name) for name in (b"content-length", b"x-frames", b"x-pause"))
                await reader.readexactly(int(length))
                if not frames:
                    writer.write(answer)
                    continue
                writer.write(opening)
                for number in range(int(frames)):
                    frame = b"data: %d %.7f%b\n\n" % (number, time.perf_counter(), b"" if pause else b" " * 4_000)
                    writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))
                    await writer.drain()
                    if pause:
                        await asyncio.sleep(pause)
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=2_048)
    print(f"Listening on :{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def _header(head: bytes, name: bytes) -> float:
    _, found, rest = head.partition(b"\r\n" + name + b":")
    return float(rest.split(b"\r\n")[0]) if found else 0.0


if __name__ == "__main__":
    asyncio.run(_serve_upstream())
