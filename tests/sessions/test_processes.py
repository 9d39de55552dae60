"""What a process may forget: `close()`, that it was forked, that a result came from this process. Real processes."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    BlockingSessionService,
    HoldfastError,
    JSONLStore,
    MemoryStore,
    SessionService,
    SQLiteStore,
    compact,
)
from holdfast.stores import Log
from real_sessions import WHOLE

HANG_SECONDS = 60.0
"""A process that has not ended by then never ends."""
STORES = {
    "memory": "MemoryStore()",
    "jsonl": "JSONLStore('log')",
    "sqlite": "SQLiteStore('log.db')",
}
HEAD = """
import asyncio, os, sys, threading
from holdfast import *
from holdfast.errors import StoreError
HISTORY = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "words of a step " * 40} for n in range(40)]
def opened(): return STORE
"""
FORK = """
def report(work):
    try:
        print("works", work() is not None)
    except StoreError as problem:
        print("error", problem)

def in_child(work):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            work()
            sys.stdout.flush()
        except BaseException as problem:
            print("failed", repr(problem), flush=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""


def run_program(folder: Path, program: str, store: str = "memory") -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, which must end."""
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", HEAD.replace("STORE", STORES[store]) + program],
        cwd=folder,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )


# -- a forgotten close() ------------------------------------------------------------------------------

FORGOTTEN = {
    "service": """
sessions = BlockingSessionService(opened())
sessions.create(id="s")
sessions.append("s", HISTORY)
sessions.compact("s", budget=1_000)
""",
    "asynchronous service": """
async def main():
    sessions = SessionService(opened())
    await sessions.create(id="s")
    await sessions.append("s", HISTORY)
    await sessions.compact("s", budget=1_000)
    raise RuntimeError("a defect of the program")
asyncio.run(main())
""",
    "conversations": """
from holdfast.integrations.conversation import AgentConversations
agents = AgentConversations(store=opened(), window=2_000)
agents.conversation("s").prepare(HISTORY)
""",
    "model": """
def summarize(text): return "The summary."
print(compact(HISTORY, budget=1_000, summarizer=summarize).outcome)
""",
    "thread": """
sessions = BlockingSessionService(opened())
sessions.create(id="s")
def later():
    threading.main_thread().join()
    for message in HISTORY:
        sessions.append("s", message)
    sessions.compact("s", budget=1_000)
threading.Thread(target=later).start()
""",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("store", "program"),
    [
        (store, program)
        for row, store in enumerate(STORES)
        for column, program in enumerate(FORGOTTEN)
        if WHOLE or column % len(STORES) == row
    ],
)
def test_a_program_that_forgets_close_ends_after_an_exception_all_the_same(
    tmp_path: Path, program: str, store: str
) -> None:
    done = run_program(tmp_path, FORGOTTEN[program] + "\nraise RuntimeError('a defect of the program')", store)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1 and "RuntimeError: a defect of the program" in done.stderr, done.stderr


@pytest.mark.parametrize("store", ["jsonl", "sqlite"])
@pytest.mark.parametrize("program", ["service", "asynchronous service", "thread"] if WHOLE else ["thread"])
def test_what_was_acknowledged_before_a_forgotten_close_is_durable(tmp_path: Path, program: str, store: str) -> None:
    run_program(tmp_path, FORGOTTEN[program], store)
    look = 'sessions = BlockingSessionService(opened())\nprint(len(sessions.events("s")), sessions.round("s"))'
    assert run_program(tmp_path, look, store).stdout.split() == ["41", "1"]


# -- a fork -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", STORES)
def test_a_blocking_service_used_before_a_fork_gives_one_error_in_the_child(tmp_path: Path, store: str) -> None:
    done = run_program(
        tmp_path,
        FORK
        + """
sessions = BlockingSessionService(opened())
sessions.create(id="s")
sessions.append("s", HISTORY)
def child():
    report(lambda: sessions.append("s", {"role": "user", "content": "from the child"}))
    report(lambda: sessions.context("s"))
    report(lambda: sessions.compact("s", budget=1_000))
    report(lambda: sessions.list())
    sessions.close()
    again = BlockingSessionService(opened())
    report(lambda: again.create(id="t"))
in_child(child)
print(len(sessions.events("s")))
sessions.close()
""",
        store,
    )
    lines = done.stdout.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["error"] * 4 + ["works", "40"], done
    assert all("open it again in the child process" in line for line in lines[:4])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("loop", ["the same event loop", "a new event loop"])
def test_an_asynchronous_service_used_before_a_fork_gives_one_error_in_the_child(
    tmp_path: Path, store: str, loop: str
) -> None:
    done = run_program(
        tmp_path,
        FORK
        + """
def reported(work):
    async def run():
        try:
            await work
            print("works")
        except StoreError as problem:
            print("error", problem)
    return run()

async def operations(sessions):
    await reported(sessions.append("s", {"role": "user", "content": "from the child"}))
    await reported(sessions.context("s"))
    await reported(sessions.compact("s", budget=1_000))
    await reported(sessions.events("s"))
    await reported(sessions.fork("s"))
    await sessions.close()

async def main():
    sessions = SessionService(opened())
    await sessions.create(id="s")
    await sessions.append("s", HISTORY)
    await sessions.context("s")
    await sessions.compact("s", budget=1_000)
    return sessions

def step(coroutine):  # a child inside a running loop: what does not suspend needs no loop
    try:
        coroutine.send(None)
        print("suspended")
    except StopIteration:
        pass

async def same():
    sessions = await main()
    in_child(lambda: step(operations(sessions)))
    await sessions.close()
"""
        + (
            "asyncio.run(same())"
            if loop == "the same event loop"
            else "sessions = asyncio.run(main())\nin_child(lambda: asyncio.run(operations(sessions)))"
        ),
        store,
    )
    lines = done.stdout.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["error"] * 5, done
    assert all("open it again in the child process" in line for line in lines)


@pytest.mark.parametrize("store", STORES)
def test_a_service_only_created_before_a_fork_works_in_the_child(tmp_path: Path, store: str) -> None:
    done = run_program(
        tmp_path,
        FORK
        + """
sessions = BlockingSessionService(opened())
compact(HISTORY, budget=1_000, summarizer=lambda text: "The summary.")
def child():
    report(lambda: sessions.create(id="s"))
    report(lambda: sessions.append("s", HISTORY))
    report(lambda: compact(HISTORY, budget=1_000, summarizer=lambda text: "The summary."))
    sessions.close()
in_child(child)
""",
        store,
    )
    assert done.stdout.splitlines() == ["works True"] * 3, done


@pytest.mark.parametrize("store", STORES)
def test_conversations_of_an_agent_used_before_a_fork_give_one_error(tmp_path: Path, store: str) -> None:
    done = run_program(
        tmp_path,
        FORK
        + """
from holdfast.integrations.conversation import AgentConversations
agents, unused = AgentConversations(store=opened(), window=2_000), AgentConversations(window=2_000)
agents.conversation("s").prepare(HISTORY)
def child():
    report(lambda: agents.conversation("s").prepare([*HISTORY, HISTORY[0]]))
    report(lambda: unused.conversation("s").prepare(HISTORY))
in_child(child)
""",
        store,
    )
    assert [line.split(" ")[0] for line in done.stdout.splitlines()] == ["error", "works"], done


# -- results ------------------------------------------------------------------------------------------

HISTORY = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "words of a step " * 40} for n in range(40)]


def values_of(result: Any) -> list[Any]:
    return [result.messages, result.kept, result.archived, result.edited, result.checkpoint, repr(result)]


@pytest.mark.parametrize("budget", [1_000, 100_000])
def test_a_result_pickles_with_its_lazy_values(budget: int) -> None:
    result = compact(HISTORY, budget=budget)
    assert values_of(pickle.loads(pickle.dumps(result))) == values_of(result)
    assert compact(HISTORY, budget=budget, previous=pickle.loads(pickle.dumps(result)).checkpoint).messages


def test_results_and_contexts_of_a_session_pickle() -> None:
    with BlockingSessionService(MemoryStore()) as sessions:
        sessions.create(id="s", format="openai-chat")
        sessions.append("s", HISTORY)
        result = sessions.compact("s", budget=1_000)
        context = sessions.context("s")
        again = pickle.loads(pickle.dumps(context))
        assert values_of(pickle.loads(pickle.dumps(result))) == values_of(result)
        assert (again, again.numbers, again.request, again.is_compacted) == (
            context,
            context.numbers,
            context.request,
            True,
        )


# -- threads and event loops --------------------------------------------------------------------------


def open_store(kind: str, folder: Path) -> Log:
    stores: dict[str, Log] = {
        "memory": MemoryStore(),
        "jsonl": JSONLStore(folder / "log"),
        "sqlite": SQLiteStore(folder / "log.db"),
    }
    return stores[kind]


@pytest.mark.parametrize("store", STORES)
def test_many_threads_share_one_blocking_service(tmp_path: Path, store: str) -> None:
    with BlockingSessionService(open_store(store, tmp_path)) as sessions, ThreadPoolExecutor(8) as pool:
        sessions.create(id="s")

        def work(number: int) -> None:
            sessions.append("s", {"role": "user", "content": f"message {number}"}, id=f"m{number}")
            if number % 10 == 0:
                sessions.compact("s", budget=200)

        list(pool.map(work, range(60)))
        assert {event.id for event in sessions.events("s") if event.id.startswith("m")} == {f"m{n}" for n in range(60)}
        assert sessions.verify("s") == []


@pytest.mark.parametrize("store", ["jsonl", "sqlite"])
def test_a_store_opened_twice_is_one_log(tmp_path: Path, store: str) -> None:
    with (
        BlockingSessionService(open_store(store, tmp_path)) as one,
        BlockingSessionService(open_store(store, tmp_path)) as other,
    ):
        one.create(id="s")
        one.append("s", HISTORY[:20])
        other.append("s", HISTORY[20:])
        assert one.compact("s", budget=1_000).tokens_after == other.size("s").tokens
        assert one.context("s") == other.context("s") and one.verify("s") == []


@pytest.mark.parametrize("store", STORES)
def test_one_service_is_used_on_two_event_loops_one_after_the_other(tmp_path: Path, store: str) -> None:
    sessions = SessionService(open_store(store, tmp_path))

    async def first() -> None:
        await sessions.create(id="s")
        await sessions.append("s", HISTORY)

    async def second() -> int:
        await sessions.compact("s", budget=1_000)
        tokens = (await sessions.context("s")).tokens
        await sessions.close()
        return tokens

    asyncio.run(first())
    assert asyncio.run(second()) < 1_000


@pytest.mark.parametrize("store", ["jsonl", "sqlite"])
def test_two_event_loops_share_a_store_at_once(tmp_path: Path, store: str) -> None:
    shared = open_store(store, tmp_path)

    async def work(name: str) -> int:
        sessions = SessionService(shared)
        await sessions.create(id=name)
        for message in HISTORY:
            await sessions.append(name, message)
        await sessions.compact(name, budget=1_000)
        return len(await sessions.events(name))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda name: asyncio.run(work(name)), ("a", "b"))) == [41, 41]
    asyncio.run(shared.close())


def test_a_blocking_call_inside_a_model_function_is_an_error_and_no_hang() -> None:
    problems: list[BaseException] = []

    async def summarize(text: str) -> str:
        try:
            compact(HISTORY, budget=1_000, summarizer=summarize)
        except HoldfastError as problem:
            problems.append(problem)
        return "The summary."

    done = threading.Thread(target=lambda: compact(HISTORY, budget=1_000, summarizer=summarize), daemon=True)
    done.start()
    done.join(HANG_SECONDS)
    assert not done.is_alive() and "use SessionService or acompact()" in str(problems[0])
