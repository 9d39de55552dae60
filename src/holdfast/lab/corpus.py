"""Sessions to measure on: any folder of transcripts, parted into a half to learn from and one to report on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from ..context.events import digest_of
from ..errors import InvalidInput
from ..messages import Message, decode_all
from ..transcripts import Transcript
from .needs import HORIZON
from .text import message_texts

_ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz")


def session_files(*folders: str | Path) -> list[Path]:
    """Every session file in these files and folders, in a fixed order."""
    found: list[Path] = []
    for folder in map(Path, folders):
        if not folder.exists():
            raise InvalidInput(f"The file or folder {folder} does not exist: name one with sessions.")
        inside: Iterable[Path] = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
        found += [path for path in inside if path.is_file() and path.name.endswith(_ENDINGS)]
    if not found:
        named = ", ".join(map(str, folders))
        raise InvalidInput(f"No session files in {named}: sessions are .jsonl or .json files, gzip or not.")
    return found


def sample_files(files: list[Path], most: int) -> list[Path]:
    """Deterministic sample of at most `most` files, in their original order."""
    chosen = sorted(files, key=lambda file: (_sha256(file.name), _sha256(str(file))))[:most]
    among = set(chosen)
    return [file for file in files if file in among]


def session_name(transcript: Transcript, file: Path) -> str:
    """The session's id; for a plain file, its name and a digest of its messages."""
    return transcript.id or f"{file.name}-{digest_of(transcript.messages)[:12]}"


def in_half(session: str, half: str) -> bool:
    return half == "all" or is_for_learning(session) == (half == "learn")


def is_for_learning(session: str) -> bool:
    """Splits by the hash of the id: learned weights come only from these sessions."""
    return _sha256(session)[0] & 1 == 0


def _sha256(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


MIN_TOKENS = 15_000
"""Minimum history before a cut: shorter ones say little about compaction."""
MIN_CALLS = 10
DEFAULT_CUTS = 7
"""Default number of cuts per session."""


class Cut(msgspec.Struct, frozen=True):
    """A session split in two: the history to compact, and the messages that show what was needed."""

    format: str
    before: list[Message]
    """Without system messages, which are never compacted."""
    after: list[Message]
    summary: str | None = None
    """The tool's own summary at this place, if it wrote one."""


def even_fractions(count: int) -> tuple[float, ...]:
    """Evenly spaced fractions between 0 and 1, exclusive."""
    return tuple(place / (count + 1) for place in range(1, count + 1))


def iter_cuts(transcript: Transcript, places: tuple[float, ...] = even_fractions(DEFAULT_CUTS)) -> Iterator[Cut]:
    """Cuts at fractions of the history before the first compaction, if calls follow; 1.0 is its end."""
    messages, format = decode_all(transcript.messages, transcript.format)
    compactions = transcript.compactions
    visible = compactions[0].after if compactions else len(messages)
    summaries = {item.after for item in compactions if item.summary}
    done: set[int] = set()
    for place in places:
        at = _next_reply(messages, int(visible * place), visible)
        before = [message for message in messages[:at] if message.role != "system"]
        rest = [m for index, m in enumerate(messages[at:], at) if index not in summaries]
        if at in done or sum(len(m.calls) for m in rest) < MIN_CALLS or _estimate_tokens(before) < MIN_TOKENS:
            continue
        done.add(at)
        real = compactions[0].summary if compactions and at == visible else None
        yield Cut(format, before, _until_horizon(rest), real)


def _next_reply(messages: list[Message], place: int, visible: int) -> int:
    """Index of the next reply: the next model call."""
    while place < visible and messages[place].role != "assistant":
        place += 1
    return place


def _until_horizon(rest: list[Message]) -> list[Message]:
    calls = 0
    for index, message in enumerate(rest):
        calls += len(message.calls)
        if calls >= HORIZON:
            return rest[: index + 1]
    return rest


def _estimate_tokens(messages: list[Message]) -> int:
    return sum(len(text) for m in messages for text in message_texts(m)) // 4
