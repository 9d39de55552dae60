"""Take pictures of the ten main moments of the chat at 40, 80 and 140 columns, dark and light.

    python -m scripts.chat_screens FOLDER

Each picture is a page of one size and one theme, made by Debian's `chromium`. Look at them after a change.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.terminal_theme import TerminalTheme

sys.path.insert(0, str(Path(__file__).parent))
from capture import THEME
from holdfast.chat.open_chat import open_chat
from holdfast.chat.terminal.app import ChatTerminal
from holdfast.chat.terminal.conversation import Conversation
from holdfast.chat.terminal.theme import ChatTheme
from holdfast.sessions import SessionService
from holdfast.settings import load_settings
from holdfast.stores import open_store
from record_chat import WINDOW, Recording, Summarizer, create_project, use_deterministic_ids

SIZES = ((40, 24), (80, 24), (140, 32))
LIGHT = TerminalTheme(
    (252, 252, 250),
    (36, 41, 47),
    [
        (36, 41, 47),
        (207, 34, 46),
        (17, 99, 41),
        (154, 103, 0),
        (9, 105, 218),
        (130, 80, 223),
        (27, 124, 131),
        (110, 119, 129),
    ],
    [
        (87, 96, 106),
        (164, 14, 38),
        (26, 127, 55),
        (99, 60, 1),
        (33, 139, 255),
        (164, 117, 249),
        (49, 146, 170),
        (140, 149, 159),
    ],
)
THEMES = {"dark": THEME, "light": LIGHT}


class Album:
    """Pictures of one size, in all themes."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.pages: dict[str, list[str]] = {name: [] for name in THEMES}

    async def take(self, name: str, *texts: str) -> None:
        """Waits until the texts are on the screen, and takes it."""
        for text in texts:
            await self.recording.wait_for_text(text)
        for theme, colors in THEMES.items():
            picture = self.recording.render(f"p{name.partition(' ')[0]}-{theme}", colors)
            self.pages[theme].append(f"<figure><figcaption>{name}</figcaption>{picture}</figure>")


async def record(root: Path, size: tuple[int, int]) -> Album:
    """Plays the story of the documentation, and goes back over it."""
    folder = create_project(root)
    store = f"sqlite:///{root / 'sessions.db'}"
    async with SessionService(open_store(store)) as others:
        about = {"folder": "~/harbor", "imported": {"from": "codex", "id": "x"}}
        other = await others.create(metadata=about, model="gpt-5")
        await others.append(other.id, {"role": "user", "content": "# AGENTS.md instructions for /harbor"})
        await others.append(other.id, {"role": "user", "content": "Implement the following plan:\n\n# Dredge berth 3"})
        flags = {"model": f"script:{root / 'demo.json'}", "store": store, "window": WINDOW}
        conversation = Conversation()
        app = ChatTerminal(conversation, ChatTheme())
        settings = load_settings(folder, flags, {"HOME": str(root)}, trust=True)
        async with open_chat(
            settings, folder=folder, on_event=conversation.handle_event, approve=conversation.pending_approval.ask
        ) as chat:
            conversation.chat = chat
            chat.agent.keeper.summarizer = summarizer = Summarizer()
            async with app.run_test(size=size) as pilot:
                album = Album(recording := Recording(app, pilot, size))
                await album.take("1 start", "/help")
                await recording.type("Last night two boats got the same berth. Find out why, and fix it.")
                await album.take("2 question: a change", "use edit_file?")
                await recording.press("space", "space", "space")
                await recording.wait_for_text("y yes")
                await recording.press("y")
                await recording.wait_for_text("$ python check.py")
                await album.take("3 question: a command", "y yes")
                await recording.press("y")
                await recording.wait_for_text("characters")
                await recording.type("Why not a lock in Python?")
                await album.take("4 compacting, input queued", "queued")
                summarizer.resume.set()
                await album.take("5 compacted", "sees all")
                await chat.wait_idle()
                await recording.press("ctrl+g")
                await album.take("6 no longer shown", "No longer shown")
                await recording.press("escape")
                await recording.type("/rewind")
                await recording.press("end")
                await album.take("7 rewind", "Rewind to")
                await recording.press("escape")
                await recording.type("/sessions")
                await album.take("8 sessions", "Sessions")
                await recording.press("escape")
                await recording.type("/copy")
                async with others.announce_turn(chat.record.id):
                    await others.append(chat.record.id, {"role": "user", "content": "Tell the harbor master, too."})
                    await album.take("9 another chat", "another chat" if size[0] > 40 else "other turn")
                await recording.type("/context")
                await album.take("10 context", "of 2,900")
                return album


def photograph(page: Path, picture: Path, width: int, height: int) -> None:
    """Takes a picture of a page with a browser that has no network."""
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options = [f"--window-size={width},{height}", f"--screenshot={picture}", page.as_uri()]
    subprocess.run([*command, *options], check=True, capture_output=True)


def main(folder: Path) -> int:
    use_deterministic_ids()
    folder.mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        with tempfile.TemporaryDirectory() as root:
            os.environ["HOME"] = root
            album = asyncio.run(record(Path(root), size))
        across = {40: 4, 80: 2, 140: 2}[size[0]]
        width = 1_800 // across
        for theme, figures in album.pages.items():
            background = "#111" if theme == "dark" else "#ddd"
            style = (
                f"body {{margin: 0; background: {background}; color: #888; font: 13px sans-serif; display: grid; "
                f"grid-template-columns: repeat({across}, {width}px)}} figure {{margin: 6px}} svg {{width: 100%}} "
                "svg text {font-family: monospace !important}"
            )
            page = folder / f"{theme}-{size[0]}.html"
            page.write_text(f"<meta charset=utf-8><style>{style}</style>{''.join(figures)}", encoding="utf-8")
            ratio = (size[1] * 24.4 + 60) / (size[0] * 12.2 + 20)
            rows = -(-len(figures) // across)
            photograph(page, folder / f"{theme}-{size[0]}.png", 1_800, int(rows * (width * ratio + 40)))
            print(f"{theme}-{size[0]}.png written")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
