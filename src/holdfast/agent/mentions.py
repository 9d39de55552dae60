"""Files that the user names as `@path` in a message: their content, attached to the message."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Collection, Iterator
from pathlib import Path

import anyio.to_thread
import msgspec

from ..errors import InvalidInput
from ..messages import Media
from .tools import WorkingFolder
from .tools.files import ListFiles, ReadFile, list_folder, read_lines

_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
_PUNCTUATION = ",.;:!?)]}'\""
"""May follow a path at the end of a clause."""
_MAX_ATTACHED_CHARACTERS = 100_000
"""Of all text files attached to one message; each is also bounded as by `read_file`."""
_MAX_FILES = 20
MAX_IMAGE_BYTES = 3_750_000
"""Providers accept 5 MB of base64."""
_IMAGE_SIGNATURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
ATTACHMENT_HEADING = "[Files named in the user's next message]"


class Attachments(msgspec.Struct, frozen=True):
    """What the mentions of one message add to it."""

    text: str = ""
    """Content of text files, for a message of its own before the user's."""
    images: tuple[Media, ...] = ()
    files: tuple[str, ...] = ()
    """Names and sizes of what is attached."""
    problems: tuple[str, ...] = ()
    """Why other files are not."""


AttachFiles = Callable[[str], Awaitable[Attachments]]
"""Returns the attachments of a message."""


def file_attacher(
    folder: WorkingFolder, takes_images: Callable[[], str], dropped: Collection[Path] = ()
) -> AttachFiles:
    """Returns a function that reads the files named in a message.

    Only files in the folder are read, and images in `dropped`, which the user dropped onto the terminal.
    `takes_images` returns the reason why the model takes no images; empty if it does.
    """

    async def attach(text: str) -> Attachments:
        if "@" not in text:
            return Attachments()
        return await anyio.to_thread.run_sync(_attach, folder, text, takes_images(), dropped)

    return attach


def quote_mention(path: str) -> str:
    """Returns the mention of a path as it is typed."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def _attach(folder: WorkingFolder, text: str, no_images: str, dropped: Collection[Path]) -> Attachments:
    sections, images = list[str](), list[Media]()
    files, problems, room = list[str](), list[str](), _MAX_ATTACHED_CHARACTERS
    for path in dict.fromkeys(_mentioned_paths(folder, text)):
        name = _display_name(folder, path)
        if len(files) == _MAX_FILES:
            problems.append(f"{name} is not attached: a message takes {_MAX_FILES} files.")
            continue
        try:
            if path not in dropped:
                folder.resolve(str(path))
            if mime := image_type(path):
                images.append(_read_image(path, name, mime, no_images))
                files.append(f"{name} (image)")
                continue
            content = _read_text(folder, path)
            if len(content) > room:
                raise InvalidInput(f"all files of a message may have {_MAX_ATTACHED_CHARACTERS:,} characters.")
        except InvalidInput as problem:
            problems.append(f"{name} is not attached: {problem}")
        except OSError as problem:
            problems.append(f"{name} is not attached: {problem.strerror}.")
        else:
            room -= len(content)
            sections.append(f'<file path="{name}">\n{content}\n</file>')
            lines = len(content.splitlines())
            files.append(f"{name} ({lines:,} line{'s' * (lines != 1)})")
    joined = "\n\n".join([ATTACHMENT_HEADING, *sections]) if sections else ""
    return Attachments(joined, tuple(images), tuple(files), tuple(problems))


def _mentioned_paths(folder: WorkingFolder, text: str) -> Iterator[Path]:
    """Yields the mentioned paths that exist; a word such as `@property` or a name of someone is no mention."""
    for match in _MENTION.finditer(text):
        quoted, word = match.groups()
        for written in (quoted,) if quoted else (word, word.rstrip(_PUNCTUATION)):
            try:
                path = (folder.root / Path(written).expanduser()).resolve() if written else folder.root
                found = path != folder.root and (path.is_file() or path.is_dir())
            except (OSError, RuntimeError, ValueError):
                continue
            if found:
                yield path
                break


def _display_name(folder: WorkingFolder, path: Path) -> str:
    return folder.display_name(path) if path.is_relative_to(folder.root) else str(path)


def _read_text(folder: WorkingFolder, path: Path) -> str:
    """Returns what `read_file`, or for a folder `list_files`, would show; raises `InvalidInput` as they do."""
    if path.is_dir():
        return list_folder(folder, ListFiles(str(path)))
    return read_lines(folder, ReadFile(str(path)))


def image_type(path: Path) -> str | None:
    """Returns the MIME type of an image by its content; None for other files."""
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError:
        return None
    return next((mime for signature, mime in _IMAGE_SIGNATURES if signature.match(start)), None)


def _read_image(path: Path, name: str, mime: str, no_images: str) -> Media:
    if no_images:
        raise InvalidInput(no_images)
    if (size := path.stat().st_size) > MAX_IMAGE_BYTES:
        raise InvalidInput(f"it has {size:,} bytes, and an image may have {MAX_IMAGE_BYTES:,}.")
    return Media("image", mime, base64.b64encode(path.read_bytes()).decode(), name=name)
