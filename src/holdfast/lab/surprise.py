"""Surprise: how badly a context predicts what the agent wrote in its next steps, in bits a character.

A compressor with an adaptive model of the text (PPMd var. H) reads the context and then encodes what came after the
cut. The output's growth while it encodes the agent's own words and calls is their surprise: text that the context
holds, or that resembles it, costs little. What lies between (tool results, user messages) is read too, so that every
contestant has seen it, but is not counted.

All texts have one form, without roles, keys or JSON, and the same piece of another session precedes every context:
no contestant gains by its form, or by showing what a call looks like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ..errors import HoldfastError
from ..messages import Message, decode_all
from ..transcripts import read_transcript
from ..transcripts.examples import example_path
from .corpus import session_name
from .text import plain_text

HORIZONS = {"surprise_1": 1, "surprise_3": 3, "surprise_8": 8}
"""Number of steps that each quantity counts."""
MESSAGE_CHARACTERS = 1_500
RESULT_CHARACTERS = 600
COUNTED_CHARACTERS = 6_000
"""Characters of the agent's own text that are counted at one cut."""
PIECE_CHARACTERS = 3_000
"""Characters of another session that precede every context."""
ORDER = 16
MEMORY = 64 << 20
_EXAMPLES = ("harbor", "support")
"""Two, since one of them may be the session itself."""
Surprise = dict[str, float]
"""Surprise by quantity; empty if the agent wrote nothing after the cut."""


class ContinuationPart(NamedTuple):
    """Text of one message after the cut; only the agent's own is counted."""

    step: int
    counted: bool
    text: str


Predictor = Callable[[str, Sequence[ContinuationPart]], Surprise]
"""Surprise of the passages after a context."""


def next_passages(after: Sequence[Message]) -> list[ContinuationPart]:
    """The agent's next steps and what lies between; a step is a run of consecutive assistant messages."""
    found: list[ContinuationPart] = []
    step = counted = 0
    last = ""
    for message in after:
        own = message.role == "assistant"
        step += own and last != "assistant"
        if step > max(HORIZONS.values()) or counted == COUNTED_CHARACTERS:
            break
        limit = min(MESSAGE_CHARACTERS, COUNTED_CHARACTERS - counted) if own else MESSAGE_CHARACTERS
        if text := plain_text(message, None if own else RESULT_CHARACTERS)[:limit]:
            found.append(ContinuationPart(step, own, text))
            counted += own and len(text)
        last = message.role
    return found


def mean_by_horizon(costs: Iterable[tuple[int, float, int]]) -> Surprise:
    """Cost per character or token within each horizon, from the step, cost and length of each counted passage."""
    sums = {key: [0.0, 0] for key in HORIZONS}
    for step, cost, length in costs:
        for key, steps in HORIZONS.items():
            if step <= steps:
                sums[key][0] += cost
                sums[key][1] += length
    return {key: cost / length for key, (cost, length) in sums.items() if length}


def ppmd_surprise(context: str, passages: Sequence[ContinuationPart]) -> Surprise:
    """Bits a character. The output grows by whole bytes, so a short passage alone is inexact by a few bits."""
    from pyppmd import Ppmd7Encoder

    encoder = Ppmd7Encoder(ORDER, MEMORY)

    def bits(text: str) -> int:
        return 8 * len(encoder.encode(f"{text}\n".encode("utf-8", "replace")))

    bits(context)
    read = [(passage, bits(passage.text)) for passage in passages]
    return mean_by_horizon((one.step, cost, len(one.text) + 1) for one, cost in read if one.counted)


def choose_predictor(model: str | None = None, url: str = "") -> Predictor | None:
    """The model on this server, else PPMd; None if that is not installed."""
    if model is not None:
        from .surprise_server import CompletionServer

        return CompletionServer(model, url).surprise
    return ppmd_surprise if find_spec("pyppmd") else None


class SessionPiece(NamedTuple):
    """The end of a session's first half, as plain text."""

    session: str
    kind: str
    text: str


def piece_of_another(session: str, kind: str, others: Sequence[Path]) -> str:
    """A piece of the first other session of this kind, else of another kind, else of a bundled example."""

    def pieces(files: Iterable[Path]) -> Iterator[SessionPiece]:
        return (piece for file in files if (piece := session_piece(file)) and piece.session != session)

    same = (piece for piece in pieces(others) if piece.kind == kind)
    piece = next(same, None) or next(pieces([*others, *map(example_path, _EXAMPLES)]))
    return piece.text


@lru_cache(None)
def session_piece(file: Path) -> SessionPiece | None:
    """The piece of a session file, read once per process; None if it is no session or too short."""
    try:
        transcript = read_transcript(file)
        messages, _ = decode_all(transcript.messages, transcript.format)
    except HoldfastError:
        return None
    text = "\n".join(reversed(list(_last_texts(messages[: len(messages) // 2]))))[-PIECE_CHARACTERS:]
    return (
        SessionPiece(session_name(transcript, file), transcript.kind, text) if len(text) == PIECE_CHARACTERS else None
    )


def _last_texts(messages: Sequence[Message]) -> Iterator[str]:
    """Texts of the last messages, newest first, until they fill a piece."""
    length = 0
    for message in reversed(messages):
        if message.role != "system" and (text := plain_text(message)):
            yield text
            length += len(text) + 1
        if length > PIECE_CHARACTERS:
            return
