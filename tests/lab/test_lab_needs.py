"""What the part after a cut says was needed."""

from __future__ import annotations

from holdfast.lab.needs import needs
from holdfast.messages import assistant, user
from holdfast.tokens import estimator_for, tokens_in
from lab_story import AFTER, BEFORE, SOURCE, call, result, used


def test_what_a_later_call_refers_to_is_needed() -> None:
    needed = needs(BEFORE, AFTER)
    assert needed.names == {"tides.py", "parse_table"}
    assert needed.lines == {"table = parse_table(path)"}
    assert needed.commands == {"pytest -q tests"}


def test_what_was_done_before_is_known() -> None:
    needed = needs(BEFORE, AFTER)
    assert needed.modified == {"notes.md"}
    assert needed.read == {"tides.py"}
    assert needed.errors == ("FAILED test_tides.py::test_high - KeyError: 'noon'",)
    assert len(needed.users) == 1 and "harbour" in needed.users[0]


def test_what_is_newly_written_is_not_needed() -> None:
    after = used("Write", "written", file_path="/harbor/new.txt", content="load_tides parse_table")
    assert needs(BEFORE, after).names == frozenset()


def test_what_is_written_anew_inside_a_plan_is_not_needed() -> None:
    before = [*BEFORE, *used("TodoWrite", "ok", todos=[{"content": "chart", "status": "in_progress"}])]
    todos = used("TodoWrite", "ok", todos=[{"step": "mend parse_table", "status": "in_progress"}])
    assert needs(before, todos).names == frozenset()


def test_what_an_agent_decides_at_each_call_is_not_needed() -> None:
    before = [user("Berth 30412 in 60000 ms"), *used("TaskUpdate", "ok", taskId="3", status="in_progress")]
    after = [*used("TaskUpdate", "ok", taskId="30412", status="in_progress"), *used("TaskOutput", "ok", timeout=60_000)]
    assert needs(before, after).names == {"30412"}


def test_what_a_later_result_gives_anew_is_not_needed() -> None:
    look = used("Grep", "tides.py: parse_table(path)", pattern="high")
    assert needs(BEFORE, [*look, *AFTER]).names == frozenset()


def test_the_agents_own_words_give_nothing_anew() -> None:
    assert needs(BEFORE, [assistant("I will edit tides.py with parse_table"), *AFTER]).names == {
        "tides.py",
        "parse_table",
    }


def test_only_so_many_calls_after_the_cut_count() -> None:
    many = [message for _ in range(40) for message in used("Look", "nothing", where="afar")]
    assert needs(BEFORE, [*many, *AFTER]).names == frozenset()


def test_tool_names_and_argument_keys_are_known_but_never_needed() -> None:
    before = [user("go"), *used("TaskRunner", "done", subagent_type="plan")]
    needed = needs(before, [call("Look", query="TaskRunner subagent_type")])
    assert {"TaskRunner", "subagent_type"} <= needed.known
    assert needed.names == frozenset()


def test_results_say_what_it_costs_to_read_them_again() -> None:
    big = call("Read", file_path="/harbor/big.py")
    before = [user("go"), big, result(big, "parse_table\n" + "x" * 400)]
    needed = needs(before, AFTER)
    assert needed.results == ((103, frozenset({"parse_table"})),)


def test_what_would_be_read_again_is_counted_like_all_else() -> None:
    ((size, names),) = needs(BEFORE, AFTER).results
    assert (size, names) == (-(-len(SOURCE) // 4), {"parse_table"})
    ruler = estimator_for("o200k_base")
    assert needs(BEFORE, AFTER, ruler).results == ((tokens_in(ruler, SOURCE), names),)
    assert tokens_in(ruler, SOURCE) != size
