"""`holdfast chat` without a terminal: one answer, or JSON events (P9, P11, P15)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import msgspec
import pytest
from cli_files import Run

from holdfast import SessionService
from holdfast.agent.events import AgentEvent
from holdfast.agent.tools import Sandbox
from holdfast.cli import main
from holdfast.errors import Outcome
from holdfast.hooks import ACCURACY_NOTICE
from holdfast.settings import trusted_folders
from holdfast.stores import open_store

Refused = Callable[..., str]
READ = {"calls": [{"name": "read_file", "arguments": {"path": "tides.txt"}}]}
WRITE = {"calls": [{"name": "write_file", "arguments": {"path": "berths.txt", "content": "N3: free\n"}}]}
LONG = "The tide tables of Osterhaven, berth by berth. " * 400
"""About 4,000 tokens."""
TIMEOUT = 30


@pytest.fixture
def harbor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with an empty home."""
    for name in [name for name in os.environ if name.startswith(("HOLDFAST_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tides.txt").write_text("low 3\nhigh 9\n")
    return tmp_path


def scripted(*steps: Any, **more: Any) -> list[str]:
    """Options for a scripted model."""
    Path("script.json").write_text(json.dumps({"steps": list(steps), **more}))
    return ["--model", "script:script.json"]


def events(output: str) -> list[Any]:
    """Events of the output; every line must be a known event."""
    return [msgspec.json.decode(line, type=AgentEvent) for line in output.splitlines()]


def kinds(output: str) -> list[str]:
    return [json.loads(line)["type"] for line in output.splitlines()]


def stored(store: str) -> list[list[str]]:
    """Message texts of each session, newest first."""

    async def read() -> list[list[str]]:
        async with SessionService(open_store(store)) as sessions:
            records = await sessions.list()
            return [[str(message["content"]) for message in await sessions.context(one.id)] for one in records]

    return asyncio.run(read())


# -- one answer -------------------------------------------------------------------------------------------------


def test_print_writes_only_the_answer_to_stdout(harbor: Path, run: Run) -> None:
    done = run("chat", "--print", "When is low water?", *scripted(READ, "It is low at 3."), "--trust")
    assert (done.exit_code, done.stdout) == (0, "It is low at 3.\n")
    assert "read_file tides.txt" in done.stderr and "session " in done.stderr


def test_print_reads_project_instructions_unless_turned_off(harbor: Path, run: Run) -> None:
    Path("AGENTS.md").write_text("Count in fathoms.")
    done = run("chat", "--print", "When is low water?", *scripted("At 3."), "--store", "s.db", "--trust")
    assert "project instructions: AGENTS.md (17 characters)" in done.stderr
    done = run(
        "chat", "--print", "And now?", *scripted("At 3."), "--store", "s.db", "--trust", "--no-project-instructions"
    )
    assert "project instructions" not in done.stderr

    async def systems() -> list[bool]:
        async with SessionService(open_store("s.db")) as sessions:
            return ["Count in fathoms." in record.system for record in await sessions.list()]

    assert asyncio.run(systems()) == [False, True]


@pytest.mark.parametrize(
    ("prompt", "piped", "asked"),
    [
        (["In feet?"], "low 3", "In feet?\n\nlow 3"),
        ([], "When is low water?\n", "When is low water?"),
        (["When is low water?"], "", "When is low water?"),
    ],
)
def test_print_accepts_argument_and_piped_prompt(
    harbor: Path, run: Run, prompt: list[str], piped: str, asked: str
) -> None:
    done = run("chat", "--print", *prompt, *scripted("At 3."), "--store", "s.db", input=piped)
    assert (done.exit_code, stored("s.db")) == (0, [[asked, "At 3."]])


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[BinaryIO]:
    """The write end of standard input."""
    reading, writing = os.pipe()
    with open(reading) as source, open(writing, "wb", buffering=0) as held:
        monkeypatch.setattr("sys.stdin", source)
        yield held


def printed(*args: str) -> None:
    """Like `run`, but with the standard input of this process."""
    with pytest.raises(SystemExit) as ended:
        main(["chat", "--print", *args])
    assert ended.value.code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe cannot be asked there")
def test_print_silent_pipe_times_out(
    harbor: Path, pipe: BinaryIO, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The caller may leave standard input open without writing to it."""
    monkeypatch.setattr("holdfast.cli.chat.PIPE_TIMEOUT", 0.05)
    printed("When is low water?", *scripted("At 3."), "--store", "s.db")
    output = capsys.readouterr()
    assert output.out == "At 3.\n" and "holdfast: no piped input within" in output.err
    assert stored("s.db") == [["When is low water?", "At 3."]]


@pytest.mark.parametrize("prompt", [["In feet?"], []])
def test_print_slow_pipe_is_read_to_the_end(
    harbor: Path, pipe: BinaryIO, prompt: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer may be slow before the first byte, and slower after it."""
    monkeypatch.setattr("holdfast.cli.chat.PIPE_TIMEOUT", 60.0)

    def speak() -> None:
        time.sleep(0.1)
        pipe.write(b"low 3, ")
        time.sleep(0.1)
        pipe.write(b"high 9")
        pipe.close()

    speaker = threading.Thread(target=speak)
    speaker.start()
    printed(*prompt, *scripted("Fine."), "--store", "s.db")
    speaker.join()
    assert stored("s.db") == [["\n\n".join([*prompt, "low 3, high 9"]), "Fine."]]


def test_print_failed_run_exits_1(harbor: Path, run: Run) -> None:
    done = run("chat", "--print", "Go on reading.", *scripted(READ))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "holdfast: failed: the provider rejected the request: The script has 1 steps" in done.stderr


def test_print_empty_answer_exits_1(harbor: Path, run: Run) -> None:
    (harbor / "story.json").write_text('[{"text": ""}]')
    done = run("chat", "--model", "script:story.json", "--print", "When?")
    assert (done.exit_code, done.stdout) == (1, "") and "replied with nothing" in done.stderr


def test_print_truncated_answer_exits_1(harbor: Path, run: Run) -> None:
    done = run("chat", "--print", "Tell me all.", *scripted({"text": "Once upon a", "finish": "length"}))
    assert (done.exit_code, done.stdout) == (1, "Once upon a\n")
    assert "holdfast: max tokens: the reply is too long" in done.stderr


def test_print_refuses_changes_without_yes(harbor: Path, run: Run) -> None:
    """The model gets an error, and nothing waits for an approval."""
    options = [*scripted(WRITE, "I could not."), "--store", "s.db", "--trust"]
    done = run("chat", "--print", "Write it down.", *options)
    assert (done.exit_code, done.stdout) == (0, "I could not.\n")
    assert not (harbor / "berths.txt").exists()
    assert "Changes are not allowed" in done.stderr and "Changes are not allowed" in stored("s.db")[0][2]

    done = run("chat", "--print", "Write it down.", *scripted(WRITE, "Written."), "--yes")
    assert (done.stdout, (harbor / "berths.txt").read_text()) == ("Written.\n", "N3: free\n")


def test_print_failures_are_sentences_without_internal_words(harbor: Path, run: Run) -> None:
    """A missing key, a script that ends, unreadable files, and a compaction that fails, then succeeds."""
    (harbor / "crane.bin").write_bytes(b"\x7fELF\0\xff")
    (harbor / "latin.txt").write_bytes("Köln\n".encode("latin-1"))
    (harbor / "locked").mkdir()
    calls = [("read_file", {"path": "crane.bin"}), ("edit_file", {"path": "crane.bin", "old": "a", "new": "b"})]
    calls += [("read_file", {"path": "locked"}), ("read_file", {"path": "latin.txt"}), ("sail", {})]
    calls += [("read_file", {"path": "a\0b"}), ("read_file", {"file": 1})]
    steps = [{"calls": [{"name": name, "arguments": given}]} for name, given in calls]
    shown = run("chat", "--print", "hello", "--model", "anthropic:claude-x", "--store", "memory:").output
    assert "needs a key: set ANTHROPIC_API_KEY" in shown
    shown += run("chat", "--print", "Look.", *scripted(*steps), "--yes", "--store", "memory:").output
    assert "crane.bin is not a text file" in shown and "The script has 7 steps" in shown
    store = ["--store", "s.db", "--window", "5500", "--preset", "pi"]
    run("chat", "--print", "Read the tables.", *scripted(LONG), *store, "--no-auto-compact")
    done = run("chat", "--print", "And now?", *scripted("Fine."), *store, "--continue")
    shown += done.output
    assert "The compaction failed" in done.stderr and "compacted at the second attempt: " in done.stderr
    outcomes = "|".join(one for one in Outcome if "_" in one)
    assert not re.findall(rf"{outcomes}|transport:|auth:|api_key=|codec|\w+(?:Error|Exception)\b", shown), shown


def test_print_compaction_is_one_line_with_notice(harbor: Path, run: Run) -> None:
    """P15."""
    options = ["--window", "5500", "--store", "s.db"]
    run("chat", "--print", "Read the tables.", *scripted(LONG), *options, "--no-auto-compact")
    done = run("chat", "--print", "And now?", *scripted("Fine.", summary="short"), *options, "--continue")
    lines = [line for line in done.stderr.splitlines() if line.startswith("compacted: ")]
    assert lines and all("tokens. " in line and line.endswith(ACCURACY_NOTICE) for line in lines)
    assert done.stdout == "Fine.\n"


# -- JSON events -------------------------------------------------------------------------------------------------


def test_json_mode_prints_every_event(harbor: Path, run: Run) -> None:
    done = run("chat", "--mode", "json", "When is low water?", *scripted(READ, "It is low at 3."))
    assert (done.exit_code, done.stderr) == (0, "")
    assert [type(event).__name__ for event in events(done.stdout)][:2] == ["SessionChanged", "RunStarted"]
    shown = [kind for kind in kinds(done.stdout) if kind not in ("gauge", "delta")]
    assert shown == ["session", "run_started", "reply", "tool_started", "tool_finished", "reply", "run_finished"]
    text = "".join(event["text"] for event in map(json.loads, done.stdout.splitlines()) if event["type"] == "delta")
    assert text == "read_fileIt is low at 3."


def test_json_mode_prints_compaction_failures(harbor: Path, run: Run) -> None:
    """P9: if the preset leaves the decision to the user, an error record follows."""
    store = ["--store", "s.db", "--window", "7000"]
    run("chat", "--print", "Read the tables.", *scripted(LONG), *store, "--no-auto-compact")
    done = run("chat", "--mode", "json", "And now?", *scripted("Fine."), *store, "--continue", "--preset", "pi")
    shown = kinds(done.stdout)
    assert shown.index("compaction_started") < shown.index("compaction_failed") < shown.index("error")
    assert done.exit_code == 0, "the chat continues"
    records = [json.loads(line) for line in done.stdout.splitlines()]
    error = next(record["error"] for record in records if record["type"] == "error")
    assert error.endswith("): the conversation continues unchanged."), "no request could compact again"
    assert "Choose:" not in done.stdout
    done = run("chat", "--mode", "json", "And now?", *scripted("Fine."), *store, "--continue")
    assert {"compaction_started", "compaction_completed", "compaction_boundary"} <= set(kinds(done.stdout))
    done = run("chat", "--mode", "json", "Well?", *scripted(LONG), *store, "--continue", "--no-auto-compact")
    assert not any(kind.startswith("compaction") for kind in kinds(done.stdout))


def test_json_mode_failed_run_exits_1(harbor: Path, run: Run) -> None:
    done = run("chat", "--mode", "json", "Go on reading.", *scripted(READ))
    assert done.exit_code == 1 and json.loads(done.stdout.splitlines()[-1])["status"] == "failed"


# -- sessions and settings --------------------------------------------------------------------------------------


def test_chat_continues_session_by_id_or_newest(harbor: Path, run: Run) -> None:
    store = ["--store", "jsonl:kept"]
    first = run("chat", "--mode", "json", "one", *scripted("1"), *store)
    session = events(first.stdout)[0].session
    run("chat", "--print", "two", *scripted("2"), *store)
    run("chat", "--print", "three", *scripted("3"), *store, "--continue")
    run("chat", "--print", "four", *scripted("4"), *store, "--session", session)
    assert stored("jsonl:kept") == [["two", "2", "three", "3"], ["one", "1", "four", "4"]]


def test_chat_continues_imported_session_of_this_folder(harbor: Path, run: Run) -> None:
    """Also where the tool knew the folder by a link; a session of another folder is not continued."""
    (harbor / "link").symlink_to(harbor)
    for id, folder in (("mine", harbor / "link"), ("other", harbor / "elsewhere")):
        header = {"type": "session", "version": 3, "id": id, "cwd": str(folder)}
        asked = {"type": "message", "id": "1", "parentId": None, "message": {"role": "user", "content": f"I am {id}."}}
        Path(f"{id}.jsonl").write_text(f"{json.dumps(header)}\n{json.dumps(asked)}\n")
        assert run("import", f"{id}.jsonl", "--store", "s.db").exit_code == 0
    assert run("chat", "--print", "Go on.", *scripted("Aye."), "--store", "s.db", "--continue").exit_code == 0
    assert sorted(map(len, stored("s.db"))) == [1, 3]
    assert json.loads(run("export", "mine", "--store", "s.db", "--format", "pi").stdout.splitlines()[0])["cwd"] == str(
        harbor / "link"
    )


def test_chat_settings_come_from_environment_and_files(harbor: Path, run: Run) -> None:
    scripted("Fine.")
    done = run("chat", "--print", "hello", HOLDFAST_MODEL="script:script.json", HOLDFAST_STORE="memory:")
    assert (done.exit_code, done.stdout) == (0, "Fine.\n")
    (harbor / ".holdfast").mkdir()
    (harbor / ".holdfast" / "settings.toml").write_text('preset = "pi"\nstore = "jsonl:there"\n')
    asked = ["chat", "--print", "hello", "--folder", ".", "--model", "script:script.json"]
    done = run(*asked, "--trust")
    assert done.stdout == "Fine.\n" and "a project may not" in done.stderr, "a project cannot say where to keep things"
    done = run(*asked)
    assert done.stdout == "Fine.\n" and "settings.toml is not read, since this folder is not trusted" in done.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--print", "hello"], "No model is set: name one with --model, in HOLDFAST_MODEL, or as model = … in "),
        (["--print", "hello"], "http://localhost:8080/v1#MODEL, or script:FILE"),
        (["--print", "hello", "--model", "script:nowhere.json"], "cannot be read"),
        (["--print", "--model", "script:script.json"], "There is no prompt"),
        (["--print", "--mode", "json", "hello"], "use one of them"),
        (["--session", "x", "--continue", "--print", "hello"], "use one of them"),
        (["--print", "hello", "--continue", "--store", "memory:"], "no session to continue"),
        (["--print", "hello", "--model", "script:script.json", "--session", "x"], "no session 'x'"),
        (["--print", "hello", "--model", "script:script.json", "--folder", "nowhere"], "is not a folder"),
        (["--print", "hello", "--model", "script:script.json", "--store", "nowhere.txt"], "no store at"),
        (["--print", "hello", "--preset", "claude"], "did you mean 'claude_code'?"),
        (["--mode", "xml", "hello"], "not a mode"),
        (["--window", "many", "--print", "hello"], "whole number"),
        (["--model", "script:script.json"], "Not a terminal: use --print"),
        (["--model", "script:script.json", "--resume"], "needs a terminal: name a session, as in --resume ID"),
        (["--model", "script:script.json", "--print", "hello", "--resume"], "or use --continue for the one last used"),
        (["--continue", "--resume", "x", "--print", "hello"], "exclude each other"),
    ],
)
def test_chat_bad_input_is_one_line(harbor: Path, refused: Refused, args: list[str], says: str) -> None:
    scripted("Fine.")
    assert says in refused("chat", *args)


def test_chat_on_terminal_starts_terminal_app(harbor: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: dict[str, Any] = {}

    def terminal(settings: Any, **named: Any) -> int:
        opened.update(named, model=settings.model)
        return 0

    monkeypatch.setattr("holdfast.chat.terminal.run_terminal", terminal)
    trusted_folders().decide(harbor, True)
    screen = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr("holdfast.cli.chat.sys", SimpleNamespace(stdin=screen, stdout=screen))
    assert run("chat", *scripted("Fine."), "--yes", "--session", "x").exit_code == 0
    given = {"model": "script:script.json", "folder": ".", "session": "x", "yes": True, "prompt": None, "choose": False}
    given |= {"mode": "ask", "sandbox": None}
    assert opened == given
    assert run("chat", "hello", *scripted("Fine.")).exit_code == 0
    assert opened["prompt"] == "hello" and opened["session"] is None
    assert run("chat", *scripted("Fine."), "--resume").exit_code == 0
    assert (opened["choose"], opened["session"]) == (True, None)
    assert run("chat", *scripted("Fine."), "--resume", "abcdef").exit_code == 0
    assert (opened["choose"], opened["session"]) == (False, "abcdef")
    for options, expected in {
        "--permission-mode plan": ("plan", None),
        "--sandbox --permission-mode accept-edits": ("accept-edits", Sandbox()),
        "--sandbox=network": ("ask", Sandbox(network=True)),
    }.items():
        assert run("chat", *scripted("Fine."), *options.split()).exit_code == 0
        assert (opened["mode"], opened["sandbox"]) == expected


# -- real processes: pipes and signals --------------------------------------------------------------------------


def start(*args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", "chat", *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def until(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    assert any(word in line for line in iter(process.stdout.readline, ""))


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_json_mode_ctrl_c_keeps_partial_answer(harbor: Path) -> None:
    options = [*scripted(READ, LONG, delay=1.0), "--store", "s.db"]
    with start("--mode", "json", "Read the tables.", *options) as process:
        until(process, '"kind":"text"')
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, errors) == (130, "")
    assert json.loads(rest.splitlines()[-1])["status"] == "aborted"
    partial, _, mark = stored("s.db")[0][-1].partition("\n\n")
    assert LONG.startswith(partial) and partial != LONG and mark == "[Interrupted by the user.]"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_print_ctrl_c_prints_what_was_written_and_exits_130(harbor: Path) -> None:
    script = scripted(READ | {"text": "I look."}, LONG, delay=0.8)
    with start("--print", "Read the tables.", *script, "--store", "s.db", "--trust") as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.close()
        process.stdin = None
        assert any("read_file" in line for line in iter(process.stderr.readline, ""))
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130 and (out == "I look.\n" or LONG.startswith(out.strip()))
    assert errors == "holdfast: aborted: stopped by the user\n"


def test_json_mode_each_input_line_is_a_prompt(harbor: Path) -> None:
    with start("--mode", "json", *scripted("1", "2", "3", LONG, delay=0.1), "--store", "s.db") as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write("one\n\ntwo\n")
        process.stdin.flush()
        until(process, "run_finished")
        until(process, "run_finished")
        process.stdin.write("three\n")
        process.stdin.flush()
        until(process, "run_finished")
        process.stdin.write("four\n")
        process.stdin.flush()
        until(process, "delta")
        process.stdout.close()
        process.stdin.close()
        assert process.wait(TIMEOUT) == 0, "a reader that leaves, as head does, changes no exit code"
        assert process.stderr.read() == ""
    assert stored("s.db")[0][:8] == ["one", "1", "two", "2", "three", "3", "four", LONG]
