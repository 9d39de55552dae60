"""JSON lines: split independently of chunking, and written without blocking on a slow reader."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.events import ErrorEvent
from holdfast.io.streams import JsonLinesWriter, OversizedLine, split_lines


@given(data=st.data(), pieces=st.lists(st.binary(max_size=12), max_size=12), longest=st.integers(1, 12))
def test_split_lines_does_not_depend_on_chunking(data: st.DataObject, pieces: list[bytes], longest: int) -> None:
    whole = b"\n".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    *ended, rest = whole.split(b"\n")
    wanted = [line if len(line) <= longest else None for line in [*ended, *([rest] if rest else [])]]
    assert anyio.run(_lines, chunks, longest) == wanted


async def _lines(chunks: Sequence[bytes], longest: int) -> list[bytes | None]:
    async def arriving() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return [None if isinstance(line, OversizedLine) else line async for line in split_lines(arriving(), longest)]


@pytest.mark.anyio
async def test_json_lines_writer_lone_surrogate_is_one_line() -> None:
    """Models and files may contain lone surrogates."""
    stream = io.BytesIO()
    out = JsonLinesWriter(stream)
    async with out.running():
        out.send(ErrorEvent("half a \ud83d fish\nand a line"))
        out.send(ErrorEvent("a whole 🐟"))
    first, second = stream.getvalue().splitlines()
    assert json.loads(first)["error"] == "half a \ud83d fish\nand a line"
    assert json.loads(second) == {"type": "error", "error": "a whole 🐟"}


@pytest.mark.anyio
async def test_json_lines_writer_send_does_not_block_on_slow_reader() -> None:
    read, written = threading.Event(), list[bytes]()

    class Slow(io.BytesIO):
        def write(self, data: Any) -> int:
            read.wait(60)
            written.append(bytes(data))
            return len(data)

    out = JsonLinesWriter(Slow())
    async with out.running():
        for number in range(3):
            out.send(ErrorEvent(str(number)))
            await anyio.sleep(0.01)
        assert not written
        read.set()
    assert [json.loads(line)["error"] for line in b"".join(written).splitlines()] == ["0", "1", "2"]
