"""Rehearses a release, and publishes nothing: `.venv/bin/python scripts/release.py`, after `python3 scripts/check.py`.

From the last commit, in folders of its own, it

- builds the sdist, and the wheel from the sdist;
- compares what they hold with the repository, and checks their metadata with twine;
- installs the wheel alone into an empty environment of each Python, and runs the README's first command from it;
- writes an SBOM of what was installed (CycloneDX), the notes from the changelog, and the documentation of this version.

Everything lands in `dist/`; the release workflow runs this and publishes what it finds there.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13")
VENDORED = (("uPlot", ROOT / "src/holdfast/web/static/uPlot.esm.js", "MIT"),)
LISTED = """import importlib.metadata, json
print(json.dumps(sorted((d.metadata["Name"], d.version, d.metadata.get("License-Expression") or "") for d in
importlib.metadata.distributions())))"""
ADD_VERSION = '''"""Adds this version of the documentation to the folder of the others: `add_version.py FOLDER`."""
import json, pathlib, shutil, sys

here, folder, version = pathlib.Path(__file__).parent, pathlib.Path(sys.argv[1]), "VERSION"
shutil.rmtree(folder / version, ignore_errors=True)
shutil.copytree(here / version, folder / version)
listed = folder / "versions.json"
others = [one for one in json.loads(listed.read_text()) if one["version"] != version] if listed.exists() else []
for one in others:
    one["aliases"] = []
listed.write_text(json.dumps([{"version": version, "title": version, "aliases": ["latest"]}, *others], indent=1))
(folder / "index.html").write_text(f'<meta http-equiv="refresh" content="0; url={version}/index.html">')
'''


def run(*command: object, cwd: Path = ROOT) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"FAILED: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """Builds both distributions from the last commit: the wheel from the unpacked sdist."""
    packages = DIST / "packages"
    source, unpacked = folder / "source", folder / "unpacked"
    (folder / "tree.tar").write_bytes(
        subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=-1, check=True).stdout
    )
    extract(folder / "tree.tar", source)
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", packages, cwd=source)
    (sdist,) = packages.glob("*.tar.gz")
    extract(sdist, unpacked)
    (root,) = unpacked.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", packages, cwd=root)
    (wheel,) = packages.glob("*.whl")
    return sdist, wheel


def extract(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")


def compare_contents(sdist: Path, wheel: Path) -> str:
    """The wheel holds every tracked file of the package and nothing else; the sdist nothing that is not tracked."""
    tracked = set(run("git", "ls-tree", "-r", "--name-only", "HEAD").splitlines())
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/holdfast/")}
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    if names != package:
        raise SystemExit(f"FAILED: the wheel differs from the package: {sorted(names ^ package)[:10]}")
    with tarfile.open(sdist) as opened_sdist:
        inside = {member.name.partition("/")[2] for member in opened_sdist if member.isfile()}
    if extra := inside - tracked - {"PKG-INFO", ".gitignore"}:
        raise SystemExit(f"FAILED: the sdist holds untracked files: {sorted(extra)[:10]}")
    sizes = ", ".join(f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in (sdist, wheel))
    return f"{sizes}; {len(names)} files in the wheel"


def find_python(version: str) -> str | None:
    """Returns this Python of the machine; a shim of a version manager that has none there is no Python."""
    if version == "{}.{}".format(*sys.version_info):
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is None or subprocess.run([found, "--version"], capture_output=True).returncode:
        return None
    return found


def try_wheel(wheel: Path, python: str, folder: Path) -> tuple[str, list[list[str]]]:
    """Installs the wheel alone; returns what the first command of the README prints last, and what was installed."""
    run(python, "-m", "venv", folder)
    own = folder / "bin" / "python"
    run(own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    printed = run(folder / "bin" / "holdfast", "compact", "example", cwd=folder)
    run(own, "-c", "from holdfast import compact; compact([{'role': 'user', 'content': 'x'}], budget=9)", cwd=folder)
    return printed.strip().splitlines()[-1].strip(), json.loads(run(own, "-c", LISTED, cwd=folder))


def sbom(version: str, installed: Sequence[Sequence[str]]) -> dict[str, Any]:
    """CycloneDX: what the wheel brings with it, and what an installation of it took from the index today."""
    components: list[dict[str, Any]] = []
    for name, file, license in VENDORED:
        found = re.search(r"\(v([\d.]+)\)", file.read_text(encoding="utf-8")[:600])
        assert found is not None
        licensed = [{"license": {"id": license}}]
        purl = f"pkg:npm/{name.lower()}@{found[1]}"
        components.append({"type": "library", "name": name, "version": found[1], "purl": purl, "licenses": licensed})
    for name, number, expression in installed:
        if name not in ("pip", "setuptools", "holdfast-context"):
            stated = {"licenses": [{"expression": expression}]} if expression else {}
            purl = f"pkg:pypi/{name.lower()}@{number}"
            components.append({"type": "library", "name": name, "version": number, "purl": purl, **stated})
    own = {"type": "library", "name": "holdfast-context", "version": version, "bom-ref": "holdfast-context"}
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "metadata": {"component": own}, "components": components}


def notes(version: str) -> str:
    """The changelog's section of this version, or what is unreleased."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for title in (version, "Unreleased"):
        if found := re.search(rf"^## \[{re.escape(title)}\][^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
            return found[1].strip() + "\n"
    raise SystemExit("FAILED: CHANGELOG.md has no section for this version.")


def build_docs(version: str) -> None:
    folder = DIST / "docs"
    run(sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", "mkdocs.release.yml", "-d", folder / version)
    (folder / "add_version.py").write_text(ADD_VERSION.replace("VERSION", version), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", help="the tag of the release: must be v and the version")
    parser.add_argument("--all-pythons", action="store_true", help="fail if one of the Pythons is not installed")
    given = parser.parse_args()
    source = (ROOT / "src/holdfast/__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "([^"]+)"', source, re.MULTILINE)
    if given.tag not in (None, f"v{version}"):
        raise SystemExit(f"FAILED: the tag {given.tag} is not v{version}.")
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        sdist, wheel = build(folder)
        print(f"built: {compare_contents(sdist, wheel)}, Python {requires}")
        run(
            "uv" if shutil.which("uv") else Path(sys.executable).with_name("uv"),
            "tool",
            "run",
            "twine",
            "check",
            "--strict",
            sdist,
            wheel,
        )
        print("twine check --strict: passed")
        installed: list[list[str]] = []
        for number in PYTHONS:
            if python := find_python(number):
                last, installed = try_wheel(wheel, python, folder / number)
                print(f"Python {number}: the wheel alone; {last}")
            elif given.all_pythons:
                raise SystemExit(f"FAILED: there is no python{number} on PATH.")
            else:
                print(f"Python {number}: not tried, there is no python{number} on PATH")
    (DIST / "sbom.cdx.json").write_text(json.dumps(sbom(version, installed), indent=1), encoding="utf-8")
    (DIST / "notes.md").write_text(notes(version), encoding="utf-8")
    build_docs(version)
    print(f"dist/: packages, sbom.cdx.json, notes.md, docs/{version}. Nothing was published.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
