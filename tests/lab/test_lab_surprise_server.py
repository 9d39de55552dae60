"""Surprise by a model on a completions server."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from completion_server import bigram_logprobs, completion_server, tokenize
from holdfast.errors import InvalidInput
from holdfast.lab.results import LabSettings
from holdfast.lab.run import run_lab
from holdfast.lab.surprise import HORIZONS, ContinuationPart
from holdfast.lab.surprise_server import CompletionServer
from holdfast.lab.trial import measure_session
from lab_story import write_session

QUICK = LabSettings(budgets=(4_000,), rounds=(), cuts=1, half="all", contestants=("tail w", "head"), surprise_by="tiny")
TEXT = "The mooring of berth nine needs a longer chain before the spring tide."
OTHER = "Quarterly figures: 48113 units sold in region Q7; margins fell by 3 percent."
PASSAGES = [
    ContinuationPart(0, False, OTHER),
    ContinuationPart(1, True, TEXT),
    ContinuationPart(1, False, "ok"),
    ContinuationPart(2, True, OTHER),
]


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("holdfast.lab.surprise_server.PAUSES", (0.0, 0.0))


def expected(context: str) -> dict[str, float]:
    """Nats a token, computed from the tokens of the joined texts."""
    pieces = [f"{text}\n" for text in (context, *(passage.text for passage in PASSAGES))]
    logprobs = bigram_logprobs(tokenize("".join(pieces)))
    sizes = [len(tokenize(piece)) for piece in pieces]
    first, second = (logprobs[sum(sizes[:n]) : sum(sizes[: n + 1])] for n in (2, 4))
    one, both = (-sum(value or 0 for value in values) / len(values) for values in (first, first + second))
    return {"surprise_1": one, "surprise_3": both, "surprise_8": both}


@pytest.mark.parametrize("like", ["vllm", "no offsets", "sglang", "special token", "no usage"])
def test_surprise_is_nats_a_token(like: str) -> None:
    with completion_server(like) as (_, url):
        found = CompletionServer("tiny", url).surprise(TEXT, PASSAGES)
    assert found == pytest.approx(expected(TEXT))


def test_split_characters_do_not_shift_the_next_steps() -> None:
    """A character of three tokens counts as three; positions are counted from the end."""
    with completion_server("split characters") as (_, url):
        found = CompletionServer("tiny", url).surprise("☃" * 50 + "\n" + TEXT, PASSAGES)
    assert found == pytest.approx(expected("☃\n" + TEXT), rel=0.01)


def test_known_text_surprises_less() -> None:
    with completion_server() as (_, url):
        known, unknown = (
            CompletionServer("tiny", url).surprise(context, [ContinuationPart(1, True, TEXT)])["surprise_1"]
            for context in (TEXT, OTHER)
        )
    assert known < 2 < 4 < unknown


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_request_asks_for_echo_and_logprobs(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")
    with completion_server() as (api, url):
        CompletionServer("tiny", url + path).surprise("before\ud800", [ContinuationPart(1, True, "after")])
    assert api.requests == [
        {"model": "tiny", "prompt": "before?\nafter\n", "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
    ]
    assert api.keys == ["Bearer sk-secret-123"]


@pytest.mark.parametrize(
    ("like", "words"),
    [
        ("no echo", "does not echo the prompt: use another, such as vLLM"),
        ("llama.cpp", "does not echo the prompt (Only no echo is supported): use another"),
        ("no logprobs", "returns no log-probabilities: choose a server and a model that do"),
        ("echo without logprobs", "returns no log-probabilities of the prompt: choose a server and a model that do"),
        ("unknown model", "refuses (404: The model `tiny` does not exist.): check --surprise-by and --surprise-url"),
        ("web page", "does not answer as a completions server"),
    ],
)
def test_unusable_server_stops_the_run_at_once(like: str, words: str, tmp_path: Path) -> None:
    file = write_session(tmp_path / "one.json", 110)
    with completion_server(like) as (api, url), pytest.raises(InvalidInput) as caught:
        run_lab([file], msgspec.structs.replace(QUICK, surprise_url=url))
    assert words in str(caught.value) and url in str(caught.value)
    assert len(api.requests) == 1


def test_unreachable_server_stops_the_run() -> None:
    with completion_server() as (_, url):
        pass
    with pytest.raises(InvalidInput, match=r"cannot be reached .*: start it, or name another with --surprise-url"):
        run_lab([], msgspec.structs.replace(QUICK, surprise_url=url))


def test_too_long_prompt_names_the_option(tmp_path: Path) -> None:
    """The short prompt of the check fits; the error of a worker process stops the run."""
    files = [write_session(tmp_path / f"{n}.json", 110 + n) for n in range(2)]
    with completion_server() as (api, url):
        api.most = 500
        with pytest.raises(InvalidInput, match=r"a context of 500 tokens that a prompt of [\d,]+ characters") as caught:
            run_lab(files, msgspec.structs.replace(QUICK, surprise_url=url), jobs=2)
    assert "give a smaller --budget" in str(caught.value)


def test_busy_server_is_asked_again() -> None:
    with completion_server() as (api, url):
        api.busy = 2
        assert CompletionServer("tiny", url).surprise(TEXT, PASSAGES)
        api.busy = 3
        with pytest.raises(InvalidInput, match="503: loading the model"):
            CompletionServer("tiny", url).surprise(TEXT, PASSAGES)


def test_rows_have_surprise_of_the_model(tmp_path: Path) -> None:
    files = [write_session(tmp_path / f"{n}.json", 110 + n) for n in range(2)]
    with completion_server() as (api, url):
        found = run_lab(files, msgspec.structs.replace(QUICK, surprise_url=url))
    rows = [row for session in found.sessions for row in session.rows]
    assert len(rows) == 4 and all(set(row.surprise) == set(HORIZONS) for row in rows)
    assert len(api.requests) == 5, "one for the check, then one for each context"


def test_equal_contexts_are_asked_once(tmp_path: Path) -> None:
    """With room for the whole history both contestants keep all of it, in one text."""
    file = write_session(tmp_path / "one.json", 110)
    with completion_server() as (api, url):
        settings = msgspec.structs.replace(QUICK, surprise_url=url, budgets=(200_000, 400_000), contestants=("mask",))
        measure_session(file, settings)
        prompts = [request["prompt"] for request in api.requests]
    assert len(prompts) == len(set(prompts)) < 4


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/x", "http://", "http://me:secret@host", "http://h/?k=1"])
def test_server_address_is_checked(url: str) -> None:
    with pytest.raises(InvalidInput, match="--surprise-url takes") as caught:
        CompletionServer("tiny", url)
    assert "secret" not in str(caught.value)
