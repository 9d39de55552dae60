"""The last errors verbatim, and the commands with their number of runs."""

from __future__ import annotations

import pytest
from ledger_helpers import Messages, filler, notes_on, section, tool_use, user

from holdfast.ledger import parse_page
from holdfast.ledger.headings import COMMANDS, ERRORS, EXCERPTS, STEPS

FAILED = "collected 3 items\nE   KeyError: 'tide_osterhaven'\nFAILED tests/test_tides.py::test_low_water"


def run(id: str, command: str, result: str) -> Messages:
    return tool_use(id, "bash", result, command=command)


def ending(*steps: Messages) -> Messages:
    return [user("Make it pass."), *[message for step in steps for message in step], *filler(20), user("And now?")]


def test_errors_section_shows_lines_verbatim() -> None:
    errors = section(notes_on(ending(run("1", "pytest", FAILED))), ERRORS)
    assert errors == ["[3]", "E   KeyError: 'tide_osterhaven'", "FAILED tests/test_tides.py::test_low_water"]


def test_errors_are_in_order_without_duplicates() -> None:
    steps = [run("1", "a", "error: one"), run("2", "b", "error: two"), run("3", "a", "error: one")]
    assert section(notes_on(ending(*steps)), ERRORS) == ["[5]", "error: two", "[7]", "error: one"]


def test_errors_in_other_languages_are_found() -> None:
    lines = [
        "Fehler: Datei fehlt",
        "错误:找不到文件",
        "ошибка: нет доступа",
        "erreur de lecture",
        "エラーが発生しました",
    ]
    steps = [run(str(at), f"step{at}", line) for at, line in enumerate(lines)]
    errors = section(notes_on(ending(*steps)), ERRORS)
    assert errors[1::2] == lines and errors[::2] == ["[3]", "[5]", "[7]", "[9]", "[11]"]


def test_words_resembling_errors_are_not_errors() -> None:
    calm = "the terror of the sea\nfailsafe is on\nunfailing light\nno errand today"
    assert section(notes_on(ending(run("1", "cat", calm))), ERRORS) == []


@pytest.mark.parametrize(
    "line",
    [
        "(pass) sync > supersedes stale sync errors",
        " 0 fail",
        "Validated 12 files: 0 errors, 0 warnings",
        "done without errors",
        "func (s *GitStore) Config() (*Config, error)",
        "_ = iter.ForEach(func(c *object.Commit) error {",
        "src/budget.ts:12:  if (budget !== undefined && exhausted) {",
        "-q, --quiet     Suppress non-essential output (errors only)",
        "| Error messages do not leak | PASS |",
        "// never blocks on a hook failure",
    ],
)
def test_output_that_names_errors_and_reports_none_is_no_error(line: str) -> None:
    assert section(notes_on(ending(run("1", "make", f"begin\n{line}\nend"))), ERRORS) == []


@pytest.mark.parametrize(
    "line",
    [
        "--- FAIL: TestConfig (0.03s)",
        "2 passed, 0 errors, 1 failed",
        "error: found 1 error",
        "src/theme.ts(443,3): error TS2353: unknown property",
        "* connect to 127.0.0.1 port 80 failed: Connection refused",
        "##[error]Process completed with exit code 1.",
        "    load_test.go:12: expected no error, got open config: bad magic 0x1f",
        "//app/core:core_test      FAILED in 3.2s",
    ],
)
def test_reported_error_is_found(line: str) -> None:
    assert section(notes_on(ending(run("1", "make", f"begin\n{line}\nend"))), ERRORS) == ["[3]", line]


def test_error_after_progress_bar_is_found() -> None:
    bar = "10 %\r50 %\r100 %\rerror: disk full"
    assert section(notes_on(ending(run("1", "copy", bar))), ERRORS) == ["[3]", "error: disk full"]


def test_error_notes_that_its_command_ran_again() -> None:
    page = notes_on(ending(run("1", "make test", "error: one"), run("2", "make test", "ok")))
    assert section(page, ERRORS) == ["[3] (ran again in [4], no errors)", "error: one"]
    assert [(line.text, line.place) for line in parse_page(page).errors] == [("error: one", 3)]


