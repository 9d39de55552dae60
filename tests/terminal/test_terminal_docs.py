"""Documentation cannot drift: the page names every command and key, its demo works, its pictures are of this chat."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from stage import stage

from holdfast.chat.commands import COMMANDS
from holdfast.terminal.keys import BINDINGS

pytestmark = pytest.mark.anyio
DOCS = Path(__file__).resolve().parents[2] / "docs"
if not DOCS.exists():
    pytest.skip("the documentation is not here", allow_module_level=True)
TEXT = (DOCS / "chat.md").read_text(encoding="utf-8")


def test_every_command_and_every_key_is_on_the_page() -> None:
    assert [command.name for command in COMMANDS if f"`/{command.name}" not in TEXT] == []
    names = {"escape": "Esc", "pageup": "PageUp", "pagedown": "PageDown"}
    keys = [names.get(one.key) or "-".join(part.capitalize() for part in one.key.split("+")) for one in BINDINGS]
    assert [key for key in keys if key not in TEXT] == []


@pytest.mark.parametrize("name", re.findall(r"\((chat[\w-]*\.svg)\)", TEXT))
def test_pictures_are_there_and_tell_nothing_of_a_machine(name: str) -> None:
    picture = (DOCS / name).read_text(encoding="utf-8")
    assert "holdfast&#160;chat" in picture or "holdfast chat" in picture
    assert not re.search(r"/(tmp|home|root|work|Users)\b", picture) and "@font-face" not in picture


async def test_the_demo_does_what_the_page_says(tmp_path: Path) -> None:
    found = re.search(r"<!-- demo.json -->\n```json\n(.*?)```", TEXT, re.DOTALL)
    window = re.search(r"script:demo.json --window (\d+)", TEXT)
    prompts = re.findall(r"`(How many .*?|Give berth .*?)`", TEXT.replace("\n", " "))
    assert found and window and len(prompts) == 2
    script = json.loads(found[1]) | {"delay": 0}
    async with stage(tmp_path, *script.pop("steps"), window=int(window[1]), **script) as on:
        await on.types(prompts[0])
        await on.press("enter")
        await on.sees("May the agent use run_command?")
        await on.press("y")
        await on.sees("compacted", "There are 400 berths")
        await on.rests()
        await on.types(prompts[1])
        await on.press("enter")
        await on.sees("Berth 12 is the Petrel's now.")
