"""A failing summarizer: fallback, report, and no leaked keys (P9)."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_files import Run, loaded
from cli_models import SUMMARY, Serve, at

from providers import RateLimited, Status

KEY = "sk-planted-9f8e7d6c5b4a"
REFUSED = Status(401, "Incorrect API key provided.")


@pytest.mark.parametrize(
    ("preset", "instead"),
    [((), "ledger"), (("--preset", "claude_code"), "ledger"), (("--preset", "goat"), "truncation")],
)
def test_failed_summary_reports_fallback(
    preset: tuple[str, ...], instead: str, run: Run, chat: Path, serve: Serve
) -> None:
    options = (*preset, "--now", "--summarizer", at(serve(REFUSED)))
    result = run("compact", chat, *options)
    assert result.exit_code == 0
    report = " ".join(result.stdout.split())
    assert f"none: the {instead} was used instead of " in report
    assert "Incorrect API key provided." in report and "accuracy" not in report
    assert "cost 1 call, tokens not reported" in report
    facts = loaded(run("compact", chat, *options, "--json").stdout)
    assert (facts["fallback"], facts["summary"], facts["notice"]) == (instead, None, None)
    assert "Incorrect API key" in facts["remarks"][-1]


@pytest.mark.parametrize("preset", ["spring", "pi", "codex", "layer", "workstream"])
def test_failed_summary_without_fallback_exits_3(preset: str, run: Run, chat: Path, serve: Serve) -> None:
    out = chat.parent / "out.json"
    out.write_text("old")
    options = ("--preset", preset, "--now", "--summarizer", at(serve(REFUSED)))
    result = run("compact", chat, *options, "--force", "-o", out)
    assert (result.exit_code, result.stdout, out.read_text()) == (3, "", "old")
    assert result.stderr.startswith(
        "holdfast: No summary was written, and nothing has changed: the provider refused the key: Incorrect API key"
    )
    assert result.stderr.count("\n") == 1
    for way_out in ("Try again", "another --summarizer", "--strategy ledger"):
        assert way_out in result.stderr
    output = run("compact", chat, *options, "--json")
    facts = loaded(output.stdout)
    assert (output.exit_code, output.stderr, facts["type"], facts["outcome"]) == (3, "", "error", "summary_failed")
    assert f"holdfast: {facts['error']}\n" == result.stderr
    assert facts["messages"] == loaded(chat)


def test_failed_summary_writes_no_messages_to_stdout(run: Run, chat: Path, serve: Serve) -> None:
    options = ("--preset", "pi", "--now", "--summarizer", at(serve(REFUSED)), "-o", "-", "--json")
    result = run("compact", chat, *options)
    assert (result.exit_code, result.stdout) == (3, "")
    assert loaded(result.stderr)["type"] == "error"


def test_transient_error_is_retried(run: Run, chat: Path, serve: Serve) -> None:
    server = serve([RateLimited(0.01), SUMMARY])
    facts = loaded(run("compact", chat, "--now", "--summarizer", at(server), "--json").stdout)
    assert facts["fallback"] is None and facts["cost"]["calls"] == 1 and len(server.requests) == 2


def test_unreachable_server_uses_fallback(run: Run, chat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda *_: 0.01)
    result = run("compact", chat, "--preset", "pi", "--now", "--summarizer", "http://127.0.0.1:9/v1#gone")
    assert result.exit_code == 3 and "Traceback" not in result.stderr


def test_blank_summary_uses_fallback(run: Run, chat: Path, serve: Serve) -> None:
    facts = loaded(run("compact", chat, "--now", "--summarizer", at(serve("  ")), "--json").stdout)
    assert facts["fallback"] == "ledger" and "blank" in facts["remarks"][-1]


@pytest.mark.parametrize("preset", ["holdfast", "pi"])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_error_never_shows_api_key(preset: str, form: tuple[str, ...], run: Run, chat: Path, serve: Serve) -> None:
    server = serve(lambda request: Status(401, f"Incorrect key {KEY}, {request.headers['authorization']}"))
    result = run(
        "compact", chat, "--preset", preset, "--now", "--summarizer", "openai:gpt-4o-mini", *form,
        OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.openai_url,
    )  # fmt: skip
    assert server.requests and KEY in server.requests[0].headers["authorization"]
    assert "Incorrect key" in result.output and KEY not in result.output
    assert KEY[3:] not in result.output


def test_error_never_shows_key_in_address(run: Run, chat: Path, serve: Serve) -> None:
    server = serve(SUMMARY)
    who = f"{server.openai_url.replace('http://', f'http://ann:{KEY}@')}#gpt-test"
    for options in (("--now",), (), ("--now", "--json")):
        assert KEY not in run("compact", chat, *options, "--summarizer", who).output


def test_error_strips_escape_codes(run: Run, chat: Path, serve: Serve) -> None:
    who = at(serve(Status(401, "no \x1b]0;owned\x07\x1b[2J key")))
    for preset in ("holdfast", "pi"):
        output = run("compact", chat, "--preset", preset, "--now", "--summarizer", who).output
        assert "\x1b" not in output and "\x07" not in output
