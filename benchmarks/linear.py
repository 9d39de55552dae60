"""Adversarial texts: twice the text takes about twice the time, in everything that reads text of others."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from benchmarks.hostile import session
from benchmarks.measure import Options, Ratio, fastest
from holdfast import compact
from holdfast.errors import HoldfastError
from holdfast.io.secrets import scrub
from holdfast.ledger import PAGE_OPENING
from holdfast.stores.search import Query, make_snippet, normalize
from holdfast.summaries.structured_parse import parse_sections
from holdfast.transcripts.records import parse_json_values
from holdfast.transcripts.transcript import TranscriptWarnings

MEGA = 1_000_000
AIM = 2.5
UNITS = (
    *("a", "a ", "A", "aB", "a_", "a.b", "0", "0 ", "-", " ", "\t", "\n", "\r\n", "…", "ß", "e\u0301", "字", "\u200b"),
    *("# ", "#", "## A\n", "**a", "__", "- ", "> ", "1. ", "`", "```\n", "[1] ", "| ", "*a ", "~", "%41", "<a>", "</"),
    *("eyJ-", "://a:", "@", "=", "password=", "sk-", "/a", "/a/b.py ", "\\", '"', "'", "{", "[", "(", '{"a":', "a,b;"),
    *("$(", "&& ", "x=1;", "--a ", "cat <<E\n", "sed -n 1,2p a;", "+++ b/x\n", "@@ -1 +1 @@\n", "[cut: 1]\n"),
    *("error: ", 'File "x", line 1\n', "Traceback (most recent call last):\n", "must not ", "I will ", "http://a/ "),
)
Reader = Callable[[str], object]


def run(options: Options) -> Iterator[Ratio]:
    """The worst ratio of each reader over all texts, from 1 to 2 and from 2 to 4 MB."""
    logging.disable(logging.ERROR)
    size = MEGA // 20 if options.quick else MEGA
    for name, read in READERS.items():
        worst, of = 0.0, ""
        for unit in UNITS:
            for ratio in _ratios(read, unit, size):
                worst, of = max((worst, of), (ratio, repr(unit)))
        yield Ratio(f"linear: {name}", f"twice the text / once; worst of {len(UNITS)} texts: {of}", worst, AIM)
    logging.disable(logging.NOTSET)


def _ratios(read: Reader, unit: str, size: int) -> list[float]:
    texts = [unit * (times * size // len(unit)) for times in (1, 2, 4)]
    one, two, four = fastest([partial(read, text) for text in texts], 2)
    noise = 0.002
    return [(two + noise) / (one + noise), (four + noise) / (two + noise)]


def _compacted(*messages: tuple[str, str]) -> object:
    return compact([{"role": role, "content": text} for role, text in messages], budget=2_000, estimator="chars/4")


def _json_values(text: str) -> None:
    with suppress(HoldfastError):
        parse_json_values(text.encode(), "-", TranscriptWarnings())


END = ("user", "And now?")
READERS: dict[str, Reader] = {
    "scrub": scrub,
    "search": lambda text: Query("a b").score(normalize(text)),
    "snippet": lambda text: make_snippet(text, ("strasse", "none")),
    "summary's sections": parse_sections,
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
