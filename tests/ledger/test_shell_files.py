"""Shell commands that read and write files are treated like file tools (P13)."""

from __future__ import annotations

import pytest
from ledger_helpers import filler, notes_on, section, tool_use, user

from holdfast.ledger.headings import EXCERPTS, FILES
from holdfast.ledger.shell_files import parse_file_writes, printed_path
from holdfast.ledger.tool_calls import classify_call
from holdfast.messages import ToolCall

SCRIPT = "cat > src/tides.py <<'EOF'\nTIDE_TABLE = load('tides.csv')\nEOF\npython src/tides.py"
BOTH = (
    "*** Begin Patch\n*** Update File: src/berths.py\n@@\n-BERTH_COUNT = 12\n+BERTH_COUNT = 14\n"
    "*** Add File: src/boats.py\n+BOAT_LENGTHS = (8, 10, 12)\n*** End Patch"
)


def files_of(command: str) -> list[tuple[str, str]]:
    return [(change.path, change.kind) for change in parse_file_writes(command)[1]]


def test_heredoc_written_to_file_is_its_content() -> None:
    assistant, (change,) = parse_file_writes(SCRIPT)
    assert (change.path, change.new, change.kind) == ("src/tides.py", "TIDE_TABLE = load('tides.csv')", "whole")
    assert assistant == "cat > src/tides.py <<'EOF'\npython src/tides.py"


def test_append_and_in_place_edit_are_partial_changes() -> None:
    assert files_of("cat <<EOF >> notes/day.md\nlow water at six\nEOF") == [("notes/day.md", "part")]
    assert files_of("tee -a conf/app.cfg <<'E'\nport = 1\nE") == [("conf/app.cfg", "part")]
    assert files_of("printf '%s' done >> day.md") == [("day.md", "part")]
    assert files_of("sed -i 's|a;b|c|g' src/a.py src/b.py") == [("src/a.py", "unseen"), ("src/b.py", "unseen")]
    assert files_of("sed -i '' -e 's/a/b/' -e 's/c/d/' day.md") == [("day.md", "unseen")]


def test_write_target_is_resolved_against_cd() -> None:
    assert files_of('cd /srv && sed -i.bak "s/x/y/" app.go && go test ./...') == [("/srv/app.go", "unseen")]
    assert files_of("cd /srv\ncd app\necho 1 > version") == [("/srv/app/version", "whole")]
    assert files_of("cd /srv; echo 1 > /etc/motd") == [("/etc/motd", "whole")]


def test_commands_resembling_writes_are_ignored() -> None:
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
    assert parse_file_writes("python - <<'EOF'\nprint(1)\nEOF")[0] == "python - <<'EOF'\nprint(1)"


def test_unterminated_heredoc_takes_the_rest() -> None:
    assert parse_file_writes("cat > a.md <<EOF\none\ntwo")[1][0].new == "one\ntwo"


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("sed -n 1,80p src/tide.py", "/srv/src/tide.py"),
        ("cat ./tide.py", "/srv/tide.py"),
        ("cd docs && cat tide.md", "/srv/docs/tide.md"),
        ("cat /etc/hosts", "/etc/hosts"),
        ("echo low > tide.txt", "/srv/tide.txt"),
        ("cd docs && echo low > tide.txt", "/srv/docs/tide.txt"),
        ("cd /tmp && echo low > tide.txt", "/tmp/tide.txt"),
    ],
)
@pytest.mark.parametrize("key", ["workdir", "cwd"])
def test_paths_of_a_command_are_relative_to_its_folder(command: str, path: str, key: str) -> None:
    """Else one file is listed twice, once as read and once as edited."""
    action = classify_call(ToolCall("1", "exec_command", {"cmd": command, key: "/srv/"}))
    assert path in (action.subject, *(change.path for change in action.changes))


def test_printed_path_ignores_logs_and_accepts_guarded_reads() -> None:
    assert printed_path("tail -100 build/ci.log") is None
    assert printed_path("test -f README.md && sed -n '1,220p' README.md || true") == "README.md"


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
def test_printed_path_accepts_files_without_suffix(command: str, file: str | None) -> None:
    assert printed_path(command) == file


def test_page_lists_files_written_by_shell() -> None:
    page = notes_on([user("Write it."), *tool_use("1", "bash", "ok", command=SCRIPT), *filler(20), user("Go on.")])
    assert "src/: tides.py (written)" in section(page, FILES)
    assert "TIDE_TABLE = load('tides.csv')" in section(page, EXCERPTS)


def test_patch_lines_are_listed_under_their_own_file() -> None:
    page = notes_on([user("Do both."), *tool_use("1", "apply_patch", "Done", input=BOTH), *filler(20), user("Go on.")])
    assert "src/: berths.py (edited 1×), boats.py (written)" in section(page, FILES)
    lines = section(page, EXCERPTS)
    heading = next(at for at, line in enumerate(lines) if line.startswith("### boats.py"))
    assert lines[heading + 1] == "BOAT_LENGTHS = (8, 10, 12)"
    assert lines.index("BERTH_COUNT = 14") < heading


def test_rm_and_git_rm_delete_files() -> None:
    assert files_of("cd /srv && rm -f old.py lib/older.py") == [
        ("/srv/old.py", "deleted"),
        ("/srv/lib/older.py", "deleted"),
    ]
    assert files_of("git rm --cached day.md && git commit -m x") == [("day.md", "deleted")]
