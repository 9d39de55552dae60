"""Files named as @path in a message are attached to it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import anyio
import pytest

from holdfast.agent.mentions import Attachments, file_attacher
from holdfast.agent.tools import WorkingFolder
from holdfast.chat.mention_completion import MentionIndex, best_matches, unfinished_mention

pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


async def attach(folder: Path, text: str, no_images: str = "", dropped: Collection[Path] = ()) -> Attachments:
    return await file_attacher(WorkingFolder(folder), lambda: no_images, dropped)(text)


@pytest.fixture
def harbor(tmp_path: Path) -> Path:
    folder = tmp_path / "harbor"
    (folder / "log").mkdir(parents=True)
    (folder / "tides.csv").write_text("low,3\nhigh,9\n")
    (folder / "my log.txt").write_text("calm")
    (folder / "log" / "monday.txt").write_text("storm")
    (folder / "map.bin").write_bytes(b"\0\1\2")
    (folder / "berth.png").write_bytes(PNG)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "drop.png").write_bytes(PNG)
    return folder


async def test_named_files_are_attached_as_read_file_shows_them(harbor: Path) -> None:
    done = await attach(harbor, 'Compare @tides.csv, @"my log.txt" and @log for @alice and me@tides.csv.')
    assert done.files == ("tides.csv (2 lines)", "my log.txt (1 line)", "log (1 line)") and not done.problems
    assert '<file path="tides.csv">\nlow,3\nhigh,9\n\n</file>' in done.text and "log/monday.txt" in done.text
    assert await attach(harbor, "no mention") == Attachments()


async def test_files_that_cannot_be_attached_are_one_line_each(harbor: Path) -> None:
    (harbor / "long.txt").write_text("line\n" * 5_000)
    done = await attach(harbor, "@map.bin @../secret.txt @long.txt")
    assert [problem.partition(":")[0] for problem in done.problems] == [
        "map.bin is not attached",
        f"{harbor.parent / 'secret.txt'} is not attached",
    ]
    assert "not a text file" in done.problems[0] and "outside the working folder" in done.problems[1]
    assert "secret\n" not in done.text and "[lines 1-1000: go on with first_line=1001]" in done.text


async def test_images_become_media_where_the_model_takes_them(harbor: Path) -> None:
    done = await attach(harbor, "What is on @berth.png?")
    assert [(image.mime, image.name) for image in done.images] == [("image/png", "berth.png")] and not done.text
    refused = await attach(harbor, "What is on @berth.png?", "the model takes no images.")
    assert refused.problems == ("berth.png is not attached: the model takes no images.",) and not refused.images
    outside = harbor.parent / "drop.png"
    assert (await attach(harbor, f"@{outside}")).problems and not (await attach(harbor, f"@{outside}")).images
    assert (await attach(harbor, f"@{outside}", dropped={outside})).images


async def test_completion_honours_gitignore_and_prefers_close_names(harbor: Path) -> None:
    index = MentionIndex(WorkingFolder(harbor))
    assert await index.complete("@mon") == ["@log/monday.txt"]
    assert await index.complete('@"my') == ['@"my log.txt"', "@log/monday.txt"]
    await anyio.run_process(["git", "init", "-q"], cwd=harbor)
    (harbor / ".gitignore").write_text("log/\n")
    assert await MentionIndex(WorkingFolder(harbor)).complete("@mon") == []
    assert await MentionIndex(WorkingFolder(harbor)).complete("@tds") == ["@tides.csv"]
    files = ["src/tide/app.py", "app/readme.md", "src/apply.py", "Apt.txt"]
    assert best_matches("app", files) == ["src/apply.py", "src/tide/app.py", "app/readme.md"]
    assert best_matches("Apt", files) == ["Apt.txt"] and best_matches("sapp", files)[0] == "src/apply.py"
    assert unfinished_mention("see @tid") == "@tid" and unfinished_mention("a@tid") is None
    assert unfinished_mention("see @tides.csv ") is None and unfinished_mention('see @"my lo') == '@"my lo'
