"""`holdfast compact`: long conversations in every format and shape become valid contexts that fit."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_files import FORMATS, KEYS, Run, claude_code, codex, conversation, loaded, pi, request, write_json, write_lines

from holdfast import check, compact

BUDGET = 12_000


@pytest.mark.parametrize("format", FORMATS)
def test_compact_600_messages_is_valid_and_fits(format: str, run: Run, tmp_path: Path) -> None:
    messages = conversation(format)
    file = write_json(tmp_path / "long.json", messages)
    result = run("compact", file, "--budget", "12k", "--json")
    assert result.exit_code == 0
    facts = loaded(result.stdout)
    assert facts["outcome"] == "compacted"
    assert facts["tokens_after"] <= BUDGET < facts["tokens_before"]
    assert facts["tokens_saved"] == facts["tokens_before"] - facts["tokens_after"]
    assert facts["kept"] + facts["archived"] == len(messages)
    assert (facts["format"], facts["valid"]) == (format, True)
    assert check(facts["messages"], format) == []
    assert facts["messages"][-1] == messages[-1]


@pytest.mark.parametrize("format", FORMATS)
def test_compact_equals_library_result(format: str, run: Run, tmp_path: Path) -> None:
    body = request(format)
    file = write_json(tmp_path / "request.json", body)
    facts = loaded(run("compact", file, "--budget", BUDGET, "--json", "--estimator", "chars/4").stdout)
    system = next((body[key] for key in ("system", "instructions", "systemInstruction") if key in body), None)
    same = compact(body[KEYS[format]], budget=BUDGET, system=system, tools=body["tools"], estimator="chars/4")
    assert facts["messages"] == same.messages
    assert (facts["tokens_before"], facts["tokens_after"]) == (same.tokens_before, same.tokens_after)


def test_compact_prints_report(run: Run, chat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(chat.parent)
    out = run("compact", "chat.json", "--budget", "20k").stdout
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80
    for words in ("before", "after", "budget", "user", "assistant", "look", "kept", "archived", "ledger"):
        assert words in out
    assert "valid for openai-chat: yes" in out
    assert "Compacted: " in out and " % smaller." in out
    assert "[Notes on the earlier conversation:" in out


def test_compact_under_budget_suggests_smaller_budget(run: Run, chat: Path) -> None:
    result = run("compact", chat)
    assert result.exit_code == 0
    assert "are within the budget of 108,800." in result.stdout
    advice = result.stdout.rstrip().rpartition("To compact anyway: ")[2].split()
    assert advice[:4] == ["holdfast", "compact", str(chat), "--budget"]
    assert run(*advice[1:]).stdout.rstrip().endswith("% smaller.")
    facts = loaded(run("compact", chat, "--json").stdout)
    assert (facts["outcome"], facts["archived"]) == ("not_needed", 0)
    assert facts["messages"] == loaded(chat)


@pytest.mark.parametrize(
    ("args", "budget"),
    [
        ((), 108_800),
        (("--model", "claude-opus-4-5"), 170_000),
        (("--model", "no-such-model"), 108_800),
        (("--budget", "1.5M"), 1_500_000),
        (("--budget", "90,000"), 90_000),
    ],
)
def test_compact_default_budget_is_share_of_window(args: tuple[str, ...], budget: int, run: Run, chat: Path) -> None:
    assert loaded(run("compact", chat, "--json", *args).stdout)["budget"] == budget


def test_compact_uses_model_in_file(run: Run, tmp_path: Path) -> None:
    file = write_json(tmp_path / "a.json", {"model": "claude-opus-4-5", "messages": conversation("anthropic", 8)})
    facts = loaded(run("compact", file, "--json").stdout)
    assert (facts["model"], facts["window"], facts["budget"]) == ("claude-opus-4-5", 200_000, 170_000)


def test_compact_estimator_defaults_to_closest_tokenizer(run: Run, chat: Path) -> None:
    def counter(*args: str) -> str:
        return str(loaded(run("compact", chat, "--json", *args).stdout)["estimator"])

    assert counter() == "o200k_base"
    assert counter("--model", "gpt-4-turbo") == "cl100k_base"
    assert counter("--model", "gpt-4-turbo", "--estimator", "chars/4") == "chars/4"


@pytest.mark.parametrize(
    ("strategy", "by"),
    [
        ("default", "ledger"),
        ("ledger", "ledger"),
        ("truncate", "truncation"),
        ("sliding:20", "sliding window"),
        ("turns:5", "turn window"),
        ("tokens:4000", "token window"),
        ("last:10", "keep last"),
        ("prune:1k+tokens:8k", "pruning+token window"),
    ],
)
def test_compact_strategy_by_name(strategy: str, by: str, run: Run, chat: Path) -> None:
    result = run("compact", chat, "--budget", "20k", "--strategy", strategy, "--json")
    facts = loaded(result.stdout)
    assert result.exit_code == 0
    assert facts["strategy"] == by
    assert facts["tokens_after"] <= 20_000
    assert check(facts["messages"], "openai-chat") == []


def test_compact_target_limits_result(run: Run, chat: Path) -> None:
    near = loaded(run("compact", chat, "--budget", "20k", "--target", "18k", "--json").stdout)
    far = loaded(run("compact", chat, "--budget", "20k", "--target", "2k", "--json").stdout)
    assert far["tokens_after"] <= 2_000 < near["tokens_after"] <= 18_000


def test_compact_cannot_fit_exits_1_with_smallest_context(run: Run, tmp_path: Path) -> None:
    file = write_json(tmp_path / "huge.json", [{"role": "user", "content": "word " * 5_000}])
    result = run("compact", file, "--budget", "100")
    assert result.exit_code == 1
    assert "Cannot fit" in result.stdout
    assert re.search(r"Use --budget \d+ or more\.", result.stdout)
    facts = loaded(run("compact", file, "--budget", "100", "--json").stdout)
    assert facts["outcome"] == "cannot_fit"
    assert facts["messages"] == loaded(file)


@pytest.mark.parametrize(
    ("records", "format"), [(claude_code, "anthropic"), (codex, "openai-responses"), (pi, "anthropic")]
)
def test_compact_reads_other_tools_sessions(
    records: Callable[[], list[dict[str, object]]], format: str, run: Run, tmp_path: Path
) -> None:
    file = write_lines(tmp_path / "session.jsonl", records())
    result = run("compact", file, "--budget", "20", "--json")
    facts = loaded(result.stdout)
    assert facts["format"] == format
    assert check(facts["messages"], format) == []
    assert run("compact", file, "--budget", "20").exit_code == result.exit_code


def test_compact_reads_gzip(run: Run, chat: Path, tmp_path: Path) -> None:
    packed = tmp_path / "chat.json.gz"
    packed.write_bytes(gzip.compress(chat.read_bytes()))
    args = ("--budget", "20k", "--json")
    assert run("compact", packed, *args).stdout == run("compact", chat, *args).stdout


def test_compact_reads_stdin(run: Run, chat: Path) -> None:
    args = ("--budget", "20k", "--json")
    assert run("compact", "-", *args, input=chat.read_bytes()).stdout == run("compact", chat, *args).stdout


def test_compact_whole_uses_full_history(run: Run, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "session.jsonl", claude_code())
    now = loaded(run("compact", file, "--json").stdout)["messages"]
    ever = loaded(run("compact", file, "--json", "--whole").stdout)["messages"]
    assert now[0]["content"] == "Summary: berth 4 is by the crane."
    assert ever[0]["content"] == "Where is berth 4?"
    assert ever[2:] == now


def test_compact_plain_text_fits_several_formats(run: Run, tmp_path: Path) -> None:
    file = write_json(tmp_path / "plain.json", [{"role": "user", "content": "hello"}])
    assert loaded(run("compact", file, "--json").stdout)["format"] is None
    assert loaded(run("compact", file, "--json", "--format", "claude").stdout)["format"] == "anthropic"


def test_compact_report_strips_escape_codes(run: Run, tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J" + "words " * 400
    file = write_json(
        tmp_path / "evil.json", [{"role": "user", "content": evil}, {"role": "assistant", "content": evil}] * 9
    )
    out = run("compact", file, "--budget", "2k", FORCE_COLOR="1").stdout
    assert "\x1b[" in out and "\x07" not in out and "\x1b]" not in out and "\x1b[2J" not in out


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, {}])
def test_compact_no_color_prints_plain_text(env: dict[str, str], run: Run, chat: Path) -> None:
    assert "\x1b" not in run("compact", chat, "--budget", "20k", **env).output


def test_compact_report_ascii_only(run: Run, chat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.compaction_report.is_ascii_only", lambda console: True)
    out = run("compact", chat, "--budget", "20k").stdout
    assert "####" in out and "━" not in out


def test_compact_json_is_one_line(run: Run, chat: Path) -> None:
    out = run("compact", chat, "--budget", "20k", "--json").stdout
    assert out.count("\n") == 1 and isinstance(json.loads(out), dict)


@pytest.mark.parametrize("columns", [1, 20, 40, 60, 200])
@pytest.mark.parametrize("command", ["compact", "inspect"])
def test_reports_fit_any_width(command: str, columns: int, run: Run, chat: Path) -> None:
    options = ("--budget", "20k") if command == "compact" else ()
    result = run(command, chat, *options, COLUMNS=str(columns))
    assert result.exit_code == 0
    assert columns < 40 or "look" in result.stdout
