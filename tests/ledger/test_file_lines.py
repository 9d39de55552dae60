"""What a file no longer holds is not told as if it did (H3)."""

from __future__ import annotations

from typing import Any

import pytest
from ledger_story import Messages, used, user

from holdfast.ledger import Notebook, by_folder
from holdfast.messages import decode_all

PATH = "/srv/config.py"
FILE = """\
HARBOUR = "Osthafen"
hold_minutes = int(os.environ.get("HOLD_MINUTES", "10"))
vat_percent = int(os.environ.get("VAT_PERCENT", "19"))"""
OLD = 'hold_minutes = int(os.environ.get("HOLD_MINUTES", "10"))'
OTHER = 'vat_percent = int(os.environ.get("VAT_PERCENT", "19"))'
READ = used("1", "Read", FILE, file_path=PATH)


def known(*messages: Messages) -> Notebook:
    decoded, _ = decode_all([user("Mend it."), *(message for group in messages for message in group)], "openai-chat")
    notebook = Notebook()
    notebook.read(decoded, range(1, len(decoded) + 1))
    return notebook


def edited(old: str, new: str, path: str = PATH) -> Messages:
    return used("2", "Edit", "ok", file_path=path, old_string=old, new_string=new)


def test_a_line_of_which_a_part_was_replaced_is_gone() -> None:
    lines = known(READ, edited('"HOLD_MINUTES", "10"', '"HOLD_MINUTES", "15"')).lines
    assert OLD not in lines and '"HOLD_MINUTES", "15"' in lines
    assert OTHER in lines


def test_the_first_and_the_last_line_of_what_is_replaced_need_not_be_whole() -> None:
    changed = edited('"HOLD_MINUTES", "10"))\nvat_percent = int(os', '"HOLD_MINUTES", "15"))\nvat_percent = float(os')
    lines = known(READ, changed).lines
    assert OLD not in lines and OTHER not in lines


def test_of_a_file_that_is_written_anew_only_the_new_lines_are_known() -> None:
    written = used("2", "Write", "ok", file_path=PATH, content=f"{OTHER}\nhold_minutes = 15")
    lines = known(READ, written).lines
    assert OLD not in lines and 'HARBOUR = "Osthafen"' not in lines
    assert OTHER in lines and "hold_minutes = 15" in lines


def test_what_was_found_in_a_file_is_gone_with_it() -> None:
    found = used("1", "Grep", f"{PATH}:2:{OLD}", pattern="hold_minutes")
    assert OLD in known(found).lines
    assert OLD not in known(found, edited('"HOLD_MINUTES", "10"', '"HOLD_MINUTES", "15"')).lines


@pytest.mark.parametrize(
    "change",
    [
        edited('"HOLD_MINUTES", "10"', '"HOLD_MINUTES", "15"', "/srv/other.py"),
        edited("10", "15"),
        edited(f"{OTHER} ", OTHER),
        used("2", "Bash", "", command=f"cat >> {PATH} <<'END'\nmore = True\nEND"),
    ],
    ids=["another file", "too little to know a line by", "another line", "what is added"],
)
def test_other_lines_stay(change: Messages) -> None:
    assert OLD in known(READ, change).lines


def test_a_line_that_came_back_is_known_again() -> None:
    changed = edited('"HOLD_MINUTES", "10"', '"HOLD_MINUTES", "15"')
    assert OLD in known(READ, changed, used("3", "Read", FILE, file_path=PATH)).lines


def test_what_another_file_holds_as_well_is_that_file_s() -> None:
    copy = used("2", "Read", FILE, file_path="/srv/copy.py")
    lines = known(READ, copy, used("3", "Write", "ok", file_path=PATH, content="nothing = None")).lines
    assert lines[OLD].source == "/srv/copy.py"


def test_lines_that_were_carried_from_earlier_are_a_file_s_still() -> None:
    notebook = Notebook(known(READ).ledger())
    change, _ = decode_all(edited('"HOLD_MINUTES", "10"', '"HOLD_MINUTES", "15"'), "openai-chat")
    notebook.read(change, (11, 12))
    assert OLD not in notebook.lines


@pytest.mark.parametrize(
    ("tool", "given", "told"),
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
def test_of_a_file_that_was_deleted_emptied_or_rewritten_by_a_script_no_old_line_is_told(
    tool: str, given: dict[str, Any], told: str
) -> None:
    notebook = known(READ, used("2", tool, "ok", **given))
    assert not {*FILE.splitlines()} & {*notebook.lines}
    assert by_folder(notebook.files.values()) == [f"/srv/: config.py ({told})"]


def test_what_was_never_seen_is_not_told_as_deleted() -> None:
    assert not known(used("1", "Bash", "", command="rm -rf build/ dist/old.whl")).files


def test_a_file_that_is_written_again_is_there_again() -> None:
    again = used("3", "Write", "ok", file_path=PATH, content="HARBOUR = 'Westhafen'")
    notebook = known(READ, used("2", "Bash", "", command=f"rm {PATH}"), again)
    assert by_folder(notebook.files.values()) == ["/srv/: config.py (written)"]
