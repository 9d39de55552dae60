"""Adversarial texts: twice the text takes about twice the time, in everything that reads text of others."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from heapq import nlargest
from typing import NamedTuple

import msgspec

from benchmarks.hostile import session
from benchmarks.measure import Options, Ratio, fastest
from holdfast import compact
from holdfast.chat.terminal.markdown import render_markdown
from holdfast.context.events import Event, EventKind
from holdfast.errors import HoldfastError
from holdfast.io.secrets import scrub
from holdfast.ledger import PAGE_OPENING
from holdfast.messages import Json
from holdfast.stores.base import ANYWHERE
from holdfast.stores.search import EventFilter, Query, make_snippet, normalize
from holdfast.summaries.structured_parse import parse_sections
from holdfast.transcripts.files import _read_values as read_values
from holdfast.transcripts.records import parse_json_values
from holdfast.transcripts.transcript import TranscriptWarnings

MEGA = 1_000_000
PIECE = 200
"""Characters of each record of a session."""
AIM = 2.5
WORST = 4
"""Number of the slowest and of the steepest texts that are measured at full length."""
UNITS = (
    *("a", "a ", "A", "aB", "a_", "a.b", "0", "0 ", "-", " ", "\t", "\n", "\r\n", "…", "ß", "e\u0301", "字", "\u200b"),
    *("# ", "#", "## A\n", "**a", "__", "- ", "> ", "1. ", "`", "```\n", "[1] ", "| ", "*a ", "~", "%41", "<a>", "</"),
    *("eyJ-", "://a:", "@", "=", "password=", "sk-", "/a", "/a/b.py ", "\\", '"', "'", "{", "[", "(", '{"a":', "a,b;"),
    *("$(", "&& ", "x=1;", "--a ", "cat <<E\n", "sed -n 1,2p a;", "+++ b/x\n", "@@ -1 +1 @@\n", "[cut: 1]\n"),
    *("error: ", 'File "x", line 1\n', "Traceback (most recent call last):\n", "must not ", "I will ", "http://a/ "),
)
Reader = Callable[[str], object]


def run(options: Options) -> Iterator[Ratio]:
    """The worst ratio of each reader, from 1 to 4 MB of the texts that are worst at a twentieth of that."""
    logging.disable(logging.ERROR)
    for name, read in READERS.items():
        found = {unit: _double(read, unit, MEGA // 20) for unit in UNITS}
        if not options.quick:
            slowest = nlargest(WORST, found, key=lambda unit: found[unit].seconds)
            steepest = nlargest(WORST, found, key=lambda unit: found[unit].ratio)
            found = {unit: _double(read, unit, MEGA) for unit in dict.fromkeys([*slowest, *steepest])}
        worst = max(found, key=lambda unit: found[unit].ratio)
        about = f"twice the text / once; worst of {len(UNITS)} texts: {worst!r}"
        yield Ratio(f"linear: {name}", about, found[worst].ratio, AIM)
    logging.disable(logging.NOTSET)


class Doubled(NamedTuple):
    seconds: float
    """Time of the longest text."""
    ratio: float
    """The larger one of two, each between a text and one twice as long."""


def _double(read: Reader, unit: str, size: int) -> Doubled:
    texts = [unit * (times * size // len(unit)) for times in (1, 2, 4)]
    one, two, four = fastest([partial(read, text) for text in texts], 3)
    noise = 0.002
    return Doubled(four, max((two + noise) / (one + noise), (four + noise) / (two + noise)))


def _compacted(*messages: tuple[str, str]) -> object:
    return compact([{"role": role, "content": text} for role, text in messages], budget=2_000, estimator="chars/4")


def _json_values(text: str) -> None:
    with suppress(HoldfastError):
        parse_json_values(text.encode(), "-", TranscriptWarnings())


def _folded_hit(text: str) -> object:
    """A hit that is found only by folding, at the end of the text."""
    event = Event("e1", EventKind.MESSAGE, "", {"message": {"role": "user", "content": f"{text} \uff33traße"}})
    found = EventFilter(Query("strasse"), ANYWHERE, lambda *_: ())
    match = found.match("s", event, 0)
    return None if match is None else found.to_hit(match)


def _transcript(record: Callable[[int, str], Json], first: Json | None, text: str) -> object:
    """A session of another tool whose records have this text, a piece each, one after the other."""
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    records = [*([first] if first else []), *(record(number, piece) for number, piece in enumerate(pieces, 1))]
    data = b"\n".join(map(msgspec.json.encode, records))
    with suppress(HoldfastError):
        return read_values(parse_json_values(data, "-", TranscriptWarnings()), "-", TranscriptWarnings())
    return None


def _claude_code(number: int, text: str) -> Json:
    role = "user" if number % 2 else "assistant"
    about = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number > 1 else None, "sessionId": "s"}
    return {"type": role, **about, "message": {"id": f"m{number}", "role": role, "content": text}}


def _codex(number: int, text: str) -> Json:
    role, kind = ("user", "input_text") if number % 2 else ("assistant", "output_text")
    return {
        "type": "response_item",
        "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text}]},
    }


def _pi(number: int, text: str) -> Json:
    message = {"role": "user" if number % 2 else "assistant", "content": [{"type": "text", "text": text}]}
    about = {"type": "message", "id": str(number), "parentId": str(number - 1) if number > 1 else None}
    return {**about, "timestamp": "2026-01-01T00:00:00Z", "message": message}


def _opencode(text: str) -> object:
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    messages = [
        {
            "info": {"id": f"m{n:08}", "role": "user" if n % 2 else "assistant", "time": {"created": n}},
            "parts": [{"id": f"p{n:08}", "type": "text", "text": piece}],
        }
        for n, piece in enumerate(pieces, 1)
    ]
    session = {"info": {"id": "ses_1", "directory": "/", "time": {"created": 0}}, "messages": messages}
    return read_values([session], "-", TranscriptWarnings())


def _plain(number: int, text: str) -> Json:
    return {"role": "user" if number % 2 else "assistant", "content": text}


END = ("user", "And now?")
READERS: dict[str, Reader] = {
    "scrub": scrub,
    "search": lambda text: Query("a b").score(normalize(text)),
    "snippet": lambda text: make_snippet(text, ("strasse", "none")),
    "search, a hit by folding": _folded_hit,
    "summary's sections": parse_sections,
    "Claude Code": partial(_transcript, _claude_code, None),
    "Codex": partial(_transcript, _codex, {"type": "session_meta", "payload": {"id": "s"}}),
    "pi": partial(_transcript, _pi, {"type": "session", "version": 3, "id": "s", "cwd": "/"}),
    "OpenCode": _opencode,
    "plain messages": partial(_transcript, _plain, None),
    "Markdown": lambda text: render_markdown(text[: len(text) // 50], 80),
    "JSON values": _json_values,
    "tool result": lambda text: compact(session(text), budget=2_000, estimator="chars/4"),
    "command": lambda text: compact(session("ok", json.dumps({"command": text})), budget=2_000, estimator="chars/4"),
    "user message": lambda text: _compacted(
        ("user", "Go."), ("assistant", "ok"), ("user", text), ("assistant", "?"), END
    ),
    "reply": lambda text: _compacted(("user", "Go."), ("assistant", text), END),
    "page": lambda text: _compacted(
        ("user", f"{PAGE_OPENING}3 messages are gone.]\n\n{text}"), ("assistant", "ok"), END
    ),
}
