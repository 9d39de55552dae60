"""`holdfast search` and `holdfast read`: archived events are found and read (H1)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_files import Run, claude_code, codex, loaded, pi, write_lines

from holdfast.io.installation import install_command

Store = Callable[..., Path]
Refused = Callable[..., str]
STORES = ("agent.db", "logs")


def hits(run: Run, *args: Any) -> list[dict[str, Any]]:
    return list(loaded(run("search", *args, "--json").stdout)["hits"])


@pytest.mark.parametrize("name", STORES)
def test_h1_archived_event_is_found_and_read(name: str, run: Run, make_store: Store) -> None:
    store = make_store(name)
    hit = hits(run, "question berth 7", store, "--role", "user")[0]
    assert (hit["session"], hit["ref"], hit["kind"], hit["archived"]) == ("s-0", "#29", "message", True)
    assert "what about berth 7?" in hit["snippet"]
    shown = run("search", "question berth 7", store, "--role", "user").stdout
    assert "#29  user" in shown and "archived" in shown
    assert f"Read one: holdfast read '#29' {store} --session s-0" in shown
    read = run("read", "#29", store)
    assert read.exit_code == 0 and read.stdout.endswith("Question 7: what about berth 7?\n")
    facts = loaded(run("read", "29", store, "--json").stdout)
    assert facts["events"] == [hit["id"]] and facts["next"] is None


@pytest.mark.parametrize("name", STORES)
def test_search_all_sessions_or_one(name: str, run: Run, make_store: Store) -> None:
    store = make_store(name, sessions=2)
    assert {hit["session"] for hit in hits(run, "And then?", store)} == {"s-0", "s-1"}
    assert {hit["session"] for hit in hits(run, "And then?", store, "--session", "s-1")} == {"s-1"}
    assert "session s-1" in run("search", "And then?", store).stdout
    if name == "logs":
        assert {hit["session"] for hit in hits(run, "And then?", store / "s-0.jsonl")} == {"s-0"}


def test_search_filters(run: Run, make_store: Store) -> None:
    store = make_store("agent.db")
    assert {hit["role"] for hit in hits(run, "berth", store, "--tool", "look", "--limit", "50")} == {
        "assistant",
        "tool",
    }
    assert all(hit["archived"] for hit in hits(run, "berth", store, "--archived", "--limit", "50"))
    assert [hit["kind"] for hit in hits(run, "berth", store, "--kind", "compaction")] == ["compaction"]
    assert hits(run, "berth", store, "--lane", "research") == hits(run, "berth", store, "--until", "2020-01-01") == []
    assert hits(run, "berth", store, "--since", "1d", "--lane", "")


def test_search_pages(run: Run, make_store: Store) -> None:
    store = make_store("agent.db")
    first = loaded(run("search", "berth", store, "--limit", "3", "--json").stdout)
    assert first["next"] == 3 and len(first["hits"]) == 3
    assert hits(run, "berth", store, "--limit", "6")[3:] == hits(run, "berth", store, "--limit", "3", "--offset", "3")
    assert "3 found, more: --offset 3" in run("search", "berth", store, "--limit", "3").stdout


def test_search_without_hits_exits_1(run: Run, make_store: Store) -> None:
    store = make_store("agent.db")
    result = run("search", "unheard-of", store)
    assert (result.exit_code, result.stderr) == (1, "") and "No event contains every word" in result.stdout
    assert loaded(run("search", "unheard-of", store, "--json").stdout)["hits"] == []


def test_search_without_hits_names_active_filters(run: Run, make_store: Store) -> None:
    store = make_store("agent.db")
    for options, named in (
        (["--role", "system", "--session", "s-0"], "(--session, --role)"),
        (["--lane", "", "--until", "2020-01-01"], "(--lane, --until)"),
        (["--offset", "900"], "(--offset)"),
    ):
        output = " ".join(run("search", "berth", store, *options).stdout.split())
        assert f"every word of 'berth' with these filters {named}: leave some out" in output
    assert "conditions" not in run("search", "unheard-of", store).stdout


def test_search_since_excludes_events_without_time(run: Run, chat: Path) -> None:
    assert hits(run, "berth 7", chat)
    assert hits(run, "berth 7", chat, "--since", "2020-01-01") == hits(run, "berth 7", chat, "--until", "1d") == []


@pytest.mark.parametrize(
    ("records", "query", "ref", "archived"),
    [
        (claude_code(), "crane", "#2", True),
        (claude_code(), "looking", "#4", False),
        (codex(), "two berths", "#4", False),
        (pi(), "first answer", "#2", True),
        (pi(), "second answer", "#7", False),
    ],
)
def test_search_other_tools_sessions(
    records: list[Any], query: str, ref: str, archived: bool, run: Run, tmp_path: Path
) -> None:
    file = write_lines(tmp_path / "session.jsonl", records)
    found = {hit["ref"]: hit["archived"] for hit in hits(run, query, file)}
    assert found[ref] is archived
    assert query in run("read", ref, file).stdout.lower()


def test_search_stdin_and_examples(run: Run, chat: Path) -> None:
    found = loaded(run("search", "berth 7", "-", "--json", input=chat.read_text()).stdout)
    assert found["hits"] and found["hits"][0]["time"] is None
    assert hits(run, "refund", "example:support", "--tool", "refund")


def test_read_long_event_in_pieces(run: Run) -> None:
    result = run("read", "29", "example", "--tokens", "300")
    assert "To continue: holdfast read '#29@" in result.stdout
    assert result.stdout.rstrip().endswith("example")
    facts = loaded(run("read", "29", "example", "--tokens", "300", "--json").stdout)
    assert facts["next"].startswith("#29@") and facts["tokens"] <= 300


def test_read_strips_escape_codes(run: Run, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "chat.jsonl", [{"role": "user", "content": "\x1b[31mred\x07 alert\r\nnext"}])
    for result in (run("search", "alert", file), run("read", "1", file)):
        assert "red" in result.stdout and "\x1b" not in result.stdout and "\x07" not in result.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["search", "", "example"], "The query has no words"),
        (["search", "x", "example", "--since", "soon"], "since takes a date like 2026-03-01"),
        (
            ["search", "x", "example", "--since", "2026-03-02", "--until", "2026-03-01"],
            "since 2026-03-02 is later than until 2026-03-01",
        ),
        (["search", "x", "example", "--kind", "mesage"], "did you mean 'message'?"),
        (["search", "x", "example", "--role", "wizard"], "Use one of system, user, assistant, tool"),
        (["search", "x", "example", "--limit", "0"], "--limit takes a whole number of at least 1"),
        (["search", "x", "example", "--limit", "1001"], "limit must be between 1 and 1,000"),
        (["search", "x", "nowhere.db"], "There is no file"),
        (["search", "x"], "Missing argument 'FILE'"),
        (["read", "#999", "example:support"], "it has #1 to #65"),
        (["read", "#", "example"], "is not a reference"),
        (["read", "1", "example", "--tokens", "3"], "max_tokens must be at least"),
        (["mcp", "-"], "Standard input is used by the MCP client"),
        (["mcp", "nowhere.db"], "There is no file"),
    ],
)
def test_search_bad_input_gives_reason(args: list[str], words: str, refused: Refused) -> None:
    assert words in refused(*args)


def test_search_session_option_needs_store(refused: Refused, chat: Path) -> None:
    assert "is not a Holdfast store" in refused("search", "x", chat, "--session", "s")


def test_read_store_with_several_sessions_needs_session(refused: Refused, make_store: Store) -> None:
    store = make_store("agent.db", sessions=2)
    for command in (("read", "#1", store), ("search", "x", store, "--archived")):
        assert "name one with --session" in refused(*command)
    for command in (("search", "x"), ("read", "#1"), ("mcp",)):
        assert "has the id or prefix 'nope'" in refused(*command, store, "--session", "nope")


def test_mcp_without_sdk_suggests_install(refused: Refused, make_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.recall import mcp

    def missing(name: str) -> str:
        raise mcp.PackageNotFoundError(name)

    monkeypatch.setattr(mcp, "version", missing)
    assert install_command("mcp") in refused("mcp", make_store("agent.db"))
