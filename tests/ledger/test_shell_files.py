"""What agents do to files by the shell alone is noted as what they do with a tool for it (P13)."""

from __future__ import annotations

import pytest
from ledger_story import noise, notes_on, section, used, user

from holdfast.ledger.headings import AT_HAND, FILES
from holdfast.ledger.shell_files import printed_file, written

SCRIPT = "cat > src/tides.py <<'EOF'\nTIDE_TABLE = load('tides.csv')\nEOF\npython src/tides.py"
BOTH = (
    "*** Begin Patch\n*** Update File: src/berths.py\n@@\n-BERTH_COUNT = 12\n+BERTH_COUNT = 14\n"
    "*** Add File: src/boats.py\n+BOAT_LENGTHS = (8, 10, 12)\n*** End Patch"
)


def files_of(command: str) -> list[tuple[str, str]]:
    return [(change.path, change.kind) for change in written(command)[1]]


def test_a_file_written_from_a_text_in_the_command_has_that_text() -> None:
    said, (change,) = written(SCRIPT)
    assert (change.path, change.new, change.kind) == ("src/tides.py", "TIDE_TABLE = load('tides.csv')", "whole")
    assert said == "cat > src/tides.py <<'EOF'\npython src/tides.py"


def test_what_is_added_or_edited_in_place_is_not_written_whole() -> None:
    assert files_of("cat <<EOF >> notes/day.md\nlow water at six\nEOF") == [("notes/day.md", "part")]
    assert files_of("tee -a conf/app.cfg <<'E'\nport = 1\nE") == [("conf/app.cfg", "part")]
    assert files_of("printf '%s' done >> day.md") == [("day.md", "part")]
    assert files_of("sed -i 's|a;b|c|g' src/a.py src/b.py") == [("src/a.py", "unseen"), ("src/b.py", "unseen")]
    assert files_of("sed -i '' -e 's/a/b/' -e 's/c/d/' day.md") == [("day.md", "unseen")]


def test_a_command_writes_where_it_went_before() -> None:
    assert files_of('cd /srv && sed -i.bak "s/x/y/" app.go && go test ./...') == [("/srv/app.go", "unseen")]
    assert files_of("cd /srv\ncd app\necho 1 > version") == [("/srv/app/version", "whole")]
    assert files_of("cd /srv; echo 1 > /etc/motd") == [("/etc/motd", "whole")]


def test_what_only_looks_like_writing_is_none() -> None:
    for command in (
        "echo hi > /dev/null 2>&1",
        "echo 'a > b'; ls",
        "echo 2> errors",
        "grep -n 'cat > x' day.md",
        'echo "never closed > x',
        "sed -n '1,5p' day.md",
        "python - <<'EOF'\nopen('x').read()\nEOF",
    ):
        assert files_of(command) == []
    assert written("python - <<'EOF'\nprint(1)\nEOF")[0] == "python - <<'EOF'\nprint(1)"


def test_a_text_that_never_ends_is_the_rest() -> None:
    assert written("cat > a.md <<EOF\none\ntwo")[1][0].new == "one\ntwo"


def test_a_log_that_is_printed_is_output_and_a_file_that_is_there_is_read() -> None:
    assert printed_file("tail -100 build/ci.log") is None
    assert printed_file("test -f README.md && sed -n '1,220p' README.md || true") == "README.md"


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("sed -n '1,120p' .git/hooks/pre-push", ".git/hooks/pre-push"),
        ("cat Makefile", "Makefile"),
        ("cat .gitignore", ".gitignore"),
        (r"sed -n '1,9p' routes/\$berth.tsx && git status", "routes/$berth.tsx"),
        ("cd /srv && nl -ba bin/tides | head -40", "/srv/bin/tides"),
        ("cat /dev/null", None),
        ("cat /proc/meminfo", None),
        ("ls | tail -20", None),
        ("tail -20", None),
        ("cat berths/", None),
        ("grep -n -A3 'low' src", None),
    ],
)
def test_a_file_needs_no_ending_to_be_one(command: str, file: str | None) -> None:
    assert printed_file(command) == file


def test_the_page_tells_them_with_the_other_files() -> None:
    page = notes_on([user("Write it."), *used("1", "bash", "ok", command=SCRIPT), *noise(20), user("Go on.")])
    assert "src/: tides.py (written)" in section(page, FILES)
    assert "TIDE_TABLE = load('tides.csv')" in section(page, AT_HAND)


def test_lines_of_a_patch_stand_under_their_own_file() -> None:
    page = notes_on([user("Do both."), *used("1", "apply_patch", "Done", input=BOTH), *noise(20), user("Go on.")])
    assert "src/: berths.py (edited 1×), boats.py (written)" in section(page, FILES)
    lines = section(page, AT_HAND)
    heading = next(at for at, line in enumerate(lines) if line.startswith("### boats.py"))
    assert lines[heading + 1] == "BOAT_LENGTHS = (8, 10, 12)"
    assert lines.index("BERTH_COUNT = 14") < heading


def test_what_a_command_takes_away_is_known() -> None:
    assert files_of("cd /srv && rm -f old.py lib/older.py") == [
        ("/srv/old.py", "deleted"),
        ("/srv/lib/older.py", "deleted"),
    ]
    assert files_of("git rm --cached day.md && git commit -m x") == [("day.md", "deleted")]