@pytest.mark.parametrize("later", ["make test 2>&1 | tail -20", "make test | tee log.txt", "make test 2>&1"])
def test_error_notes_that_its_command_ran_again_with_its_output_shortened(later: str) -> None:
    page = notes_on(ending(run("1", "make test 2>&1 | tail -50", "error: one"), run("2", later, "all passed")))
    assert section(page, ERRORS) == ["[3] (ran again in [4], no errors)", "error: one"]


@pytest.mark.parametrize(
    "later",
    ["make lint", "make test | grep -c ok", "make test | head -5", "make test && make install", "cd /srv && make test"],
)
def test_error_of_another_command_is_not_marked(later: str) -> None:
    page = notes_on(ending(run("1", "make test", "error: one"), run("2", later, "all passed")))
    assert section(page, ERRORS) == ["[3]", "error: one"]


def test_error_of_a_command_that_failed_again_is_not_marked_as_without_errors() -> None:
    page = notes_on(ending(run("1", "make test", "error: one"), run("2", "make test | tail", "error: two")))
    assert section(page, ERRORS) == ["[3] (ran again in [4])", "error: one", "[5]", "error: two"]


@pytest.mark.parametrize("folders", [("/w/backend", "/w/frontend"), ("", "/w/frontend")])
def test_error_of_a_command_that_ran_in_another_folder_is_not_marked(folders: tuple[str, str]) -> None:
    first, second = (
        tool_use(str(at), "bash", output, command="make test", **({"workdir": folder} if folder else {}))
        for at, (folder, output) in enumerate(zip(folders, ("error: one", "passed"), strict=True))
    )
    assert section(notes_on(ending(first, second)), ERRORS) == ["[3]", "error: one"]


@pytest.mark.parametrize(
    "output",
    [
        "Command running in background with ID: b1",
        "Process running with session ID 4711\nOutput: starting",
        f"{'x' * 500} error: two",
    ],
)
def test_error_of_a_command_whose_outcome_is_unknown_is_not_marked_as_without_errors(output: str) -> None:
    page = notes_on(ending(run("1", "make test", "error: one"), run("2", "make test", output)))
    assert section(page, ERRORS)[:2] == ["[3] (ran again in [4])", "error: one"]


def test_error_line_that_another_command_prints_later_does_not_clear_the_first() -> None:
    steps = [
        run("1", "pytest", "FAILED a.py - KeyError\nFAILED b.py - ValueError"),
        run("2", "pytest", "FAILED b.py - ValueError"),
        run("3", "pytest b.py", "FAILED b.py - ValueError"),
    ]
    assert section(notes_on(ending(*steps)), ERRORS)[:2] == ["[3] (ran again in [4])", "FAILED a.py - KeyError"]


def test_error_of_a_command_that_still_runs_is_not_marked_as_without_errors() -> None:
    steps = [run("1", "make test", "error: one"), run("2", "make test", "")[:1]]
    page = notes_on(ending(*steps))
    assert section(page, ERRORS) == ["[3] (ran again in [4])", "error: one"]


def test_error_lines_in_files_are_listed_under_their_file() -> None:
    code = "    raise TideError('no low water')"
    for shown in (tool_use("1", "Read", code, file_path="/srv/tides.py"), run("1", "git diff", f"+{code}")):
        page = notes_on(ending(shown, run("2", "make", "error: one")))
        assert section(page, ERRORS) == ["[5]", "error: one"]
        assert any(code in line for line in section(page, EXCERPTS))


def test_commands_show_number_of_runs() -> None:
    steps = [run(str(at), "make test", "ok") for at in range(3)] + [run("9", "make lint", "ok")]
    page = notes_on(ending(*steps))
    assert section(page, COMMANDS) == ["make test  (3×)"]
    assert "make lint" in section(page, STEPS)


def test_command_whose_last_run_failed_is_marked() -> None:
    messages = [
        {"role": "user", "content": "Make it pass."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "bash", "input": {"command": "make"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True}]},
        *[{"role": role, "content": "words " * 300} for _ in range(12) for role in ("assistant", "user")],
    ]
    assert "make  (failed)" in section(notes_on(messages), COMMANDS)


def test_multi_line_script_is_not_listed_as_command() -> None:
    script = "cat > /tmp/x <<'END'\nlong\ntext\nEND"
    assert not [line for line in section(notes_on(ending(run("1", script, "ok"))), COMMANDS) if "END" in line]
