"""What a release would hold: built from the last commit in a clean folder, compared with the repository."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from scripts import release

ROOT = Path(__file__).parents[2]
if not (ROOT / ".git").exists() or not shutil.which("git"):
    pytest.skip("not a checkout of the repository", allow_module_level=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "DIST", tmp_path_factory.mktemp("dist"))
        return release.build(tmp_path_factory.mktemp("build"))


def test_wheel_and_sdist_hold_what_is_tracked_and_nothing_else(built: tuple[Path, Path]) -> None:
    assert "files in the wheel" in release.compare_contents(*built)


def test_readme_of_the_wheel_has_no_link_that_breaks_on_the_index(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = wheel.read(name).decode()
    links = re.findall(r"\]\(([^)]+)\)", metadata)
    assert len(links) > 15 and [link for link in links if "://" not in link] == []
    assert any(link.endswith("/raw/v0.1.0/docs/web-compaction.webp") for link in links)


def test_sbom_names_what_the_wheel_brings_and_what_it_installs() -> None:
    found = release.sbom("0.1.0", [["pip", "25", ""], ["click", "8.3", "BSD-3-Clause"]])
    assert [(one["name"], one["purl"]) for one in found["components"]] == [
        ("uPlot", "pkg:npm/uplot@1.6.32"),
        ("click", "pkg:pypi/click@8.3"),
    ]


def test_notes_of_a_release_are_its_section_of_the_changelog() -> None:
    assert release.notes("0.1.0").startswith("### ")


def test_versions_of_the_documentation_stand_side_by_side(tmp_path: Path) -> None:
    for version in ("0.1.0", "0.2.0"):
        made = tmp_path / f"built-{version}"
        (made / version).mkdir(parents=True)
        (made / version / "index.html").write_text(version)
        (made / "add_version.py").write_text(release.ADD_VERSION.replace("VERSION", version))
        (tmp_path / "site").mkdir(exist_ok=True)
        subprocess.run([sys.executable, made / "add_version.py", tmp_path / "site"], check=True)
    listed = json.loads((tmp_path / "site" / "versions.json").read_text())
    assert [(one["version"], one["aliases"]) for one in listed] == [("0.2.0", ["latest"]), ("0.1.0", [])]
    assert "0.2.0/index.html" in (tmp_path / "site" / "index.html").read_text()
    assert (tmp_path / "site" / "0.1.0" / "index.html").read_text() == "0.1.0"
