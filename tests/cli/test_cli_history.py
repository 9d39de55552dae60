"""`holdfast restore`, `holdfast undo` and `holdfast fork` on a stored session (H1, P10)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_files import Run, loaded

Store = Callable[..., Path]
Refused = Callable[..., str]
pytestmark = pytest.mark.parametrize("name", ["agent.db", "logs"])


def context(run: Run, store: Path, session: str = "s-0") -> list[dict[str, str]]:
    found: list[dict[str, str]] = loaded(run("export", session, "--store", store, "--format", "messages").stdout)
    return found


def test_h1_restore_appends_a_copy_of_an_archived_message(run: Run, make_store: Store, name: str) -> None:
    store = make_store(name)
    before = context(run, store)
    result = run("restore", "#3", store)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Restored #3 of session s-0 as #83: ")
    assert result.stdout.endswith(" tokens.\n") and result.stdout.count("\n") == 1
    after = context(run, store)
    assert after[: len(before)] == before and len(after) == len(before) + 1
    assert "[Restored from earlier: #3, tool" in after[-1]["content"]


def test_h1_restore_as_json(run: Run, make_store: Store, name: str) -> None:
    store = make_store(name, sessions=2)
    facts = loaded(run("restore", "3", store, "--session", "s-1", "--json").stdout)
    assert (facts["store"], facts["session"], facts["ref"], facts["copy"]) == (str(store), "s-1", "#3", "#83")
    assert facts["tokens_after"] > facts["tokens_before"] and facts["id"]


def test_restore_refuses_what_cannot_be_restored(refused: Refused, make_store: Store, name: str) -> None:
    store = make_store(name)
    assert "is in the context already" in refused("restore", "82", store)
    assert "is a compaction: only messages can be restored" in refused("restore", "81", store)
    assert "is not exactly one event: name a single one, such as #1." in refused("restore", "1-3", store)
    assert "it has #1 to #82" in refused("restore", "99", store)


def test_p10_undo_brings_the_context_before_the_compaction_back(run: Run, make_store: Store, name: str) -> None:
    store = make_store(name)
    result = run("undo", store)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Undid the last compaction of session s-0: 81 messages, ")
    whole = loaded(run("export", "s-0", "--store", store, "--format", "messages", "--whole").stdout)
    assert context(run, store) == whole


def test_undo_as_json_and_with_nothing_to_undo(run: Run, refused: Refused, make_store: Store, name: str) -> None:
    store = make_store(name)
    facts = loaded(run("undo", store, "--json").stdout)
    assert (facts["session"], facts["checkpoint"], facts["round"], facts["messages"]) == ("s-0", None, 0, 81)
    assert facts["tokens_after"] > facts["tokens_before"]
    assert "has no compaction to undo" in refused("undo", store)


def test_p10_fork_from_before_a_compaction_is_uncompacted(run: Run, make_store: Store, name: str) -> None:
    store = make_store(name)
    before = context(run, store)
    result = run("fork", store, "--at", "#12", "--id", "branch")
    assert result.stdout.startswith("Created session branch from s-0 up to #12: 12 messages, "), result.output
    whole = loaded(run("export", "s-0", "--store", store, "--format", "messages", "--whole").stdout)
    assert context(run, store, "branch") == whole[:12]
    assert context(run, store) == before


def test_p10_fork_without_event_copies_the_newest_context(run: Run, make_store: Store, name: str) -> None:
    store = make_store(name)
    facts = loaded(run("fork", store, "--json").stdout)
    assert (facts["parent"], facts["at"], facts["store"]) == ("s-0", "#82", str(store))
    assert context(run, store, facts["session"]) == context(run, store)


def test_commands_on_a_session_refuse_other_files(
    refused: Refused, run: Run, make_store: Store, chat: Path, name: str
) -> None:
    store = make_store(name, sessions=2)
    for command in (["restore", "3"], ["undo"], ["fork"]):
        assert "holds several sessions: name one with --session" in refused(*command, store)
        assert "No session in" in refused(*command, store, "--session", "x")
        assert "is not a Holdfast store: import it first with holdfast import." in refused(*command, chat)
        assert "example is not a Holdfast store" in refused(*command, "example")
        assert "There is no file nowhere.db: check the path." in refused(*command, "nowhere.db")
    assert "already" in refused("fork", store, "--session", "s-0", "--id", "s-1")


def test_redact_removes_a_message_and_a_text(name: str, run: Run, make_store: Callable[..., Path]) -> None:
    store = make_store(name)
    result = run("redact", "#3", store)
    assert (result.exit_code, result.stdout.startswith("#3 was removed from 1 event")) == (0, True), result.stdout
    result = run("redact", "-", store, "--json", input="Question 2\n")
    facts = loaded(result.stdout)
    assert (result.exit_code, facts["ok"], facts["left"], facts["events"] > 0) == (0, True, [], True)
    assert "Question 2" not in run("export", "--store", store).stdout
    assert run("verify", store).exit_code == 0


def test_redact_lists_where_a_text_is_left(name: str, run: Run, make_store: Callable[..., Path]) -> None:
    store = make_store(name)
    result = run("redact", "-", store, input="user")
    assert result.exit_code == 1
    assert "It is left in event #1 of session" in result.stdout
    facts = loaded(run("redact", "-", store, "--json", input="user").stdout)
    assert (facts["ok"], facts["events"]) == (False, 0) and facts["left"]


def test_redact_refuses_what_is_no_message(
    name: str, refused: Callable[..., str], make_store: Callable[..., Path]
) -> None:
    store = make_store(name)
    assert "only messages can be redacted" in refused("redact", "81", store)
    assert "nothing to redact" in refused("redact", "-", store, input=" \n")
