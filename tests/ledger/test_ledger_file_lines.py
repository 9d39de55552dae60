"""Lines since removed from a file are omitted (H3)."""

from __future__ import annotations

from typing import Any

import pytest
from ledger_helpers import Messages, tool_use, user

from holdfast.ledger import HistoryExtractor, list_by_folder
from holdfast.messages import decode_all

PATH = "/srv/config.py"
FILE = """\
HARBOUR = "Osthafen"
hold_minutes = int(os.environ.get("HOLD_MINUTES", "10"))
vat_percent = int(os.environ.get("VAT_PERCENT", "19"))"""
OLD = 'hold_minutes = int(os.environ.get("HOLD_MINUTES", "10"))'
OTHER = 'vat_percent = int(os.environ.get("VAT_PERCENT", "19"))'
READ = tool_use("1", "Read", FILE, file_path=PATH)


def known(*messages: Messages) -> HistoryExtractor:
    decoded, _ = decode_all([user("Mend it."), *(message for group in messages for message in group)], "openai-chat")
    history = HistoryExtractor()
    history.read(decoded, range(1, len(decoded) + 1))
    return history


def edited(old: str, new: str, path: str = PATH) -> Messages:
    return tool_use("2", "Edit", "ok", file_path=path, old_string=old, new_string=new)


def test_line_partly_replaced_is_removed() -> None:
    lines = known(READ, edited('"HOLD_MINUTES", "10"', '"HOLD_MINUTES", "15"')).lines
    assert OLD not in lines and '"HOLD_MINUTES", "15"' in lines
    assert OTHER in lines


def test_first_and_last_replaced_line_may_be_fragments() -> None:
    changed = edited('"HOLD_MINUTES", "10"))\nvat_percent = int(os', '"HOLD_MINUTES", "15"))\nvat_percent = float(os')
    lines = known(READ, changed).lines
    assert OLD not in lines and OTHER not in lines


def test_file_rewritten_keeps_only_its_new_lines() -> None:
    written = tool_use("2", "Write", "ok", file_path=PATH, content=f"{OTHER}\nhold_minutes = 15")
    lines = known(READ, written).lines
    assert OLD not in lines and 'HARBOUR = "Osthafen"' not in lines
    assert OTHER in lines and "hold_minutes = 15" in lines


def test_search_match_is_removed_when_its_file_changes() -> None:
    found = tool_use("1", "Grep", f"{PATH}:2:{OLD}", pattern="hold_minutes")
    assert OLD in known(found).lines
    assert OLD not in known(found, edited('"HOLD_MINUTES", "10"', '"HOLD_MINUTES", "15"')).lines


@pytest.mark.parametrize(
    "change",
    [
        edited('"HOLD_MINUTES", "10"', '"HOLD_MINUTES", "15"', "/srv/other.py"),
        edited("10", "15"),
        edited(f"{OTHER} ", OTHER),
        tool_use("2", "Bash", "", command=f"cat >> {PATH} <<'END'\nmore = True\nEND"),
    ],
    ids=["another file", "too little to know a line by", "another line", "what is added"],
)
def test_unrelated_lines_are_kept(change: Messages) -> None:
    assert OLD in known(READ, change).lines


def test_line_read_again_after_removal_is_known() -> None:
    changed = edited('"HOLD_MINUTES", "10"', '"HOLD_MINUTES", "15"')
    assert OLD in known(READ, changed, tool_use("3", "Read", FILE, file_path=PATH)).lines


def test_line_shared_by_two_files_stays_with_the_unchanged_file() -> None:
    copy = tool_use("2", "Read", FILE, file_path="/srv/copy.py")
    lines = known(READ, copy, tool_use("3", "Write", "ok", file_path=PATH, content="nothing = None")).lines
    assert lines[OLD].source == "/srv/copy.py"


def test_carried_lines_are_removed_when_their_file_changes() -> None:
    history = HistoryExtractor(known(READ).ledger())
    change, _ = decode_all(edited('"HOLD_MINUTES", "10"', '"HOLD_MINUTES", "15"'), "openai-chat")
    history.read(change, (11, 12))
    assert OLD not in history.lines


@pytest.mark.parametrize(
    ("tool", "given", "status"),
    [
        ("apply_patch", {"input": f"*** Begin Patch\n*** Delete File: {PATH}\n*** End Patch"}, "deleted"),
        ("shell", {"command": ["apply_patch", f"*** Begin Patch\n*** Delete File: {PATH}\n*** End Patch"]}, "deleted"),
        ("Bash", {"command": "cd /srv && rm config.py"}, "deleted"),
        ("Bash", {"command": "rm srv/config.py"}, "deleted"),
        ("delete_file", {"path": PATH}, "deleted"),
        ("Write", {"file_path": PATH, "content": ""}, "written"),
        ("Bash", {"command": f"sed -i 's/10/15/' {PATH}"}, "edited 1×"),
    ],
)
def test_file_deleted_emptied_or_edited_by_script_keeps_no_old_lines(
    tool: str, given: dict[str, Any], status: str
) -> None:
    history = known(READ, tool_use("2", tool, "ok", **given))
    assert not {*FILE.splitlines()} & {*history.lines}
    assert list_by_folder(history.files.values()) == [f"/srv/: config.py ({status})"]


def test_deletion_of_unseen_file_is_ignored() -> None:
    assert not known(tool_use("1", "Bash", "", command="rm -rf build/ dist/old.whl")).files


def test_file_written_again_after_deletion_is_listed() -> None:
    again = tool_use("3", "Write", "ok", file_path=PATH, content="HARBOUR = 'Westhafen'")
    history = known(READ, tool_use("2", "Bash", "", command=f"rm {PATH}"), again)
    assert list_by_folder(history.files.values()) == ["/srv/: config.py (written)"]
