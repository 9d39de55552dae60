"""Opaque compaction items: encrypted and signed by the gateway, kept by clients, readable at every replica."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ...errors import InvalidInput
from ...messages import Json, to_json
from ...messages.json_text import decodable
from ..protocols import ITEM_PREFIX

KEY_VARIABLE = "HOLDFAST_ITEM_KEY"
_MIN_KEY = 32
_NONCE = 12
_MAX_ITEM = 256 * 2**20
_MESSAGE_DIGEST = 8


@decodable
class SealedItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Content of an item: the compacted messages themselves, and the session that continues them if it is there."""

    format: str
    messages: bytes
    """JSON list of the compacted messages, without the system messages that the client's list began with."""
    session: str = ""
    """Session whose context these messages are; empty for a list that was compacted without one."""
    last: str = ""
    """Id of the newest message of the session that was compacted."""
    checkpoint: str = ""
    """Id of the compaction's event."""
    replaced: tuple[bytes, ...] = ()
    """Digests of the user and system messages that the item replaces: clients send some of them again."""
    summary: bytes = b""
    """Digest of the text that is sent beside the item."""


class DamagedItem(Exception):
    """An item of ours was changed, is another owner's, or was sealed with a key that is no longer used."""


class ItemSealer:
    """Seals and opens items: the first key encrypts, every key decrypts."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """Without keys, a random one is used: items are then valid until the gateway stops."""
        self._ciphers = [AESGCM(_derive(key)) for key in keys or (new_item_key(),)]

    def seal(self, item: SealedItem, owner: str) -> str:
        """Returns an item as text that only the same owner can send back."""
        plain = zstandard.ZstdCompressor(level=9).compress(msgspec.msgpack.encode(item))
        nonce = os.urandom(_NONCE)
        sealed = nonce + self._ciphers[0].encrypt(nonce, plain, _bound_to(owner))
        return _encode(sealed)

    def open(self, text: str, owner: str) -> SealedItem:
        """Returns the content of an item; raises DamagedItem if it is not exactly what was sealed for this owner."""
        encoded = text.removeprefix(ITEM_PREFIX)
        try:
            sealed = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise DamagedItem from None
        if _encode(sealed) != text:  # one item has one spelling
            raise DamagedItem
        for cipher in self._ciphers:
            try:
                plain = cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _bound_to(owner))
            except (InvalidTag, ValueError):
                continue
            packed = zstandard.ZstdDecompressor().decompress(plain, max_output_size=_MAX_ITEM)
            return msgspec.msgpack.decode(packed, type=SealedItem)
        raise DamagedItem


def new_item_key() -> str:
    """Returns a random key of items."""
    return secrets.token_urlsafe(_MIN_KEY)


def is_sealed(text: object) -> bool:
    """Whether a text claims to be an item of the gateway."""
    return isinstance(text, str) and text.startswith(ITEM_PREFIX)


def _encode(sealed: bytes) -> str:
    return ITEM_PREFIX + base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def _bound_to(owner: str) -> bytes:
    return ITEM_PREFIX.encode() + owner.encode()


def _derive(key: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=32, person=b"holdfast-item").digest()


def message_digest(message: Json) -> bytes:
    """Returns a digest of role and content: equal for a message with an id or status and one without."""
    content = message.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    text = to_json([message.get("role"), parts])
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_MESSAGE_DIGEST).digest()


def text_digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


# -- keys ------------------------------------------------------------------------------------------------------------


def load_item_keys(path: str | Path, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Returns the keys of the environment, else those of a file, which is made with a new key if there is none.

    Several keys, separated by spaces or lines, are a rotation: the first encrypts, all decrypt.
    """
    if given := environ.get(KEY_VARIABLE, "").split():
        return _checked(given, KEY_VARIABLE)
    file = Path(path)
    try:
        if not file.exists():
            _create_key_file(file)
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "not text"
        raise InvalidInput(
            f"The file {file} with the key of compaction items cannot be used ({reason}): name another with "
            f"--item-key-file, or set {KEY_VARIABLE}."
        ) from None
    return _checked([word for line in lines for word in line.partition("#")[0].split()], str(file))


def _checked(keys: Sequence[str], where: str) -> tuple[str, ...]:
    if not keys or any(len(key) < _MIN_KEY for key in keys):
        raise InvalidInput(f"{where} needs a random key of at least {_MIN_KEY} characters in each line.")
    return tuple(keys)


def _create_key_file(file: Path) -> None:
    """Creates a key file that only its user may read; one that another process creates first is kept."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with os.fdopen(handle, "w") as out:
            out.write(f"{new_item_key()}\n")
            out.flush()
            os.fsync(out.fileno())
        os.link(temporary, file)
    except FileExistsError:
        return
    finally:
        os.unlink(temporary)
