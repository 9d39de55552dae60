"""Runs a client on the task: directly against the upstream, or through `holdfast serve`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from tests.clients.commands import Client, Command
from tests.clients.task import ANSWER, LOST, SEAL, SECOND_ANSWER, SECOND_PROMPT, TaskModel, write_logs
from tests.clients.upstream import ClientUpstream

from holdfast import SessionService, open_store

_SECONDS = 240
_COMPLAINT = re.compile(r"exceed|too long|maximum|ran out of room|error", re.IGNORECASE)


@dataclass
class ClientRun:
    """One run of a client, and what the upstream saw of it."""

    outcome: str
    """finished, or why not."""
    code: int
    requests: int
    overflows: int
    own_summaries: int
    """Summaries that the client asked the model for."""
    refused: list[str]
    compactions: int = 0
    sessions: int = 0
    forks: int = 0
    problems: list[str] = field(default_factory=list)
    """What is wrong with the sessions in the store."""
    output: str = ""
    """End of what the client printed."""
    resumed: str = ""
    """Outcome of a second prompt in the same conversation, after which a sub-agent has a session of its own."""
    agents: int = 0
    """Conversations of sub-agents."""

    @property
    def finished(self) -> bool:
        return self.outcome == "finished"


def run_client(client: Client, *, through_gateway: bool, learn: bool = False, keep: Path | None = None) -> ClientRun:
    """Runs a client on the task in a home of its own; with `learn`, the gateway is not told the window."""
    model = TaskModel()
    with tempfile.TemporaryDirectory(prefix="holdfast-client-") as temporary:
        home = Path(temporary) if keep is None else keep
        if keep is not None:
            shutil.rmtree(keep, ignore_errors=True)
        home.mkdir(parents=True, exist_ok=True)
        (work := home / "work").mkdir(exist_ok=True)
        write_logs(work)
        store = home / "gateway.db"
        with ClientUpstream(model, window=client.window) as upstream:
            if through_gateway:
                with _gateway(upstream.anthropic_url, store, None if learn else client.window, home) as url:
                    command = client.configure(home, url)
                    code, output = _run(command.argv, command, work)
                    again = "" if command.again is None else _run(command.again, command, work)[1]
            else:
                command = client.configure(home, upstream.anthropic_url)
                code, output = _run(command.argv, command, work)
            run = ClientRun(
                _outcome(code, output, model),
                code,
                sum(request.protocol != "models" for request in upstream.requests),
                upstream.overflowed,
                model.summaries,
                upstream.refused,
                output=output[-500:],
            )
            if keep is not None:
                received = [{"headers": one.headers, "path": one.path, "body": one.body} for one in upstream.requests]
                (keep / "requests.json").write_text(json.dumps(received, indent=1))
                (keep / "output.txt").write_text(output)
            if through_gateway and again:
                run.resumed = "finished" if SECOND_ANSWER in again else "failed"
                run.problems += [] if SECOND_ANSWER in again else [f"the second prompt: {again[-200:]}"]
                run.agents = sum(_is_sub_agent(request.body) for request in upstream.requests)
            if through_gateway:
                anyio.run(_read_store, run, client, f"sqlite:///{store}")
                _try_commands(run, store, home)
        return run


def _run(argv: list[str], command: Command, work: Path) -> tuple[int, str]:
    try:
        done = subprocess.run(
            argv,
            env=command.env,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return -1, (late.stdout or b"").decode(errors="replace") + f"\nno end after {_SECONDS} s"
    return done.returncode, done.stdout


def _outcome(code: int, output: str, model: TaskModel) -> str:
    if ANSWER in output:
        return "finished" if code == 0 else f"right answer, exit code {code}"
    if model.lost or LOST in output:
        return "lost its task"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    why = next((line for line in reversed(lines) if _COMPLAINT.search(line)), "")
    return f"failed, exit code {code}: {(why or (lines or ['no output'])[-1])[:90]}"


@contextmanager
def _gateway(upstream: str, store: Path, window: int | None, home: Path) -> Iterator[str]:
    argv = [sys.executable, "-m", "holdfast", "serve", "--upstream", upstream, "--port", "0"]
    argv += ["--store", str(store), *([] if window is None else ["--window", str(window)])]
    with (
        (home / "gateway.log").open("w") as log,
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, text=True, cwd=home) as process,
    ):
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()
            process.wait(40)


def _is_sub_agent(body: dict[str, Any]) -> bool:
    text = json.dumps(body)
    return "Tell the tide of today." in text and SECOND_PROMPT not in text


async def _read_store(run: ClientRun, client: Client, store: str) -> None:
    """Checks that the store has one session for the conversation, complete and valid."""
    async with SessionService(open_store(store)) as service:
        sessions = await service.list()
        run.sessions = sum(session.parent is None for session in sessions)
        run.forks = sum(session.parent is not None for session in sessions)
        for session in sessions:
            run.compactions += len(await service.events(session.id, kind="compaction"))
            run.problems += await service.verify(session.id)
            texts = [str(event.body["message"]) for event in await service.events(session.id, kind="message")]
            if any("Log 12 of the harbour" in text for text in texts):
                missing = [n for n in range(1, 13) if not any(f"Log {n:02} of the harbour" in text for text in texts)]
                run.problems += [f"results {missing} are not in the session"] if missing else []
    if run.sessions != 1 + run.agents or run.forks > client.forks:
        run.problems.append(f"{run.sessions} sessions and {run.forks} forks for {1 + run.agents} conversations")


def _try_commands(run: ClientRun, store: Path, home: Path) -> None:
    for command in (["inspect", str(store)], ["search", SEAL, str(store)]):
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *command], capture_output=True, text=True, cwd=home, check=False
        )
        if done.returncode:
            run.problems.append(f"holdfast {command[0]}: {done.stderr.strip()[-200:]}")
