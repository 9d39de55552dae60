"""docs/rpc.md is complete and current: every request, record and field is in it, and its examples are run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from rpc_process import RpcProcess

from holdfast.agent.events import AgentEvent
from holdfast.chat.rpc import PROTOCOL_VERSION
from holdfast.chat.rpc.records import ApprovalRequest, Hello, LoggedMessage, RpcError, RpcResponse, SessionListing
from holdfast.chat.rpc.requests import REQUESTS
from holdfast.io.streams import MAX_LINE_BYTES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "rpc.md"
if not PAGE.exists():
    pytest.skip("the documentation is not here", allow_module_level=True)
TEXT = PAGE.read_text(encoding="utf-8")
RECORDS = (Hello, RpcResponse, RpcError, ApprovalRequest, *get_args(AgentEvent))
FIELDS: dict[str, set[str]] = {}
for kind in RECORDS:
    FIELDS.setdefault(str(kind.__struct_config__.tag), set()).update(kind.__struct_fields__)


def sections(title: str) -> dict[str, str]:
    """Returns the sections under a heading, by the type they describe."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    pieces = re.split(r"^### `(\w+)`\n", found[1], flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def documented_names(section: str, table: str) -> set[str]:
    """Returns the names in the first column of the table with this heading."""
    found = re.search(rf"^\| {table} \| \|\n\| --- \| --- \|\n((?:\|.*\n)*)", section, re.MULTILINE)
    rows = found[1].splitlines() if found else []
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_docs_have_a_section_for_every_request_and_no_other() -> None:
    assert list(sections("Requests")) and set(sections("Requests")) == set(REQUESTS)


@pytest.mark.parametrize("name", REQUESTS)
def test_docs_list_fields_of_request_and_response_data(name: str) -> None:
    request, section = REQUESTS[name], sections("Requests")[name]
    assert documented_names(section, "field") == set(request.__struct_fields__) - {"id"}
    assert documented_names(section, "data") == set(request.response_data.__struct_fields__)
    assert bool(request.response_data.__struct_fields__) != ("The data is empty." in section)


def test_docs_have_a_section_for_every_record_and_no_other() -> None:
    assert set(sections("Records")) | set(sections("Events")) == set(FIELDS)
    events = {str(kind.__struct_config__.tag) for kind in get_args(AgentEvent)}
    assert set(sections("Events")) == events - {"error"}, "an error is an answer, too"


@pytest.mark.parametrize("name", FIELDS)
def test_docs_list_fields_of_record(name: str) -> None:
    assert documented_names((sections("Records") | sections("Events"))[name], "field") == FIELDS[name]


def test_docs_list_fields_of_nested_objects_and_limits() -> None:
    for kind, request in ((SessionListing, "list_sessions"), (LoggedMessage, "get_messages")):
        row = next(line for line in sections("Requests")[request].splitlines() if "objects with" in line)
        assert set(kind.__struct_fields__) <= set(re.findall(r"`(\w+)`", row))
    assert f"version {PROTOCOL_VERSION} of the protocol" in TEXT and f"{MAX_LINE_BYTES:,} bytes" in TEXT


def test_docs_list_literal_values_of_fields() -> None:
    for kind in (*RECORDS, *(request.response_data for request in REQUESTS.values()), *REQUESTS.values()):
        for field in msgspec.structs.fields(kind):
            for value in _values(field.type):
                assert f"`{value}`" in TEXT, f"{kind.__name__}.{field.name}"


def _values(kind: Any) -> list[str]:
    inside = get_args(kind)
    return [value for one in inside for value in ([one] if isinstance(one, str) else _values(one))]


def test_docs_examples_match_real_process(tmp_path: Path) -> None:
    """Runs all examples in one conversation, in page order."""
    script = re.search(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert script is not None
    (tmp_path / "harbor.json").write_text(script[1])
    (tmp_path / "tides.csv").write_text("".join(f"2026-03-{day:02d},06:40,{day * 11}\n" for day in range(1, 32)) * 8)
    options = re.search(r"holdfast rpc --model script:harbor.json (.*)\n", TEXT)
    assert options is not None
    lines = [line for block in re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
    assert len(lines) > 30
    with RpcProcess(tmp_path, "--model", f"script:{tmp_path / 'harbor.json'}", *options[1].split()) as client:
        buffered = iter([client.hello])
        skipping = False
        for line in lines:
            direction, _, written = line.partition(" ")
            if direction == "→":
                client.write(written.encode() + b"\n")
            elif written == "…":
                skipping = True
            else:
                wanted = json.loads(written)
                received = next(buffered, None) or client.next_record()
                while skipping and not matches(received, wanted):
                    received = client.next_record()
                assert matches(received, wanted), f"{written}\nis documented, but received\n{json.dumps(received)}"
                skipping = False
        assert client.end() == 0
    assert (tmp_path / "dredging.md").read_text() == "3 March, 06:40\n"


def matches(received: Any, wanted: Any) -> bool:
    """Compares records, ignoring values that differ each time."""
    if wanted == "…":
        return True
    if isinstance(wanted, dict) and isinstance(received, dict):
        return list(wanted) == list(received) and all(matches(received[name], value) for name, value in wanted.items())
    return bool(received == wanted)
