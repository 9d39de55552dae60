"""`holdfast web` as a process: it prints an address that works once, and stops at a signal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from holdfast import BlockingSessionService, SQLiteStore


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_command_serves_a_store_and_stops(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with BlockingSessionService(SQLiteStore(path)) as sessions:
        sessions.create(id="s", metadata={"title": "The harbour's files"})
        sessions.append("s", {"role": "user", "content": "Which ships are here?"})
    command = [sys.executable, "-m", "holdfast", "web", str(path), "--port", "0", "--read-only"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            found = re.fullmatch(r"Open (http://127\.0\.0\.1:\d+/\?token=\S+)\n", process.stdout.readline())
            assert found is not None
            with httpx.Client(follow_redirects=True, timeout=30) as client:
                assert client.get(found[1]).status_code == 200
                (one,) = client.get(found[1].partition("?")[0] + "api/sessions").json()["sessions"]
                assert one["title"] == "The harbour's files"
                with httpx.Client(timeout=30) as other:
                    assert other.get(found[1]).status_code == 401
                with client.stream("GET", found[1].partition("?")[0] + "api/s/s/live") as stream:
                    assert next(stream.iter_lines()) == "data: 1"
                    process.send_signal(signal.SIGTERM)  # an open page does not hold it up
                    assert process.wait(30) == 0
                    assert process.stderr.read() == ""
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_command_shows_the_bundled_example_with_its_compactions() -> None:
    command = [sys.executable, "-m", "holdfast", "web", "example", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "example is shown from memory: changes are not saved.\n"
            found = re.fullmatch(r"Open (\S+)\n", process.stdout.readline())
            assert found is not None
            with httpx.Client(follow_redirects=True, timeout=30) as client:
                assert client.get(found[1]).status_code == 200
                assert "/s/example/cost" in client.get(found[1].partition("?")[0] + "s/example").text
                sizes = client.get(found[1].partition("?")[0] + "api/s/example/sizes").json()
                assert len(sizes["compactions"]) >= 2
                cost = client.get(found[1].partition("?")[0] + "api/s/example/cost").json()
                assert cost["price"] > 0 and cost["usage"]["cache_read"] > 0
                assert all(one["spent"] > 0 for one in cost["compactions"]) and cost["compactions"][0]["paid_at"]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("in_gateway", [False, True])
def test_hangup_reads_the_key_file_again(tmp_path: Path, in_gateway: bool) -> None:
    """A reload ends the cookies of keys that are gone; a broken file changes nothing."""
    keys, path = tmp_path / "keys", str(tmp_path / "agent.db")
    keys.write_text(f"{'a' * 20} ann\n")
    with BlockingSessionService(SQLiteStore(path)) as sessions:
        sessions.create(id="s", owner="ann")
    command = [sys.executable, "-m", "holdfast", "web", path, "--port", "0"]
    if in_gateway:
        command = [sys.executable, "-m", "holdfast", "serve", "--upstream", "http://127.0.0.1:9", "--port", "0"]
        command += ["--inspect", "0", "--store", path]
    environment = os.environ | {"HOLDFAST_ITEM_KEY": "k" * 44}
    with (
        subprocess.Popen(
            [*command, "--key-file", str(keys)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        ) as process,
        httpx.Client(timeout=30) as client,
    ):
        try:
            assert process.stdout is not None and process.stderr is not None
            found = re.search(r"Open (\S+)/", process.stdout.readline())
            assert found is not None
            base, write = found[1], {"origin": found[1], "x-holdfast": "1"}
            assert client.post(f"{base}/login", json={"key": "a" * 20}, headers=write).status_code == 200
            assert client.get(f"{base}/api/s/s").status_code == 200
            for content, line, status in (
                ("broken", "stay as they were", 200),
                (f"{'b' * 20} ann\n", "were read again", 401),
            ):
                keys.write_text(content)
                process.send_signal(signal.SIGHUP)
                while line not in process.stderr.readline():
                    assert process.poll() is None
                assert client.get(f"{base}/api/s/s").status_code == status
            assert client.post(f"{base}/login", json={"key": "b" * 20}, headers=write).status_code == 200
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_reports_need_a_folder_and_a_login_that_sees_everything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "web", "example", "--port", "0", "--reports"]
    for options, message in (
        ([str(tmp_path / "none")], "is not a folder"),
        ([str(tmp_path), "--owner", "ann"], "leave out --reports"),
    ):
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and message in done.stderr


def test_command_without_a_store_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "web", str(tmp_path / "missing.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "There is no file" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_gateway_shows_its_sessions_in_the_same_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "serve", "--upstream", "http://127.0.0.1:9", "--port", "0"]
    command += ["--inspect", "0", "--store", str(tmp_path / "gateway.db")]
    environment = os.environ | {"HOLDFAST_ITEM_KEY": "k" * 44}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            lines = process.stdout.readline() + process.stdout.readline()
            pages, gateway = re.search(r"Open (\S+)", lines), re.search(r"Listening on (\S+)", lines)
            assert pages is not None and gateway is not None
            with httpx.Client(follow_redirects=True, timeout=30) as client:
                assert client.get(pages[1]).status_code == 200
                assert client.get(pages[1].partition("?")[0] + "api/sessions").json()["count"] == 0
                chat = {"model": "m", "messages": [{"role": "user", "content": "Which ships are here?"}]}
                assert client.post(f"{gateway[1]}/v1/chat/completions", json=chat).status_code == 502
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
