"""Files that other programs run or obey: a change of them is always asked, whatever is allowed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.agent.tools import (
    Permission,
    PermissionRequest,
    PermissionRules,
    Toolbox,
    WorkingFolder,
    command_tool,
    file_tools,
)
from holdfast.io.processes import run_shell
from holdfast.messages import ToolCall

pytestmark = pytest.mark.anyio
PROTECTED = """
.git/config
.git/hooks/pre-commit
.GIT/config
vendor/tides/.git/config
.git
.gitmodules
.gitattributes
HEAD
charts/HEAD
.hg/hgrc
.agents/skills/tide.md
.codex/config.toml
.claude/settings.json
.Claude/settings.json
.claude/commands/tide.md
.gemini/settings.json
.cursor/rules/tide.mdc
.cursorrules
.holdfast/settings.toml
.holdfast/commands/tide.md
.mcp.json
charts/.mcp.json
AGENTS.md
charts/agents.md
AGENTS.override.md
CLAUDE.md
CLAUDE.local.md
GEMINI.md
.github/workflows/ci.yml
.github/copilot-instructions.md
.gitlab-ci.yml
.circleci/config.yml
Jenkinsfile
azure-pipelines.yml
.travis.yml
.buildkite/pipeline.yml
.vscode/tasks.json
.idea/workspace.xml
.devcontainer/devcontainer.json
.devcontainer.json
tides.code-workspace
.dir-locals.el
.envrc
.env
.tool-versions
mise.toml
Makefile
charts/makefile
tides.mk
CMakeLists.txt
justfile
Rakefile
setup.py
setup.cfg
pyproject.toml
conftest.py
tests/conftest.py
tox.ini
noxfile.py
sitecustomize.py
tides.pth
package.json
charts/package.json
.npmrc
.yarnrc.yml
pnpm-workspace.yaml
vite.config.ts
jest.config.js
.eslintrc.cjs
build.rs
Cargo.toml
.cargo/config.toml
build.gradle
gradlew
pom.xml
.mvn/extensions.xml
Gemfile
Dockerfile
docker-compose.yml
.pre-commit-config.yaml
.husky/pre-commit
lefthook.yml
flake.nix
.bashrc
.bash_profile
.profile
.zshrc
.zshenv
.vimrc
.exrc
.nvimrc
.nvim.lua
.tmux.conf
.gdbinit
.ssh/authorized_keys
.config/fish/config.fish
.netrc
node_modules/tides/index.js
.venv/bin/python
site-packages/tides.py
"""
OPEN = """
tides.txt
src/tides.py
tests/test_tides.py
docs/agents.txt
README.md
head.py
config
hooks/pre-commit
.gitignore
.editorconfig
git/config
main.rs
"""


class AskedUser:
    def __init__(self, *answers: Permission) -> None:
        self.answers, self.asked = list(answers), list[PermissionRequest]()

    async def __call__(self, request: PermissionRequest) -> Permission:
        self.asked.append(request)
        return self.answers.pop(0) if self.answers else "no"


def toolbox(folder: Path, user: AskedUser, *rules: str) -> Toolbox:
    working = WorkingFolder(folder)
    permissions = PermissionRules(working.root)
    for rule in rules:
        permissions.add(rule)
    return Toolbox([*file_tools(working), command_tool(working)], user, permissions=permissions)


def write(path: str, content: str = "x") -> ToolCall:
    return ToolCall("1", "write_file", {"path": path, "content": content})


@pytest.mark.parametrize("path", PROTECTED.split())
async def test_protected_path_is_asked_under_a_rule_and_offers_none(tmp_path: Path, path: str) -> None:
    user = AskedUser()
    answer = await toolbox(tmp_path, user, "write_file", "edit_file").run(write(path))
    assert answer.is_error and [request.rule for request in user.asked] == [None]
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("path", OPEN.split())
async def test_other_path_is_written_under_a_rule(tmp_path: Path, path: str) -> None:
    user = AskedUser()
    assert not (await toolbox(tmp_path, user, "write_file").run(write(path))).is_error
    assert not user.asked and (tmp_path / path).read_text() == "x"


async def test_path_is_protected_by_its_name_and_by_where_its_links_lead(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "real.txt").write_text("calm")
    (tmp_path / "harmless").symlink_to(".git")
    (tmp_path / "AGENTS.md").symlink_to("real.txt")
    user = AskedUser()
    box = toolbox(tmp_path, user, "write_file", "edit_file")
    edit = ToolCall("1", "edit_file", {"path": "AGENTS.md", "old": "calm", "new": "storm"})
    for call in (write("harmless/config"), edit, write("x/../.git/config"), write(str(tmp_path / ".git" / "config"))):
        assert (await box.run(call)).is_error, call
    assert len(user.asked) == 4 and not os.listdir(tmp_path / ".git")


async def test_two_ordinary_answers_do_not_run_the_models_code(tmp_path: Path) -> None:
    """`write_file` always and `git status` always, and git's fsmonitor would run what the model wrote."""
    await run_shell("git init -q", cwd=tmp_path)
    user = AskedUser("always", "always")
    box = toolbox(tmp_path, user)
    await box.run(write("tides.txt"))
    await box.run(ToolCall("1", "run_command", {"command": "git status"}))
    config = (tmp_path / ".git" / "config").read_text() + "\tfsmonitor = touch owned; false\n"
    await box.run(write(".git/config", config))
    await box.run(ToolCall("1", "run_command", {"command": "git status"}))
    assert not (tmp_path / "owned").exists()
    assert [request.line for request in user.asked] == ["tides.txt", "git status", ".git/config"]


async def test_bare_repository_of_the_model_is_no_repository(tmp_path: Path) -> None:
    """Git takes a folder with HEAD, objects and refs for a repository, and runs what its config says."""
    (tmp_path / "objects").mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    user = AskedUser()
    assert (await toolbox(tmp_path, user, "write_file").run(write("config"))).is_error and user.asked
