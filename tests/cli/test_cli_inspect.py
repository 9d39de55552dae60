"""`holdfast inspect`: token breakdown of every kind of file."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_files import FORMATS, Run, claude_code, codex, conversation, loaded, pi, request, write_json, write_lines

from holdfast import BlockingSessionService, SessionService, SlidingWindow, SQLiteStore
from holdfast.stores import open_store
from holdfast.triggers import always

Records = Callable[[], list[dict[str, Any]]]
REAL = sorted(Path(os.environ.get("HOLDFAST_SESSIONS", os.devnull)).glob("*/*.jsonl.gz"))


def facts(run: Run, *args: Any) -> dict[str, Any]:
    result = run("inspect", *args, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = loaded(result.stdout)
    assert sum(share["tokens"] for share in found["shares"]) == found["estimate"]
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_inspect_request_in_every_format(format: str, run: Run, tmp_path: Path) -> None:
    file = write_json(tmp_path / "request.json", request(format))
    found = facts(run, file)
    assert (found["kind"], found["format"], found["model"]) == ("messages", format, "gpt-4o")
    assert (found["messages"], found["turns"], found["problems"]) == (600, 150, [])
    labels = {share["label"]: share for share in found["shares"]}
    assert labels["look"]["count"] == 150
    assert "tool definitions" in labels and ("system prompt" in labels or format == "openai-chat")
    assert len(found["largest_results"]) == 5
    assert found["largest_results"][0]["tool"] == "look"


def test_inspect_prints_report(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_json(tmp_path / "request.json", request("anthropic"))
    monkeypatch.chdir(tmp_path)
    out = run("inspect", "request.json").stdout
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80
    for words in ("of 128,000 tokens, ", "system prompt", "tool definitions", "150 calls", "largest results", "turns"):
        assert words in out
    assert "problems  none: valid for anthropic" in out


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_inspect_keeps_its_numbers_in_a_narrow_terminal(run: Run, chat: Path, columns: int) -> None:
    found = facts(run, chat)
    lines = run("inspect", chat, COLUMNS=str(columns)).stdout.splitlines()
    numbers = {word for line in lines for word in line.replace(",", "").split()}
    assert {str(share["tokens"]) for share in found["shares"]} <= numbers
    assert {str(result["tokens"]) for result in found["largest_results"]} <= numbers
    assert max(map(len, lines[2:])) <= columns, "all but the name of the file"


def test_inspect_largest_limits_results(run: Run, chat: Path) -> None:
    assert len(facts(run, chat, "--largest", "12")["largest_results"]) == 12


def test_inspect_lists_problems_with_position(run: Run, tmp_path: Path) -> None:
    messages = conversation("openai-chat", 12)
    del messages[6]
    file = write_json(tmp_path / "broken.json", messages)
    out = run("inspect", file).stdout
    assert "1 problem for openai-chat" in out
    assert "message 5: call 'c1' has no result right after it" in out
    assert [problem["index"] for problem in facts(run, file)["problems"]] == [5]


def test_inspect_claude_code(run: Run, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "session.jsonl", claude_code())
    found = facts(run, file)
    assert (found["kind"], found["id"], found["model"]) == ("claude-code", "s-1", "claude-opus-4-5")
    assert (found["messages"], found["logged"]) == (4, 6)
    assert found["compactions"][0]["tokens_before"] == 155_000
    assert found["compactions"][0]["summary_tokens"] > 0
    assert found["usage"]["reported"] == 1_000 and found["usage"]["messages"] == 4
    assert found["tokens"] == 1_000
    out = run("inspect", file).stdout
    assert "1,000 reported by the provider" in out
    assert "155,000  →  ?  auto, summary of" in out
    assert "4; 6 in the whole log (--whole)" in out
    whole = facts(run, file, "--whole")
    assert (whole["messages"], whole["usage"]) == (6, None)


def test_inspect_codex(run: Run, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "rollout.jsonl", codex())
    found = facts(run, file)
    assert (found["kind"], found["format"], found["model"]) == ("codex", "openai-responses", "gpt-5")
    assert found["usage"]["reported"] == 750
    assert found["shares"][0]["label"] == "system prompt"


def test_inspect_pi_includes_summary(run: Run, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "session.jsonl", pi())
    found = facts(run, file)
    assert (found["kind"], found["model"]) == ("pi", "claude-sonnet-4-5")
    assert (found["messages"], found["logged"]) == (5, 6)
    assert found["compactions"][0]["tokens_before"] == 90_000
    assert found["largest_turn"] is not None


def test_inspect_estimates_messages_after_reported_usage(run: Run, tmp_path: Path) -> None:
    records = claude_code()
    later = dict(records[0], uuid="later", message={"role": "user", "content": "word " * 300})
    found = facts(run, write_lines(tmp_path / "session.jsonl", [*records, later]))
    assert 1_300 <= found["tokens"] <= 1_310
    assert found["usage"]["messages"] == 4


def test_inspect_user_message_with_tool_results(run: Run, tmp_path: Path) -> None:
    file = write_json(tmp_path / "lone.json", [{"role": "assistant", "content": "hello"}])
    assert facts(run, file)["turns"] == 0
    assert run("inspect", file).exit_code == 0


@pytest.mark.sampled(3)
@pytest.mark.skipif(not REAL, reason="HOLDFAST_SESSIONS names no sessions")
@pytest.mark.parametrize("path", REAL[::12] + REAL[-1:], ids=lambda path: f"{path.parent.name}-{path.name[:8]}")
def test_inspect_real_sessions(path: Path, run: Run) -> None:
    for scope in ((), ("--whole",)):
        found = facts(run, path, *scope)
        assert found["messages"] > 0 and found["tokens"] > 0
        picture = run("inspect", path, *scope)
        assert picture.exit_code == 0 and "\x1b" not in picture.stdout
        budget = max(1_000, found["estimate"] // 3)
        result = loaded(run("compact", path, *scope, "--budget", budget, "--json").stdout)
        assert result["valid"] is True
        assert result["outcome"] in ("compacted", "not_needed", "cannot_fit")
        assert result["outcome"] != "compacted" or result["tokens_after"] <= budget


USAGES = (5_000, 5_300, 9_000, 9_100)


def reported_turns() -> list[dict[str, Any]]:
    """Four turns; by characters the second is the largest, by reported usage the third."""
    return [
        {"role": role, "content": f"turn {number} " + "word " * size}
        for number, size in enumerate((10, 900, 100, 20), 1)
        for role in ("user", "assistant")
    ]


def test_p3_inspect_names_the_largest_turn_of_a_session_by_reported_usage(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    usages = iter(USAGES)

    async def fill() -> None:
        async with SessionService(open_store(path)) as service:
            await service.create(id="s", format="openai-chat")
            for message in reported_turns():
                replied = message["role"] == "assistant"
                used = {"input": next(usages) - 10, "output": 4, "cache_read": 6} if replied else None
                await service.append("s", message, usage=used)

    asyncio.run(fill())
    for options in ((), ("--whole",)):
        turn = facts(run, path, *options)["largest_turn"]
        assert (turn["number"], turn["tokens"], turn["index"]) == (3, 3_700, 4)
    assert "largest   turn 3, 3,700 tokens, from message 4: turn 3" in run("inspect", path).stdout


def test_p3_inspect_compares_no_usage_across_a_compaction(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "agent.db"

    async def fill() -> None:
        async with SessionService(open_store(path)) as service:
            await service.create(id="s", format="openai-chat")
            sizes = (None, 5_000, None, 5_300, None, 20_000, None, 50_000)
            for message, used in zip(reported_turns(), sizes, strict=True):
                if used == 20_000:
                    await service.compact("s", always, SlidingWindow(2))
                await service.append("s", message, usage=used and {"input": used, "output": 0})

    asyncio.run(fill())
    live = facts(run, path)["largest_turn"]
    assert (live["line"].split()[:2], live["tokens"]) == (["turn", "4"], 30_000)
    whole = facts(run, path, "--whole")
    assert (whole["turns"], whole["largest_turn"]["number"], whole["largest_turn"]["tokens"]) == (4, 4, 30_000)


def test_p3_inspect_names_the_largest_turn_of_a_file_by_reported_usage(run: Run, tmp_path: Path) -> None:
    usages = iter(USAGES)
    first = claude_code()[0]
    records, parent = [], None
    for number, message in enumerate(reported_turns()):
        if message["role"] == "assistant":
            usage = {"input_tokens": 5, "cache_read_input_tokens": next(usages) - 10, "output_tokens": 5}
            message |= {"usage": usage, "model": "claude-opus-4-5", "id": f"m{number}"}
            message["content"] = [{"type": "text", "text": message["content"]}]
        records.append(dict(first, type=message["role"], uuid=f"e{number}", parentUuid=parent, message=message))
        parent = f"e{number}"
    turn = facts(run, write_lines(tmp_path / "session.jsonl", records))["largest_turn"]
    assert (turn["number"], turn["tokens"]) == (3, 3_700)


def test_a_stored_session_shows_its_size_and_window_everywhere(run: Run, tmp_path: Path) -> None:
    """P3."""
    store = tmp_path / "agent.db"
    with BlockingSessionService(SQLiteStore(store)) as sessions:
        for name in ("one", "two"):
            sessions.create(id=name, model="nobody/knows")
            sessions.append(name, {"role": "user", "content": "The crane lifts the crates of berth four. " * 30})
            sessions.append(name, {"role": "assistant", "content": "Aye."}, usage={"input": 900, "output": 3})
            sessions.set_window(name, 9_000)
        size = sessions.size("one")
    listed = json.loads(run("inspect", store, "--json").stdout)["sessions"]
    assert {row["tokens"] for row in listed} == {size.tokens} == {903}
    one = json.loads(run("inspect", store, "--session", "one", "--json").stdout)
    assert (one["tokens"], one["window"]) == (size.tokens, 9_000)
    assert f"size {size.tokens} reported with #2" in " ".join(run("inspect", store, "--session", "one").stdout.split())


def test_the_window_that_a_codex_rollout_records_is_shown(run: Run, tmp_path: Path) -> None:
    info = {"model_context_window": 258_400, "last_token_usage": {"input_tokens": 90, "output_tokens": 10}}
    records = [
        {"type": "session_meta", "payload": {"id": "c-1"}},
        {"type": "turn_context", "payload": {"model": "gpt-5.5"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Count the crates."}},
        {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": "Twelve."}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": info}},
    ]
    file = tmp_path / "rollout.jsonl"
    file.write_text("\n".join(map(json.dumps, records)))
    assert json.loads(run("inspect", file, "--json").stdout)["window"] == 258_400
    assert "window 258,400 recorded" in run("inspect", file).stdout
