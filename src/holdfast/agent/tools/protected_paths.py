"""Files that other programs run or obey: a change of them is asked every time, whatever is allowed.

One table for all tools that write. A name stands for a file or a folder with all in it, at any depth and in any case.
"""

from __future__ import annotations

import unicodedata
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

PROTECTED: dict[str, str] = {
    "git runs hooks, filters and its fsmonitor from here": """
        .git git~1 .gitmodules .gitattributes .gitconfig head .hg .svn .jj""",
    "agents take their instructions, commands, servers and permissions from here": """
        .agents .aider* .claude .clinerules .codex .continue .cursor .cursorrules .gemini .goosehints .holdfast
        .kiro .mcp.json .opencode .roo .windsurf .windsurfrules agents.md agents.*.md claude.md claude.*.md
        gemini.md opencode.json*""",
    "continuous integration runs this, with the secrets of the project": """
        .appveyor.yml .buildkite .circleci .cirrus.yml .drone.yml .forgejo .gitea .github .gitlab .gitlab-ci.yml
        .teamcity .tekton .travis.yml .woodpecker* appveyor.yml azure-pipelines*.yml bitbucket-pipelines.yml
        buildspec.y*ml cloudbuild.y*ml earthfile jenkinsfile*""",
    "editors run this when the folder is opened": """
        .devcontainer .devcontainer.json .dir-locals.el .fleet .idea .vs .vscode .zed *.code-workspace
        *.sublime-project""",
    "shells and version managers run this when the folder is entered": """
        .env .env.* .envrc .flox .mise.toml .nvmrc .rtx.toml .tool-versions devbox.json flake.nix mise.toml
        shell.nix default.nix""",
    "build tools, package managers and test runners run this": """
        .bundle .bunfig.toml .cargo .eslintrc* .husky .lefthook* .lintstagedrc* .mvn .npmrc .overcommit.yml
        .pnp.* .pnpmfile.* .pre-commit-config.y*ml .prettierrc* .babelrc* .yarn .yarnrc* *.config.cjs
        *.config.cts *.config.js *.config.mjs *.config.mts *.config.ts *.gemspec *.gradle *.gradle.kts *.mk
        *.pth build.rs bunfig.toml cargo.toml cmakelists.txt compose*.y*ml composer.json conftest.py
        containerfile* deno.json* docker-compose*.y*ml dockerfile* gemfile gnumakefile gradle gradle.properties
        gradlew* justfile .justfile lefthook* makefile* meson.build mvnw* noxfile.py package.json pom.xml
        pnpm-workspace.yaml pyproject.toml pytest.ini rakefile setup.cfg setup.py sitecustomize.py taskfile.y*ml
        tox.ini usercustomize.py vagrantfile""",
    "installed programs and libraries are run from here": """
        .tox .nox .venv node_modules site-packages venv""",
    "shells and other programs read this when they start": """
        .bash_aliases .bash_login .bash_logout .bash_profile .bashrc .config .cshrc .curlrc .emacs* .exrc
        .gdbinit .gnupg .gvimrc .inputrc .irbrc .kshrc .lldbinit .login .netrc .nvim.lua .nvimrc .profile .pryrc
        .pypirc .pythonrc* .pythonstartup .rprofile .screenrc .ssh .tcshrc .tmux.conf .vim .viminfo .vimrc
        .wgetrc .xinitrc .xprofile .xsession* .zlogin .zlogout .zprofile .zshenv .zshrc""",
}
"""Names, as patterns in lower case, under the reason that is shown."""
_BARE_REPOSITORY = "git takes this folder for a repository, and runs what its config says"


@cache
def protected_name(name: str) -> str | None:
    """Returns why a file or folder of this name is protected; None if it is not."""
    known = unicodedata.normalize("NFKC", name).casefold().rstrip(" .")
    known = "".join(c for c in known if unicodedata.category(c) != "Cf")  # some file systems ignore these
    for reason, names in PROTECTED.items():
        if any(fnmatchcase(known, pattern) for pattern in names.split()):
            return reason
    return None


def protected_path(path: Path, name: str, given: str = "") -> str | None:
    """Returns why a file is protected; None if it is not.

    `path` is where it really is, `name` the same in the working folder, and `given` the path that was asked for.
    """
    parts = name.split("/")
    root = path.parents[len(parts) - 1]
    asked = Path(given)
    if asked.is_relative_to(root):
        asked = asked.relative_to(root)
    for part in (*parts, *asked.parts):
        if reason := protected_name(part):
            return reason
    if ".git" in map(str.casefold, root.parts):
        return protected_name(".git")
    inside = (path, *path.parents)[1 : len(parts) + 1]
    if any((folder / "HEAD").exists() and (folder / "objects").is_dir() for folder in inside):
        return _BARE_REPOSITORY
    return None
