"""Reads what passes through: token usage of a reply, and whether the provider refused a prompt as too long."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import zstandard

from ..errors import InvalidInput
from ..io.http_messages import BodyTooLarge
from ..messages import Json
from ..models.calls import Failure
from ..models.failures import classify
from ..models.overflow import error_message
from ..tokens import Usage, read_usage
from ..tokens.window import listed_windows
from .protocols import OLLAMA_USAGE, WireProtocol

_MAX_READ = 8 * 2**20
"""Bytes of a reply that are searched for its usage."""
_Decode = Callable[[bytes], bytes]


def decoder_for(encoding: str) -> _Decode | None:
    """Returns an incremental decoder of a content encoding; None for an unknown one."""
    match encoding.strip().lower():
        case "" | "identity":
            return lambda chunk: chunk
        case "gzip" | "deflate" | "x-gzip":
            return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress
    return None


def decode_body(raw: bytes, encoding: str, limit: int) -> bytes:
    """Returns a decoded body; raises InvalidInput if it is malformed, BodyTooLarge if it is longer than `limit`."""
    try:
        match encoding.strip().lower():
            case "" | "identity":
                return raw
            case "gzip" | "x-gzip" | "deflate":
                unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
                decoded = unpacker.decompress(raw, limit + 1)
            case "zstd":
                with zstandard.ZstdDecompressor().stream_reader(raw) as reader:
                    decoded = reader.read(limit + 1)
            case _:
                raise InvalidInput(f"The content encoding {encoding!r} is unknown: send gzip, zstd or none.")
    except (zlib.error, zstandard.ZstdError) as problem:
        raise InvalidInput(f"The body is not {encoding}: {problem}") from None
    if len(decoded) > limit:
        raise BodyTooLarge(f"The unpacked body is larger than {limit:,} bytes.")
    return decoded


class ReplyReader:
    """Reads usage from the bytes of a reply as they pass, without holding them back."""

    def __init__(
        self,
        protocol: WireProtocol,
        content_type: str,
        encoding: str,
        on_reply: Callable[[Json], object] = lambda reply: None,
    ) -> None:
        """`on_reply` gets whole replies, or what a stream has in their place."""
        self.usage: Usage | None = None
        self._on_reply = on_reply
        self._protocol = protocol
        self._field = f'"{protocol.usage}"'.encode()
        self._streams = "text/event-stream" in content_type or "ndjson" in content_type
        self._decode = decoder_for(encoding)
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes of the reply."""
        if self._decode is None:
            return
        try:
            chunk = self._decode(chunk)
        except (zlib.error, zstandard.ZstdError):
            self._decode = None
            return
        if not self._streams:
            self._rest += chunk
            if len(self._rest) > _MAX_READ:
                self._decode, self._rest = None, b""
            return
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            self._rest = (self._rest + chunk)[-_MAX_READ:]
            return
        if self._field in head or self._field in self._rest:
            for line in (self._rest + head).splitlines():
                if self._field in line:
                    self._read(line.removeprefix(b"data:"))
        self._rest = tail

    def finish(self) -> None:
        """Reads a reply that is no stream, when it is complete."""
        if not self._streams and self._field in self._rest:
            self._read(self._rest)
        self._rest = b""

    def _read(self, text: bytes) -> None:
        try:
            reply = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return
        if self._protocol.usage == OLLAMA_USAGE and isinstance(reply, dict):
            reply = {
                OLLAMA_USAGE: {"input_tokens": reply.get(OLLAMA_USAGE), "output_tokens": reply.get("eval_count", 0)}
            }
        for layer in (reply, *(_field_of(reply, name) for name in ("response", "message"))):
            if isinstance(layer, dict) and "output" in layer:
                self._on_reply(layer)
            if isinstance(reported := _field_of(layer, self._protocol.usage), dict):
                try:
                    found = read_usage(reported)
                except InvalidInput:
                    continue
                self.usage = found if self.usage is None else _merge(self.usage, found)


class ModelListReader:
    """Reads the windows of models from the bytes of a provider's list as they pass."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._read = b""

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes of the list; of one that is too long, nothing is read."""
        self._read = (self._read + chunk)[: _MAX_READ + 1]

    def windows(self) -> dict[str, int]:
        """Returns the windows by model; empty if it was no list."""
        try:
            return listed_windows(msgspec.json.decode(decode_body(self._read, self._encoding, _MAX_READ)))
        except (InvalidInput, msgspec.DecodeError):
            return {}


def _field_of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _merge(first: Usage, later: Usage) -> Usage:
    """Returns the larger counts: a stream reports the input at its start and the output at its end."""
    names = Usage.__struct_fields__
    return Usage(**{name: max(getattr(first, name), getattr(later, name)) for name in names})


def refused_as_too_long(status: int, body: bytes, encoding: str) -> Failure | None:
    """Returns the failure if an error reply means that the prompt was too long."""
    if (parsed := _read_error(body, encoding)) is None:
        return None
    failure = classify(status, _message_in(parsed), parsed)
    return failure if failure.kind == "overflow" else None


def error_text(body: bytes, encoding: str) -> str:
    """Returns what an error reply says; empty if it cannot be read."""
    return "" if (parsed := _read_error(body, encoding)) is None else _message_in(parsed)


def _message_in(parsed: Any) -> str:
    return error_message(parsed) if isinstance(parsed, dict) else str(parsed)


def _read_error(body: bytes, encoding: str) -> Any:
    """Returns an error reply as JSON, else as text; None if it cannot be unpacked."""
    decode = decoder_for(encoding)
    try:
        text = body if decode is None else decode(body)
    except (zlib.error, zstandard.ZstdError):
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text.decode(errors="replace")[:_MAX_MESSAGE]


_MAX_MESSAGE = 4_000


def read_event(block: bytes) -> Any:
    """Returns the data of an event of a stream, None if it has none or is no JSON."""
    data = b"\n".join(line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:"))
    try:
        return msgspec.json.decode(data) if data else None
    except msgspec.DecodeError:
        return None


class StreamOpening:
    """The first events of a stream, held back until it is clear that the provider accepted the prompt."""

    def __init__(self, protocol: WireProtocol, encoding: str) -> None:
        self._quiet = protocol.quiet_events
        self._decode = decoder_for(encoding)
        self._text = b""

    def feed(self, chunk: bytes) -> Failure | bool:
        """Returns a failure, True if the stream has begun well, or False if that is not clear yet."""
        if self._decode is None:
            return True
        try:
            self._text += self._decode(chunk)
        except (zlib.error, zstandard.ZstdError):
            return True
        if len(self._text) > _MAX_OPENING:
            return True
        return next((result for event in self._events() if (result := self._judge(event)) is not False), False)

    def _events(self) -> Iterator[Any]:
        complete, _, _ = self._text.replace(b"\r\n", b"\n").rpartition(b"\n\n")
        return (read_event(block) for block in complete.split(b"\n\n") if b"data:" in block)

    def _judge(self, event: Any) -> Failure | bool:
        kind = _field_of(event, "type")
        if kind in self._quiet:
            return False
        error = _field_of(_field_of(event, "response"), "error") or _field_of(event, "error")
        if kind in ("error", "response.failed") or error:
            failure = classify(None, error_message(event), error or event)
            return failure if failure.kind == "overflow" else True
        return True


_MAX_OPENING = 65_536
