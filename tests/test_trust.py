"""Trust in folders: a person's decision, remembered with the folder's identity; whose files are read (H14)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import InvalidInput
from holdfast.trust import TrustedFolders

SOMEBODY = 4_242
needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives files to another user")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    (place / "work" / "harbor" / ".git").mkdir(parents=True)
    (place / "work" / "harbor" / "src").mkdir()
    return place


@pytest.fixture
def harbor(home: Path) -> Path:
    return home / "work" / "harbor"


@pytest.fixture
def known(home: Path) -> TrustedFolders:
    return TrustedFolders(home / "config" / "trust.json", home)


def test_h14_nothing_is_trusted_before_a_decision(known: TrustedFolders, harbor: Path) -> None:
    assert known.decision_for(harbor) is None and known.project(harbor) is None


def test_a_decision_is_remembered_and_what_lies_below_inherits(known: TrustedFolders, home: Path, harbor: Path) -> None:
    known.decide(harbor, True)
    again = TrustedFolders(home / "config" / "trust.json", home)
    project = again.project(harbor / "src")
    assert project is not None and project.root == harbor
    assert project.folders == (harbor / "src", harbor)
    assert again.project(harbor.parent) is None, "what lies above does not"
    assert os.stat(home / "config" / "trust.json").st_mode & 0o777 == 0o600


def test_a_refusal_is_remembered_and_may_lie_in_a_trusted_folder(known: TrustedFolders, harbor: Path) -> None:
    known.decide(harbor.parent, True)
    known.decide(harbor, False)
    decision = known.decision_for(harbor / "src")
    assert decision is not None and not decision.trusted and known.project(harbor / "src") is None
    known.forget(harbor)
    assert known.project(harbor / "src") is not None
    with pytest.raises(InvalidInput, match="Nothing was decided about"):
        known.forget(harbor)


def test_another_folder_in_the_place_of_a_trusted_one_is_not_trusted(known: TrustedFolders, harbor: Path) -> None:
    known.decide(harbor, True)
    harbor.rename(harbor.with_name("moved"))
    harbor.mkdir()
    assert known.decision_for(harbor) is None
    assert known.decision_for(harbor.with_name("moved")) is None, "a name that was never decided about"


def test_a_link_is_the_folder_that_it_leads_to(known: TrustedFolders, home: Path, harbor: Path) -> None:
    (home / "link").symlink_to(harbor)
    known.decide(home / "link", True)
    assert known.project(harbor) is not None
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    (harbor / "out").symlink_to(elsewhere)
    assert known.project(harbor / "out") is None


def test_trust_in_the_home_folder_holds_for_itself_alone(known: TrustedFolders, home: Path, harbor: Path) -> None:
    known.decide(home, True)
    known.decide(home.parent, True)
    assert known.project(home) is not None and known.project(home.parent) is not None
    assert known.project(harbor) is None


def test_files_are_searched_up_to_the_root_of_the_repository(known: TrustedFolders, harbor: Path) -> None:
    known.decide(harbor.parent, True)
    project = known.project(harbor / "src")
    assert project is not None and project.folders == (harbor / "src", harbor)


def test_trust_for_once_is_not_remembered(known: TrustedFolders, harbor: Path) -> None:
    project = known.project(harbor / "src", trust=True)
    assert project is not None and project.root == harbor
    assert known.project(harbor / "src") is None


def test_the_question_is_about_the_repository(known: TrustedFolders, home: Path, harbor: Path) -> None:
    assert known.root_of(harbor / "src") == harbor
    (home / "notes").mkdir()
    (home / ".git").mkdir()
    assert known.root_of(home / "notes") == home / "notes", "a repository of the whole home folder is too much to trust"


@needs_root
def test_a_planted_repository_above_is_not_asked_about_and_not_read(known: TrustedFolders, home: Path) -> None:
    """In a folder that several users write to, as git's `safe.directory` treats it."""
    shared = home / "shared"
    mine = shared / "mine"
    mine.mkdir(parents=True)
    (shared / ".git").mkdir()
    (shared / "AGENTS.md").write_text("planted")
    os.chown(shared, SOMEBODY, SOMEBODY)
    assert known.root_of(mine) == mine
    once = known.project(mine, trust=True)
    assert once is not None and once.folders == (mine,)


@needs_root
def test_a_folder_of_another_user_inherits_nothing(known: TrustedFolders, harbor: Path) -> None:
    theirs = harbor / "src" / "theirs"
    (theirs / "in").mkdir(parents=True)
    os.chown(theirs, SOMEBODY, SOMEBODY)
    known.decide(harbor, True)
    assert known.project(theirs) is None and known.project(theirs / "in") is None
    known.decide(theirs, True)
    assert known.project(theirs / "in") is not None, "trusted by name, with its owner"
    os.chown(theirs, SOMEBODY + 1, SOMEBODY)
    assert known.project(theirs) is None, "the identity holds the owner"


@needs_root
def test_a_file_of_another_user_in_a_trusted_folder_is_not_read(known: TrustedFolders, harbor: Path) -> None:
    known.decide(harbor, True)
    project = known.project(harbor)
    assert project is not None
    (harbor / "AGENTS.md").write_text("planted")
    assert project.read(harbor / "AGENTS.md", 100) == b"planted"
    os.chown(harbor / "AGENTS.md", SOMEBODY, SOMEBODY)
    with pytest.raises(InvalidInput, match="belongs to another user"):
        project.read(harbor / "AGENTS.md", 100)


def test_reading_is_bounded_and_stays_in_the_trusted_folder(known: TrustedFolders, home: Path, harbor: Path) -> None:
    known.decide(harbor, True)
    project = known.project(harbor)
    assert project is not None
    (harbor / "large").write_bytes(b"x" * 1_000)
    assert project.read(harbor / "large", 10) == b"x" * 10
    assert project.read(harbor / "none", 10) is None
    (home / "secret").write_text("secret")
    (harbor / "link").symlink_to(home / "secret")
    with pytest.raises(InvalidInput, match="outside"):
        project.read(harbor / "link", 10)
    os.mkfifo(harbor / "pipe")
    (harbor / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "endless"):
        with pytest.raises(InvalidInput):
            project.read(harbor / name, 10)


def test_a_damaged_file_of_decisions_is_an_error_that_helps(known: TrustedFolders, home: Path, harbor: Path) -> None:
    known.decide(harbor, True)
    (home / "config" / "trust.json").write_text("{")
    with pytest.raises(InvalidInput, match=r"trust\.json cannot be read .*: delete it"):
        known.project(harbor)
