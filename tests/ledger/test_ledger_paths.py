"""Compact lists of absolute paths (P13)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.ledger import HistoryExtractor, SectionRenderer, parse_page
from holdfast.ledger.entries import FileRecord
from holdfast.ledger.files import abbreviate_root, list_by_folder
from holdfast.ledger.headings import FILES, PAGE_OPENING, ROOT, ROOT_IS

DEEP = "/home/mira/worktrees/tidebook-berths-and-boats/services/tidebook"
FOLDERS = ("api", "api/routes", "store", "tides", "tests")
PATHS = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))


def test_abbreviate_root_writes_common_folder_once() -> None:
    lines = [f"{DEEP}/api/: routes.py, auth.py", "/tmp/: try.py", f"{DEEP}/: README.md", f"{DEEP}/store/: log.py"]
    expected = [
        "…/ is " + DEEP + "/",
        "…/api/: routes.py, auth.py",
        "/tmp/: try.py",
        "…/: README.md",
        "…/store/: log.py",
    ]
    assert abbreviate_root(lines, 200) == expected


def test_abbreviate_root_leaves_lines_when_nothing_is_saved() -> None:
    for lines, longest in (
        ([f"{DEEP}/api/: routes.py"], 200),
        (["/a/b/: x.py", "/a/c/: y.py"], 200),
        ([f"{DEEP}/api/: a.py", f"{DEEP}/store/: b.py"], 8),
        (["x.py, y.py"], 200),
        ([], 200),
    ):
        assert abbreviate_root(lines, longest) == lines


def listed(room: int) -> tuple[set[str], list[str]]:
    """Files that were read, and the lines that a page of `room` characters lists them on."""
    paths = {f"{DEEP}/{folder}/module_{at}.py" for folder in FOLDERS for at in range(3)}
    history = HistoryExtractor()
    history.files = {path: FileRecord(path, reads=1) for path in paths}
    (expected,) = SectionRenderer(history, 4_000).files(room, ())
    return paths, expected.splitlines()


def test_files_in_small_room_are_abbreviated_and_parsed_in_full() -> None:
    paths, lines = listed(4_000)
    assert lines[1] == f"{ROOT_IS}{DEEP}/"
    assert {file.path for file in parse_page("\n".join(lines)).files} == paths


def test_files_in_ample_room_show_full_folders() -> None:
    paths, lines = listed(8_000)
    assert not any(line.startswith(ROOT) for line in lines)
    assert {file.path for file in parse_page("\n".join(lines)).files} == paths


@given(st.lists(PATHS, min_size=1, max_size=12, unique=True))
def test_abbreviated_paths_round_trip_through_parse_page(paths: list[str]) -> None:
    lines = abbreviate_root(list_by_folder([FileRecord(path, reads=1) for path in paths]), 200)
    assert len({line for line in lines if line.startswith(ROOT_IS)}) <= 1
    assert not any(line.startswith(ROOT) for line in lines) or lines[0].startswith(ROOT_IS)
    page = "\n".join([f"{PAGE_OPENING}1 messages are archived.]", FILES, *lines])
    assert sorted(file.path for file in parse_page(page).files) == sorted(paths)
