"""A user's home folder with a project in it, without settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.settings import Settings, load_settings, trusted_folders, user_file
from holdfast.trust import TrustedFolders


class Home:
    """Writes settings files and loads the resulting settings. Its project is trusted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "work" / "harbour"
        (self.project / ".git").mkdir(parents=True)
        self.environ = {"HOME": str(folder)}
        self.trusted.decide(self.project, True)

    @property
    def trusted(self) -> TrustedFolders:
        return trusted_folders(self.environ)

    @property
    def file(self) -> Path:
        return user_file(self.environ)

    def write(self, text: str) -> Path:
        """Writes the user's settings file."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(text, encoding="utf-8")
        return self.file

    def write_project(self, text: str, folder: Path | None = None) -> Path:
        file = (folder or self.project) / ".holdfast" / "settings.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def load(self, flags: Mapping[str, Any] | None = None, folder: Path | None = None, **variables: str) -> Settings:
        return load_settings(folder or self.project, flags, self.environ | variables)
