"""`holdfast rpc` as a subprocess: conversations, signals, and closed pipes (P8, P9, P10, P11)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from rpc_process import TIMEOUT, RpcProcess, command, environment

from holdfast import SessionService
from holdfast.stores import open_store
from providers import Answer, ProviderServer, Request, Say, Stall
from summarizing_model import summarize

TABLES = "The tide tables of Osterhaven, berth by berth. " * 150
"""About 1,500 tokens."""


class Harbor:
    """A model that answers with long tables or a slow story, and whose summaries can be made to hang."""

    def __init__(self) -> None:
        self.summaries_hang = False

    def __call__(self, request: Request) -> Answer:
        if "tools" not in request.body:
            return Stall(after=2) if self.summaries_hang else summarize(request)
        last = str(request.body["messages"][-1]["content"])
        return Say("Once upon a tide. " * 50, pieces=100, delay=0.05) if "story" in last else Say(TABLES)


def test_rpc_process_conversation_with_compaction_and_branch(tmp_path: Path) -> None:
    harbor, store = Harbor(), ["--store", tmp_path / "sessions.db", "--window", "8k"]
    with (
        ProviderServer(harbor, window=8_000) as server,
        RpcProcess(tmp_path, "--model", f"{server.openai_url}#harbor", *store) as client,
    ):
        source = client.hello["session"]
        for number in (1, 2, 3):
            done = client.request(type="prompt", text=f"Read the tables of berth N{number}.")
            assert done["data"]["status"] == "done" and done["data"]["text"] == TABLES
        kinds = [record["type"] for record in client.records]
        for kind in ("started", "progress", "completed", "boundary"):
            assert f"compaction_{kind}" in kinds, "the window is small: it compacts by itself"
        completed = next(record for record in client.records if record["type"] == "compaction_completed")
        assert completed["origin"] == "auto" and completed["summarizer"].endswith("#harbor") and completed["summary"]
        compacted = client.request(type="get_messages")["data"]["messages"]

        client.write(b"this is no request\n")
        assert "not JSON" in client.wait_for_response(None)["error"]

        _abort_in_a_story(client, server)
        _branch_from_before_the_compaction(client, source)
        harbor.summaries_hang = True
        _abort_in_a_compaction(client)
        client.request(type="switch_session", session=source)
        last = client.request(type="get_messages")["data"]["messages"]
        assert last[: len(compacted)] == compacted, "the branch has left it as it was"
        assert client.end() == 0
        assert (server.refused, server.overflowed) == ([], 0)
        assert client.process.stderr is not None and b"Traceback" not in client.process.stderr.read()

        with RpcProcess(tmp_path, "--model", f"{server.openai_url}#harbor", *store, "--session", source) as again:
            assert again.hello["session"] == source and again.wait_for_event("session")["how"] == "resumed"
            assert again.request(type="get_messages")["data"]["messages"] == last


def _abort_in_a_story(client: RpcProcess, server: ProviderServer) -> None:
    client.send(id="story", type="prompt", text="Tell me a story.")
    deltas = [client.wait_for_event("delta")["text"], client.wait_for_event("delta")["text"]]
    assert client.request(type="abort")["data"]["activity"] == "running"
    assert client.wait_for_response("story")["data"]["status"] == "aborted"
    assert server.requests[-1].disconnected.wait(TIMEOUT)
    kept = client.request(type="get_messages")["data"]["messages"][-1]
    assert kept["role"] == "assistant" and kept["content"].startswith("".join(deltas).strip())


def _branch_from_before_the_compaction(client: RpcProcess, source: str) -> None:
    whole = client.request(type="get_messages", whole=True)["data"]["messages"]
    second = [line for line in whole if line["role"] == "user"][1]
    assert second["archived"]
    branch = client.request(type="branch", at=second["event"])["data"]
    assert branch["parent"] == source != branch["session"]
    context = client.request(type="get_messages")["data"]["messages"]
    assert [message["content"] for message in context][::2] == [
        "Read the tables of berth N1.",
        "Read the tables of berth N2.",
    ]
    assert client.request(type="go_on")["data"]["text"] == TABLES


def _abort_in_a_compaction(client: RpcProcess) -> None:
    before = client.request(type="get_messages")["data"]["messages"]
    client.send(id="compact", type="compact", instructions="mind the berths")
    client.wait_for(lambda record: record["type"] == "compaction_progress" and record["kind"] == "delta")
    assert client.request(type="abort")["data"]["activity"] == "compacting"
    assert client.wait_for_response("compact")["data"]["outcome"] == "aborted"
    assert client.request(type="get_messages")["data"]["messages"] == before


def write_script(folder: Path, *steps: Any, **more: Any) -> str:
    file = folder / "script.json"
    file.write_text(json.dumps({"steps": list(steps), **more}))
    return f"script:{file}"


def start_long_reply(folder: Path) -> RpcProcess:
    """Starts a process whose agent is in the middle of a long reply."""
    model = write_script(folder, "Once upon a tide. " * 50, delay=1.0)
    client = RpcProcess(folder, "--model", model, "--store", folder / "sessions.db")
    client.send(id="story", type="prompt", text="Tell me a story.")
    client.wait_for_event("delta")
    return client


def stored_texts(folder: Path, session: str) -> list[str]:
    async def read() -> list[str]:
        async with SessionService(open_store(folder / "sessions.db")) as sessions:
            return [message["content"] for message in await sessions.context(session)]

    return anyio.run(read)


def test_rpc_process_end_of_input_aborts_and_stores_partial_reply(tmp_path: Path) -> None:
    with start_long_reply(tmp_path) as client:
        assert client.end() == 0
    assert client.records[-1]["data"]["status"] == "aborted"
    prompt, partial = stored_texts(tmp_path, client.hello["session"])
    assert prompt == "Tell me a story." and partial.startswith("Once upon a tide.")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_rpc_process_sigterm_aborts_and_stores_partial_reply(tmp_path: Path) -> None:
    with start_long_reply(tmp_path) as client:
        client.process.send_signal(signal.SIGTERM)
        assert client.wait_for_response("story")["data"]["status"] == "aborted"
        assert client.process.wait(TIMEOUT) == 143, "its input is still open"
        assert client.process.stderr is not None and client.process.stderr.read() == b""
    assert stored_texts(tmp_path, client.hello["session"])[1].startswith("Once upon a tide.")


def test_rpc_process_closed_output_exits_quietly(tmp_path: Path) -> None:
    model = write_script(tmp_path, "Once upon a tide. " * 50, delay=0.4)
    with subprocess.Popen(
        command("rpc", "--folder", tmp_path, "--model", model, "--store", tmp_path / "sessions.db"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        session = json.loads(process.stdout.readline())["session"]
        process.stdin.write(b'{"type": "prompt", "text": "Tell me a story."}\n')
        process.stdin.flush()
        assert any(b'"delta"' in line for line in iter(process.stdout.readline, b""))
        process.stdout.close()
        with suppress(BrokenPipeError):
            os.write(process.stdin.fileno(), b'{"type": "get_state"}\n')
        assert process.wait(TIMEOUT) == 141
        assert process.stderr.read() == b""
    assert stored_texts(tmp_path, session)[1].startswith("Once upon a tide.")
