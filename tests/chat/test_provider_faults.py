"""Faults of providers, in the chat, in `--print` and in RPC: what passes is waited out, the rest is named in words."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import anyio
import msgspec
import openai  # noqa: F401 - imported by the first call otherwise, which takes longer than its time-out
import pytest
from fault_server import Fault, call, chunk, chunked, error, reply, serve, status, stream

from holdfast.agent.events import RunFinished
from holdfast.agent.tools import approve_all
from holdfast.chat.open_chat import open_chat
from holdfast.chat.rpc.server import serve as serve_rpc
from holdfast.chat.terminal.conversation import Conversation
from holdfast.chat.terminal.theme import ChatTheme
from holdfast.cli.chat import ChatArguments, print_answer
from holdfast.models.calls import Limits
from holdfast.settings import Settings, load_settings

QUICK = Limits(attempts=4, backoff=0.01, timeout=2, deadline=20, longest_wait=2)
GOOD = reply("The tide turns at noon.")
PAGE = "<html><head><title>{0}</title></head><body><center><h1>{0}</h1></center><hr>nginx</body></html>"
HALF = [chunk(content="The tide "), chunk(content="turns ")]
READ = {"tool_calls": [call("c1", "read_file", '{"path": "tides.csv"}')]}

FAULTS: dict[str, Fault | str] = {
    "429 with Retry-After": error(429, "Slow down.", "rate_limit_exceeded", Retry_After="0.05"),
    "429 without Retry-After": error(429, "Slow down.", "rate_limit_exceeded"),
    "500": error(500, "The server had an error."),
    "502 as HTML": status(502, PAGE.format("502 Bad Gateway"), "text/html"),
    "503 as HTML": status(503, PAGE.format("503 Service Temporarily Unavailable"), "text/html"),
    "overloaded": error(529, "Overloaded", "overloaded_error"),
    "refused": "http://127.0.0.1:9/v1",
    "name not found": "http://nowhere.invalid/v1",
    "TLS": "https://127.0.0.1:{port}/v1",
    "reset before the answer": Fault(end="reset"),
    "closed before the answer": Fault(),
    "reset after the head": Fault(stream().data, "reset"),
    "reset in mid-stream": chunked(*HALF, end="reset"),
    "end of file in mid-stream": chunked(*HALF),
    "clean end in mid-stream": stream(*HALF),
    "slow first byte": Fault(GOOD.data, delay=0.3),
    "no first byte": Fault(end="hang"),
    "stall": chunked(*HALF, end="hang"),
    "broken chunk": chunked(*HALF, rest="zz\r\ndata: {\r\n"),
    "broken JSON": stream(*HALF, '{"id": "1", "choi'),
    "wrong content type": status(200, PAGE.format("Sign in to the network"), "text/html"),
    "error event in the stream": stream(*HALF, '{"error": {"message": "Overloaded", "type": "overloaded_error"}}'),
    "empty reply": stream(chunk("stop"), "[DONE]"),
    "length": reply("The tide turns", "length"),
    "unknown stop": reply("The tide turns at noon.", "because"),
    "tool call with invalid JSON": reply("", "tool_calls", tool_calls=[call("c1", "read_file", '{"path": "ti')]),
    "unknown tool": reply("", "tool_calls", tool_calls=[call("c1", "sail", "{}")]),
    "repeated call id": reply("", "tool_calls", tool_calls=[READ["tool_calls"][0], call("c1", "list_files", "{}", 1)]),
    "overflow with a number": error(
        400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "context_length_exceeded",
    ),
    "overflow without a number": error(400, "The input is too long.", "context_length_exceeded"),
    "content filter": reply("The ti", "content_filter"),
    "wrong key": error(401, "Incorrect API key provided: sk-abc.", "invalid_api_key"),
}  # fmt: skip


class Outcome(NamedTuple):
    status: str
    shown: str


class Row(NamedTuple):
    chat: Outcome
    print: Outcome
    rpc: Outcome
    requests: int


async def in_chat(settings: Settings, folder: Path) -> Outcome:
    conversation, ends = Conversation(), list[RunFinished]()

    def on_event(event: object) -> None:
        conversation.handle_event(event)  # type: ignore[arg-type]
        if isinstance(event, RunFinished):
            ends.append(event)

    async with open_chat(settings, folder=folder, on_event=on_event, approve=approve_all) as chat:
        conversation.chat = chat
        await conversation.run_line("When does the tide turn?")
        await chat.wait_idle()
        lines = [line for entry in conversation.transcript for line in entry.draw(200, ChatTheme())]
    return Outcome(ends[-1].status, "\n".join(line.text.strip() for line in lines if line.text.strip()))


async def in_print(settings: Settings, folder: Path) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = await print_answer(ChatArguments(settings, str(folder), None, True), "When does the tide turn?")
    lines = [line for line in err.getvalue().splitlines() if not line.startswith("session ")]
    return Outcome(str(code), "\n".join([*lines, *out.getvalue().splitlines()]))


async def in_rpc(settings: Settings, folder: Path) -> Outcome:
    out, (source, sink) = io.BytesIO(), os.pipe()
    os.write(sink, b'{"id": 1, "type": "prompt", "text": "When does the tide turn?"}\n')
    records: list[dict[str, Any]] = []

    async def close_when_answered() -> None:
        while not any(record.get("id") == 1 for record in records):
            await anyio.sleep(0.005)
            records[:] = [json.loads(line) for line in out.getvalue().splitlines()]
        os.close(sink)

    async with anyio.create_task_group() as group:
        group.start_soon(close_when_answered)
        await serve_rpc(settings, source, out, folder=folder, yes=True)
    os.close(source)
    [answer] = [record for record in records if record.get("id") == 1]
    if answer["type"] == "error":
        return Outcome("error", answer["error"])
    result = answer["data"]
    return Outcome(result["status"], "\n".join(filter(None, (result["text"], result["why"]))))


def run_faces(name: str) -> Row:
    fault = FAULTS[name]
    outcomes, count = [], 0
    for face in (in_chat, in_print, in_rpc):
        answers = [fault, GOOD] if isinstance(fault, Fault) else [GOOD]
        with serve(answers) as (port, requests), tempfile.TemporaryDirectory() as place:
            folder = Path(place, "harbor")
            folder.mkdir()
            (folder / "tides.csv").write_text("noon\n")
            address = f"http://127.0.0.1:{port}/v1" if isinstance(fault, Fault) else fault.format(port=port)
            environ = {"HOME": place, "XDG_CONFIG_HOME": place}
            flags = {"model": f"{address}#m", "store": f"sqlite:///{place}/s.db"}
            settings = load_settings(folder, flags, trust=True)
            with patch.dict("os.environ", environ), patch("holdfast.chat.open_chat.retry_limits", lambda _: QUICK):
                outcomes.append(anyio.run(face, settings, folder))
            count = len(requests)
    return Row(*outcomes, requests=count)


WAITED = {
    "429 with Retry-After": "no answer (Slow down. (HTTP 429)): retrying in",
    "429 without Retry-After": "no answer (Slow down. (HTTP 429)): retrying in",
    "500": "no answer (The server had an error. (HTTP 500)): retrying in",
    "502 as HTML": "no answer (502 Bad Gateway): retrying in",
    "503 as HTML": "no answer (503 Service Temporarily Unavailable): retrying in",
    "overloaded": "no answer (Overloaded (HTTP 529)): retrying in",
    "reset before the answer": "no answer (the connection broke): retrying in",
    "closed before the answer": "no answer (the connection broke): retrying in",
    "reset after the head": "no answer (the connection broke): retrying in",
    "no first byte": "no answer (no data for 2 s): retrying in",
    "wrong content type": "no answer (The stream ended before the reply was complete.): retrying in",
    "reset in mid-stream": "the reply broke off (the connection broke): asking again in",
    "end of file in mid-stream": "the reply broke off (the connection broke): asking again in",
    "broken chunk": "the reply broke off (the connection broke): asking again in",
    "clean end in mid-stream": "the reply broke off (The stream ended before the reply was complete.): asking again in",
    "stall": "the reply broke off (no data for 2 s): asking again in",
    "broken JSON": "the reply broke off (a part of the reply is not JSON): asking again in",
    "error event in the stream": "the reply broke off (Overloaded): asking again in",
}
"""Passing faults: the run goes on, and the answer is given once."""
ANSWERED = ("slow first byte", "unknown stop", "tool call with invalid JSON", "unknown tool", "repeated call id")
FAILED = {
    "refused": ("failed", "no answer from the model: could not connect to the server"),
    "name not found": ("failed", "no answer from the model: the server's name was not found"),
    "TLS": ("failed", "no answer from the model: no secure connection: "),
    "empty reply": ("failed", "the model replied with nothing"),
    "length": ("max_tokens", "the reply is too long"),
    "overflow with a number": ("failed", "the prompt is too long for the model, and it could not be made smaller"),
    "overflow without a number": ("failed", "the provider rejected the request: The input is too long. (HTTP 400)"),
    "content filter": ("failed", "the model refused to answer"),
    "wrong key": ("failed", "the provider refused the key: Incorrect API key provided: sk-abc. (HTTP 401)"),
}
"""Status and reason at the end."""


def test_every_fault_has_an_outcome() -> None:
    assert {*WAITED, *ANSWERED, *FAILED} == set(FAULTS)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", [*WAITED, *ANSWERED])
def test_passing_fault_is_waited_out(name: str) -> None:
    row = run_faces(name)
    assert [row.chat.status, row.print.status, row.rpc.status] == ["done", "0", "done"], row
    assert row.rpc.shown == row.print.shown.splitlines()[-1] == "The tide turns at noon."
    line = WAITED.get(name, "")
    assert line.lower() in row.chat.shown.lower() and line in row.print.shown, row
    assert row.requests == (1 if name in ("slow first byte", "unknown stop") else 2)
    broken = [row.chat.shown.count(text) for text in ("The tide turns\n(broken off)", "The tide turns at noon.")]
    assert broken == [line.startswith("the reply"), 1], row.chat.shown
    assert "<html" not in row.chat.shown and "no answer" not in row.print.shown.partition("the reply broke off")[2]


@pytest.mark.parametrize("name", FAILED)
def test_other_fault_ends_the_run_with_its_reason(name: str) -> None:
    row, (status, why) = run_faces(name), FAILED[name]
    assert [row.chat.status, row.print.status, row.rpc.status] == [status, "1", status], row
    assert all(why.lower() in face.shown.lower() for face in row[:3]), row  # type: ignore[union-attr]
    assert row.print.shown.count(why) == 1
    assert "Enter continues." in row.chat.shown


STEPS = int(os.environ.get("HOLDFAST_DROPPED_STEPS", "60"))
"""Model calls of the long task; 300 are an hour at twelve seconds each."""


def test_long_task_finishes_while_a_tenth_of_the_streams_drops(tmp_path: Path) -> None:
    """Every call runs once, and the text of a broken stream is not stored; compactions on the way drop out, too."""
    chance, done, dropped, summaries = random.Random(7), 0, 0, 0

    def answer(body: bytes) -> Fault:
        nonlocal done, dropped, summaries
        is_step = "tools" in json.loads(body)
        if is_step and done == STEPS:
            pieces = [chunk(content="All the tides "), chunk(content="are read."), chunk("stop"), "[DONE]"]
        elif is_step:
            name = {"path": f"tides{done}.csv"}
            calls = [call(f"c{done}", "read_file", json.dumps(name))]
            pieces = [chunk(content=f"Next is {done}."), chunk(tool_calls=calls), chunk("tool_calls"), "[DONE]"]
        else:
            pieces = [
                chunk(content="## Goal\nRead the tides."),
                chunk(content="\n## Next Steps\n- Go on."),
                chunk("stop"),
            ]
        if chance.random() < 0.1:
            dropped += 1
            return chunked(*pieces[: chance.randrange(3)], end=chance.choice(["reset", "close"]))
        done, summaries = done + (is_step and done < STEPS), summaries + (not is_step)
        return stream(*pieces)

    folder = tmp_path / "harbor"
    folder.mkdir()
    for number in range(STEPS):
        (folder / f"tides{number}.csv").write_text(f"tide {number}\n" * 300)
    with serve(answer) as (port, _):
        flags = {"model": f"http://127.0.0.1:{port}/v1#m", "store": f"sqlite:///{tmp_path}/s.db", "window": 20_000}
        with (
            patch.dict("os.environ", {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}),
            patch("holdfast.chat.open_chat.retry_limits", lambda _: msgspec.structs.replace(QUICK, attempts=20)),
        ):
            outcome = anyio.run(in_print, load_settings(folder, flags, trust=True), folder)
    assert (outcome.status, outcome.shown.splitlines()[-1]) == ("0", "All the tides are read."), outcome.shown[-2_000:]
    ran = [line for line in outcome.shown.splitlines() if line.startswith("read_file ")]
    assert ran == [f"read_file tides{number}.csv" for number in range(STEPS)]
    assert dropped >= STEPS // 20 and summaries
    print(f"{STEPS} steps, {dropped} streams dropped, {summaries} summaries")
