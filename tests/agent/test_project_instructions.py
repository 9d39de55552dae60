"""Reading AGENTS.md and CLAUDE.md: order, limits, and files that are not read."""

from __future__ import annotations

from pathlib import Path

from holdfast.agent.project_instructions import MAX_FILE_CHARACTERS, read_instructions, with_instructions
from holdfast.settings import project_folders


def test_instructions_are_read_from_the_user_and_from_the_outermost_folder_inwards(tmp_path: Path) -> None:
    own, root = tmp_path / "config", tmp_path / "repository"
    folder = root / "harbor" / "berths"
    for place in (own, folder, root / ".git"):
        place.mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("outside of the repository")
    (own / "AGENTS.md").write_text("mine")
    (root / "AGENTS.md").write_text("root\n")
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    (root / "harbor" / "CLAUDE.md").write_text("harbor")
    (folder / "AGENTS.md").write_text("berths")
    files, notes = read_instructions(own, project_folders(folder)[::-1])
    assert [file.text for file in files] == ["mine", "root", "harbor", "berths"] and notes == ()
    assert [file.path for file in files[-2:]] == [str(root / "harbor" / "CLAUDE.md"), "AGENTS.md"]
    system = with_instructions("Be careful.", files)
    assert system.startswith("Be careful.\n\nProject instructions follow")
    places = [system.index(f"\n{text}\n") for text in ("mine", "root", "harbor", "berths")]
    assert places == sorted(places)
    assert with_instructions("Be careful.", ()) == "Be careful."


def test_long_instructions_are_cut_with_a_note_and_the_closest_are_cut_last(tmp_path: Path) -> None:
    folder = tmp_path / "harbor"
    folder.mkdir()
    (tmp_path / "AGENTS.md").write_text("a" * 900)
    (folder / "AGENTS.md").write_text("b" * 700)
    files, notes = read_instructions(tmp_path / "none", [tmp_path, folder], 1_000)
    assert [len(file.text) for file in files] == [300, 700]
    assert notes == (f"{tmp_path / 'AGENTS.md'} has 900 characters of instructions: only the first 300 are sent.",)
    assert "[… 600 more characters: read " in with_instructions("", files)
    assert files[0].summary.endswith("(300 of 900 characters, cut)")
    left, notes = read_instructions(tmp_path / "none", [tmp_path, folder], 750)
    assert [file.path for file in left] == ["AGENTS.md"] and notes[0].endswith("it is left out.")
    (folder / "AGENTS.md").write_text("b" * (MAX_FILE_CHARACTERS + 1))
    files, _ = read_instructions(tmp_path / "none", [folder])
    assert len(files[0].text) == MAX_FILE_CHARACTERS


def test_instructions_that_link_out_of_the_project_or_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "harbor"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "AGENTS.md").symlink_to(tmp_path / "secret.txt")
    (folder / "CLAUDE.md").mkdir()
    files, notes = read_instructions(tmp_path / "none", [folder])
    assert files == () and notes == (f"{folder / 'AGENTS.md'} is a link out of the project, and was not read.",)
