"""`examples/web_service.py` as processes, a client that retries, and the model that they talk to."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from providers import Answer, Call, ProviderServer, Request, Say

PROGRAM = Path(__file__).parents[2] / "examples" / "web_service.py"
QUESTION = re.compile(r"What is (\d+) times (\d+), and that times (\d+)\?")


def question(a: int, b: int, c: int, padding: int = 0) -> str:
    return f"What is {a} times {b}, and that times {c}?" + " Take your time." * padding


def multiplier(request: Request) -> Answer:
    """The model: calls the tool twice, then answers with the product; a request without tools is for a summary."""
    messages = request.body["messages"]
    if "tools" not in request.body:
        return "They multiplied numbers."
    asked = [index for index, message in enumerate(messages) if QUESTION.match(str(message["content"]))]
    if not asked:
        return "There is nothing to multiply."
    a, b, c = map(int, QUESTION.findall(messages[asked[-1]]["content"])[0])
    results = [message["content"] for message in messages[asked[-1] :] if message["role"] == "tool"]
    results = [result for result in results if result.isdigit()]
    if len(results) < 2:
        numbers = {"a": int(results[0]), "b": c} if results else {"a": a, "b": b}
        return Say(calls=(Call("multiply", numbers),))
    return Say(f"It is {a * b * c}. " + "That is a fine number. " * 10, pieces=6, delay=0.005)


class Replica:
    """One process of the service; `start` starts it again on its port."""

    def __init__(self, server: ProviderServer, **more: str) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port: int = found.getsockname()[1]
        given = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.openai_url, "OPENAI_MODEL": "gpt-test"}
        self._environment = {**os.environ, **given, **more}
        self.start()

    def start(self) -> None:
        command = [sys.executable, str(PROGRAM), str(self.port)]
        self.process = subprocess.Popen(command, env=self._environment, stderr=subprocess.PIPE, text=True)

    def wait_until_ready(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def stop(self) -> str:
        """Stops the process in order; returns what it wrote to standard error."""
        self.process.terminate()
        return self.process.communicate(timeout=60)[1]


@contextmanager
def replicas(server: ProviderServer, count: int, **settings: str) -> Iterator[list[Replica]]:
    started = [Replica(server, **settings) for _ in range(count)]
    try:
        for replica in started:
            replica.wait_until_ready()
        yield started
    finally:
        errors = [replica.stop() for replica in started]
    assert not [error for error in errors if "Traceback" in error], errors


def create(port: int) -> str:
    status, body = _call(port, "POST", "/sessions", {})
    assert status == 201, body
    return str(json.loads(body)["id"])


def put_turn(port: int, session: str, turn: str, text: str) -> list[dict[str, Any]]:
    """Sends one turn; returns its events. Raises OSError or HTTPException if the replica dies meanwhile."""
    _, body = _call(port, "PUT", f"/sessions/{session}/turns/{turn}", {"text": text})
    return [json.loads(line.removeprefix("data: ")) for line in body.splitlines() if line]


def answer(ports: list[int], session: str, turn: str, text: str) -> tuple[str, int]:
    """Sends a turn to one replica after the other until it is answered; returns the reply, and how many attempts."""
    attempt = 0
    while True:
        attempt += 1
        try:
            events = put_turn(ports[attempt % len(ports)], session, turn, text)
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
            continue
        if events and "reply" in events[-1]:
            return str(events[-1]["reply"]), attempt
        if events and "error" in events[-1]:
            raise AssertionError(events[-1]["error"])


def _call(port: int, method: str, path: str, body: Any) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()
