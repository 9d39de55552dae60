"""docs/rpc.md cannot drift: every request, record and field is in it and nothing else is, and its examples are run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from rpc_process import Client

from holdfast.agent.events import AgentEvent
from holdfast.lines import LONGEST
from holdfast.rpc import PROTOCOL
from holdfast.rpc.reading import REQUESTS
from holdfast.rpc.records import ApprovalRequest, Hello, Listed, Logged, Refused, Response

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rpc.md"
if not PAGE.exists():
    pytest.skip("the documentation is not here", allow_module_level=True)
TEXT = PAGE.read_text(encoding="utf-8")
RECORDS = (Hello, Response, Refused, ApprovalRequest, *get_args(AgentEvent))
FIELDS: dict[str, set[str]] = {}
for kind in RECORDS:
    FIELDS.setdefault(str(kind.__struct_config__.tag), set()).update(kind.__struct_fields__)


def part(title: str) -> dict[str, str]:
    """The sections of a part of the page, by the types that they are about."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    pieces = re.split(r"^### `(\w+)`\n", found[1], flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def told(section: str, table: str) -> set[str]:
    """The names in the first column of the table with this heading."""
    found = re.search(rf"^\| {table} \| \|\n\| --- \| --- \|\n((?:\|.*\n)*)", section, re.MULTILINE)
    rows = found[1].splitlines() if found else []
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_every_request_has_its_section_and_nothing_else_has() -> None:
    assert list(part("Requests")) and set(part("Requests")) == set(REQUESTS)


@pytest.mark.parametrize("name", REQUESTS)
def test_the_fields_of_a_request_and_of_its_answer_are_told(name: str) -> None:
    request, section = REQUESTS[name], part("Requests")[name]
    assert told(section, "field") == set(request.__struct_fields__) - {"id"}
    assert told(section, "data") == set(request.answer.__struct_fields__)
    assert bool(request.answer.__struct_fields__) != ("The data is empty." in section)


def test_every_record_has_its_section_and_nothing_else_has() -> None:
    assert set(part("Records")) | set(part("Events")) == set(FIELDS)
    events = {str(kind.__struct_config__.tag) for kind in get_args(AgentEvent)}
    assert set(part("Events")) == events - {"error"}, "an error is an answer, too"


@pytest.mark.parametrize("name", FIELDS)
def test_the_fields_of_a_record_are_told(name: str) -> None:
    assert told((part("Records") | part("Events"))[name], "field") == FIELDS[name]


def test_objects_in_lists_and_numbers_are_told() -> None:
    for kind, request in ((Listed, "list_sessions"), (Logged, "get_messages")):
        row = next(line for line in part("Requests")[request].splitlines() if "objects with" in line)
        assert set(kind.__struct_fields__) <= set(re.findall(r"`(\w+)`", row))
    assert f"version {PROTOCOL} of the protocol" in TEXT and f"{LONGEST:,} bytes" in TEXT


def test_values_that_a_field_may_have_are_told() -> None:
    for kind in (*RECORDS, *(request.answer for request in REQUESTS.values()), *REQUESTS.values()):
        for field in msgspec.structs.fields(kind):
            for value in _values(field.type):
                assert f"`{value}`" in TEXT, f"{kind.__name__}.{field.name}"


def _values(kind: Any) -> list[str]:
    inside = get_args(kind)
    return [value for one in inside for value in ([one] if isinstance(one, str) else _values(one))]


def test_the_examples_are_what_a_real_process_says(tmp_path: Path) -> None:
    """In one conversation, in the order of the page."""
    script = re.search(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert script is not None
    (tmp_path / "harbor.json").write_text(script[1])
    (tmp_path / "tides.csv").write_text("".join(f"2026-03-{day:02d},06:40,{day * 11}\n" for day in range(1, 32)) * 8)
    options = re.search(r"holdfast rpc --model script:harbor.json (.*)\n", TEXT)
    assert options is not None
    lines = [line for block in re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
    assert len(lines) > 30
    with Client(tmp_path, "--model", f"script:{tmp_path / 'harbor.json'}", *options[1].split()) as client:
        told = iter([client.hello])
        skipping = False
        for line in lines:
            way, _, written = line.partition(" ")
            if way == "→":
                client.write(written.encode() + b"\n")
            elif written == "…":
                skipping = True
            else:
                wanted = json.loads(written)
                said = next(told, None) or client.next()
                while skipping and not like(said, wanted):
                    said = client.next()
                assert like(said, wanted), f"{written}\nis on the page, and\n{json.dumps(said)}\nwas said"
                skipping = False
        assert client.end() == 0
    assert (tmp_path / "dredging.md").read_text() == "3 March, 06:40\n"


def like(said: Any, wanted: Any) -> bool:
    """The same, but for what is different each time."""
    if wanted == "…":
        return True
    if isinstance(wanted, dict) and isinstance(said, dict):
        return list(wanted) == list(said) and all(like(said[name], value) for name, value in wanted.items())
    return bool(said == wanted)
