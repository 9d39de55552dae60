"""Items that the messages after a cut need."""

from __future__ import annotations

from holdfast.lab.needs import find_needed
from holdfast.messages import assistant, user
from holdfast.tokens import count_tokens, estimator_for
from lab_story import AFTER, BEFORE, SOURCE, call, result, used


def test_names_in_later_calls_are_needed() -> None:
    needed = find_needed(BEFORE, AFTER)
    assert needed.names == {"tides.py", "parse_table"}
    assert needed.lines == {"table = parse_table(path)"}
    assert needed.commands == {"pytest -q tests"}


def test_earlier_files_errors_and_commands_are_found() -> None:
    needed = find_needed(BEFORE, AFTER)
    assert needed.modified == {"notes.md"}
    assert needed.read == {"tides.py"}
    assert needed.errors == ("FAILED test_tides.py::test_high - KeyError: 'noon'",)
    assert len(needed.users) == 1 and "harbour" in needed.users[0]


def test_newly_written_text_is_not_needed() -> None:
    after = used("Write", "written", file_path="/harbor/new.txt", content="load_tides parse_table")
    assert find_needed(BEFORE, after).names == frozenset()


def test_plan_steps_are_not_needed() -> None:
    before = [*BEFORE, *used("TodoWrite", "ok", todos=[{"content": "chart", "status": "in_progress"}])]
    todos = used("TodoWrite", "ok", todos=[{"step": "mend parse_table", "status": "in_progress"}])
    assert find_needed(before, todos).names == frozenset()


def test_decided_values_are_not_needed() -> None:
    before = [user("Berth 30412 in 60000 ms"), *used("TaskUpdate", "ok", taskId="3", status="in_progress")]
    after = [*used("TaskUpdate", "ok", taskId="30412", status="in_progress"), *used("TaskOutput", "ok", timeout=60_000)]
    assert find_needed(before, after).names == {"30412"}


def test_names_supplied_by_later_result_are_not_needed() -> None:
    look = used("Grep", "tides.py: parse_table(path)", pattern="high")
    assert find_needed(BEFORE, [*look, *AFTER]).names == frozenset()


def test_assistant_text_does_not_supply_names() -> None:
    assert find_needed(BEFORE, [assistant("I will edit tides.py with parse_table"), *AFTER]).names == {
        "tides.py",
        "parse_table",
    }


def test_needs_stop_at_horizon() -> None:
    many = [message for _ in range(40) for message in used("Look", "nothing", where="afar")]
    assert find_needed(BEFORE, [*many, *AFTER]).names == frozenset()


def test_tool_names_and_keys_are_never_needed() -> None:
    before = [user("go"), *used("TaskRunner", "done", subagent_type="plan")]
    needed = find_needed(before, [call("Look", query="TaskRunner subagent_type")])
    assert {"TaskRunner", "subagent_type"} <= needed.known
    assert needed.names == frozenset()


def test_results_have_token_costs() -> None:
    big = call("Read", file_path="/harbor/big.py")
    before = [user("go"), big, result(big, "parse_table\n" + "x" * 400)]
    needed = find_needed(before, AFTER)
    assert needed.results == ((103, frozenset({"parse_table"})),)


def test_results_use_given_estimator() -> None:
    ((size, names),) = find_needed(BEFORE, AFTER).results
    assert (size, names) == (-(-len(SOURCE) // 4), {"parse_table"})
    ruler = estimator_for("o200k_base")
    assert find_needed(BEFORE, AFTER, ruler).results == ((count_tokens(ruler, SOURCE), names),)
    assert count_tokens(ruler, SOURCE) != size
