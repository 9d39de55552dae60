"""docs/chat.md is current: it names every command and key, its demo works, its pictures show this chat."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from app_harness import open_app

from holdfast.chat.commands import COMMANDS
from holdfast.chat.terminal.app import BINDINGS

pytestmark = pytest.mark.anyio
DOCS = Path(__file__).resolve().parents[3] / "docs"
if not DOCS.exists():
    pytest.skip("the documentation is not here", allow_module_level=True)
TEXT = (DOCS / "chat.md").read_text(encoding="utf-8")


def test_docs_name_every_command_and_key() -> None:
    assert [command.name for command in COMMANDS if f"`/{command.name}" not in TEXT] == []
    names = {"escape": "Esc", "pageup": "PageUp", "pagedown": "PageDown"}
    keys = [names.get(one.key) or "-".join(part.capitalize() for part in one.key.split("+")) for one in BINDINGS]
    assert [key for key in keys if key not in TEXT] == []


@pytest.mark.parametrize("name", re.findall(r"\((chat[\w-]*\.svg)\)", TEXT))
def test_docs_pictures_exist_and_contain_no_local_paths(name: str) -> None:
    picture = (DOCS / name).read_text(encoding="utf-8")
    assert "holdfast&#160;chat" in picture or "holdfast chat" in picture
    assert not re.search(r"/(tmp|home|root|work|Users)\b", picture) and "@font-face" not in picture


async def test_docs_demo_works_as_described(tmp_path: Path) -> None:
    found = re.search(r"<!-- demo.json -->\n```json\n(.*?)```", TEXT, re.DOTALL)
    window = re.search(r"script:demo.json --window (\d+)", TEXT)
    prompts = re.findall(r"`(How many .*?|Give berth .*?)`", TEXT.replace("\n", " "))
    assert found and window and len(prompts) == 2
    script = json.loads(found[1]) | {"delay": 0}
    async with open_app(tmp_path, *script.pop("steps"), window=int(window[1]), **script) as harness:
        await harness.type(prompts[0])
        await harness.press("enter")
        await harness.wait_for_text("May the agent use run_command?", "y yes")
        await harness.press("y")
        await harness.wait_for_text("compacted", "There are 400 berths")
        await harness.wait_idle()
        await harness.type(prompts[1])
        await harness.press("enter")
        await harness.wait_for_text("Berth 12 is the Petrel's now.")
