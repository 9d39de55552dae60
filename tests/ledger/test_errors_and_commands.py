"""The last errors, exactly; and the commands, with how often they ran."""

from __future__ import annotations

from ledger_story import Messages, noise, notes_on, section, used, user

from holdfast.ledger import reread
from holdfast.ledger.headings import AT_HAND, COMMANDS, ERRORS

FAILED = "collected 3 items\nE   KeyError: 'tide_osterhaven'\nFAILED tests/test_tides.py::test_low_water"


def run(id: str, command: str, result: str) -> Messages:
    return used(id, "bash", result, command=command)


def ending(*steps: Messages) -> Messages:
    return [user("Make it pass."), *[message for step in steps for message in step], *noise(20), user("And now?")]


def test_the_last_errors_stand_there_as_they_were_printed() -> None:
    errors = section(notes_on(ending(run("1", "pytest", FAILED))), ERRORS)
    assert errors == ["[3]", "E   KeyError: 'tide_osterhaven'", "FAILED tests/test_tides.py::test_low_water"]


def test_the_newest_come_last_and_none_comes_twice() -> None:
    steps = [run("1", "a", "error: one"), run("2", "b", "error: two"), run("3", "a", "error: one")]
    assert section(notes_on(ending(*steps)), ERRORS) == ["[5]", "error: two", "[7]", "error: one"]


def test_errors_in_other_languages_are_errors() -> None:
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


def test_words_that_only_look_like_errors_are_none() -> None:
    calm = "the terror of the sea\nfailsafe is on\nunfailing light\nno errand today"
    assert section(notes_on(ending(run("1", "cat", calm))), ERRORS) == []


def test_behind_a_progress_bar_the_error_is_found() -> None:
    bar = "10 %\r50 %\r100 %\rerror: disk full"
    assert section(notes_on(ending(run("1", "copy", bar))), ERRORS) == ["[3]", "error: disk full"]


def test_it_is_said_where_what_failed_was_run_again() -> None:
    page = notes_on(ending(run("1", "make test", "error: one"), run("2", "make test", "ok")))
    assert section(page, ERRORS) == ["[3] (ran again in [4])", "error: one"]
    assert [(line.text, line.place) for line in reread(page).errors] == [("error: one", 3)]


def test_what_a_file_says_of_errors_is_no_news() -> None:
    code = "    raise TideError('no low water')"
    for shown in (used("1", "Read", code, file_path="/srv/tides.py"), run("1", "git diff", f"+{code}")):
        page = notes_on(ending(shown, run("2", "make", "error: one")))
        assert section(page, ERRORS) == ["[5]", "error: one"]
        assert any(code in line for line in section(page, AT_HAND))


def test_commands_are_counted_and_the_last_failure_is_told() -> None:
    steps = [run(str(at), "make test", "ok") for at in range(3)] + [run("9", "make lint", "ok")]
    commands = section(notes_on(ending(*steps)), COMMANDS)
    assert "make test  (3×)" in commands
    assert "make lint" in commands


def test_a_command_that_failed_the_last_time_says_so() -> None:
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


def test_a_script_of_many_lines_is_no_command_to_run_again() -> None:
    script = "cat > /tmp/x <<'END'\nlong\ntext\nEND"
    assert not [line for line in section(notes_on(ending(run("1", script, "ok"))), COMMANDS) if "END" in line]
