"""Files in as few words as their absolute paths need (P13)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.ledger import Notebook, Writer, reread
from holdfast.ledger.entries import File
from holdfast.ledger.folders import by_folder, from_root
from holdfast.ledger.headings import FILES, OPENING, ROOT, ROOT_IS
from holdfast.references import citation

DEEP = "/home/mira/worktrees/tidebook-berths-and-boats/services/tidebook"
FOLDERS = ("api", "api/routes", "store", "tides", "tests")
PATHS = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))


def test_the_folder_that_most_begin_with_is_told_once() -> None:
    lines = [f"{DEEP}/api/: routes.py, auth.py", "/tmp/: try.py", f"{DEEP}/: README.md", f"{DEEP}/store/: log.py"]
    told = ["…/ is " + DEEP + "/", "…/api/: routes.py, auth.py", "/tmp/: try.py", "…/: README.md", "…/store/: log.py"]
    assert from_root(lines, 200) == told


def test_a_folder_that_saves_nothing_or_is_too_long_is_not_told_apart() -> None:
    for lines, longest in (
        ([f"{DEEP}/api/: routes.py"], 200),
        (["/a/b/: x.py", "/a/c/: y.py"], 200),
        ([f"{DEEP}/api/: a.py", f"{DEEP}/store/: b.py"], 8),
        (["x.py, y.py"], 200),
        ([], 200),
    ):
        assert from_root(lines, longest) == lines


def listed(room: int) -> tuple[set[str], list[str]]:
    """Files that were read, and how a page of so many characters tells them."""
    paths = {f"{DEEP}/{folder}/module_{at}.py" for folder in FOLDERS for at in range(3)}
    notebook = Notebook()
    notebook.files = {path: File(path, reads=1) for path in paths}
    (told,) = Writer(notebook, citation, 4_000).files(room, ())
    return paths, told.splitlines()


def test_where_room_is_short_every_file_is_still_there_and_read_back_in_full() -> None:
    paths, lines = listed(4_000)
    assert lines[1] == f"{ROOT_IS}{DEEP}/"
    assert {file.path for file in reread("\n".join(lines)).files} == paths


def test_where_there_is_room_each_folder_stands_in_full() -> None:
    paths, lines = listed(8_000)
    assert not any(line.startswith(ROOT) for line in lines)
    assert {file.path for file in reread("\n".join(lines)).files} == paths


@given(st.lists(PATHS, min_size=1, max_size=12, unique=True))
def test_whatever_the_folders_every_path_comes_back(paths: list[str]) -> None:
    lines = from_root(by_folder([File(path, reads=1) for path in paths]), 200)
    assert len({line for line in lines if line.startswith(ROOT_IS)}) <= 1
    assert not any(line.startswith(ROOT) for line in lines) or lines[0].startswith(ROOT_IS)
    page = "\n".join([f"{OPENING}1 messages are archived.]", FILES, *lines])
    assert sorted(file.path for file in reread(page).files) == sorted(paths)
