"""Which commands may be allowed from now on, and as what: a table to check.

Each command is the call of a model. The third column is the rule that the user is offered: `None` if it is asked every
time, the same words if only they are allowed, and a pattern that ends in ` *` for programs that only read.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.agent.tools import (
    AgentTool,
    Permission,
    PermissionRequest,
    PermissionRules,
    Toolbox,
    command_rules,
)
from holdfast.agent.tools.command import RunCommand
from holdfast.messages import ToolCall

pytest.importorskip("tree_sitter_bash")
pytestmark = pytest.mark.anyio


class AskedUser:
    """Answers approval requests and remembers them."""

    def __init__(self, answer: Permission = "no") -> None:
        self.answer, self.asked = answer, list[PermissionRequest]()

    async def __call__(self, request: PermissionRequest) -> Permission:
        self.asked.append(request)
        return self.answer


def toolbox(folder: Path, user: AskedUser, *rules: str) -> Toolbox:
    """Holds a tool that runs nothing."""

    async def run(given: RunCommand) -> str:
        return "ran"

    permissions = PermissionRules(folder)
    for rule in rules:
        permissions.add(rule)
    return Toolbox([AgentTool("run_command", "", RunCommand, run, changes=True)], user, permissions=permissions)


async def offered(folder: Path, command: str) -> str | None:
    """Returns the rule offered for a command, without the tool's name."""
    user = AskedUser()
    await toolbox(folder, user).run(ToolCall("1", "run_command", {"command": command}))
    assert len(user.asked) == 1
    rule = user.asked[0].rule
    return None if rule is None else rule.removeprefix("run_command ")


async def is_asked(folder: Path, command: str, *rules: str) -> bool:
    user = AskedUser()
    await toolbox(folder, user, *rules).run(ToolCall("1", "run_command", {"command": command}))
    return bool(user.asked)


RUNS_OTHERS = """
# shells, by name, path, version and variant
bash -c ls
/bin/bash -c ls
/usr/bin/sh build.sh
/bin/dash build.sh
bash-5.2 build.sh
./bash build.sh
/bin/BASH build.sh
zsh -c ls
busybox sh
pwsh -c ls
'bash' build.sh
ba'sh' build.sh
# words of the shell itself
source build.sh
. build.sh
eval ls
exec ls
command ls
builtin cd
trap ls EXIT
alias ls=rm
cd charts
# wrappers
/usr/bin/env ls
env ls
/usr/bin/sudo ls
sudo ls
doas ls
su -c ls
nice ls
nohup ls
setsid ls
timeout 5 ls
time ls
stdbuf -o0 ls
xargs rm
parallel rm
flock lock ls
watch ls
script -c ls
chroot /mnt ls
unshare ls
nsenter ls
systemd-run ls
fakeroot ls
xvfb-run ls
hyperfine ls
ssh host ls
scp a host:b
rsync -e ssh a b
tmux new ls
at now
crontab tab
# debuggers, tracers, editors, pagers
strace ls
ltrace ls
gdb ls
/usr/bin/gdb ls
lldb ls
valgrind ls
perf record ls
vim tides.txt
vim.tiny tides.txt
nvim tides.txt
emacs tides.txt
less tides.txt
man ls
# interpreters
python tides.py
python3 tides.py
/usr/bin/python3 tides.py
python3.12 -c pass
python -m tides
perl5.36 tides.pl
/usr/bin/perl tides.pl
ruby tides.rb
node tides.js
nodejs tides.js
deno run tides.ts
bun tides.ts
php tides.php
lua5.4 tides.lua
Rscript tides.R
awk -f tides.awk
gawk -f tides.awk
sed -n 1p tides.txt
sqlite3 tides.db
psql tides
java -jar tides.jar
osascript tides.scpt
# runners of package managers, containers and version managers
uv run tides
uv tool run tides
uvx tides
pipx run tides
poetry run tides
poetry shell
pipenv run tides
pdm run tides
hatch run tides
conda run tides
npm exec tides
npm x tides
npm --prefix charts exec tides
npx tides
pnpm dlx tides
yarn dlx tides
yarn tides
bundle exec tides
go run tides
go generate
rustup run stable tides
rbenv exec tides
pyenv exec tides
mise exec tides
nix run tides
direnv exec . tides
docker run tides
docker exec harbor ls
docker --context x run tides
docker compose run tides
docker-compose run tides
podman run tides
kubectl exec harbor ls
lxc exec harbor ls
flatpak run tides
vagrant ssh
# programs that run others if their options say so
find . -exec rm {} +
find . -execdir rm '{}' ';'
find . -delete
find . -fprintf out x
rg --pre ./x tides
rg -z tides
sort -o tides.txt tides.txt
sort --compress-program=./x tides.txt
tar --to-command=./x -xf a.tar
git config core.fsmonitor ./x
git -c core.fsmonitor=./x status
git -C charts status
git diff --output=tides.txt
git diff --outp=tides.txt
git diff --ext-diff
git log --output=tides.txt
git log --output tides.txt
git grep -O./x tides
git grep --open-files-in-pager=./x tides
git bisect run ./x
git rebase -x ./x
git submodule foreach ls
git remote add tides ext::ls
git difftool
git x
"""
SHELL_SYNTAX = r"""
git status; touch X &
git status > tides.txt
git status >> tides.txt
git status 2>&1
git log < tides.txt
git log << X
git log $(touch X)
git log `touch X`
git log "$(touch X)"
git log "$HOME"
git log $HOME
cat *.py
cat tide?.txt
cat [t]ides.txt
cat {a,b}
cat ~/tides.txt
cat ~
cat a:~/x
cat a=~/x
X=1 git status
(git status)
{ git status; }
! git status
git status |& cat
if true; then ls; fi
for i in a; do ls; done
while true; do ls; done
f() { ls; }
case a in a) ls;; esac
[[ a == b ]]
[ a = b ]
cat <(ls)
cat $'a'
cat $"a"
cat a\ b
ls # git status
#
git 'status
git status ||
git status | sh
git status && bash x
"""
EXACT = """
pytest
pytest -q tests/test_tides.py
python -m pytest -q
python3 -m unittest
npm test
npm run build
npm install
yarn install
make
make check
cargo test
go test ./...
uv sync
pip install tides
bundle install
docker build .
kubectl get pods
git add tides.txt
git commit -m 'Low water'
git push
git fetch
rm a.txt
rm -r boats
touch tides.txt
cp a.txt b.txt
mkdir charts
curl http://harbor.example/tides
./build.sh
tides --high
git status && pytest -q
"""
PATTERNS = {
    "git status": "git status *",
    "git status --short": "git status *",
    "git --no-pager log": "git log *",
    "git log --oneline -20 -- tides.txt": "git log *",
    "git log --since=yesterday main..dev": "git log *",
    "git diff HEAD~1": "git diff *",
    "git diff 'HEAD~1' --stat": "git diff *",
    "git show --stat HEAD": "git show *",
    "git branch": "git branch *",
    "git branch -a": "git branch *",
    "git branch --list": "git branch *",
    "git branch dev": "git branch dev",
    "git branch -D dev": "git branch -D dev",
    "git stash list": "git stash list *",
    "git stash": "git stash",
    "ls": "ls *",
    "ls -la charts": "ls *",
    "cat tides.txt": "cat *",
    "cat -- tides.txt": "cat *",
    "head -20 tides.txt": "head *",
    "head -n5 tides.txt": "head *",
    "tail -f tides.txt": None,
    "grep -rn 'low water' charts": "grep *",
    "grep --include='*.py' -r low": "grep *",
    "grep -f words.txt low": None,
    "rg -i low charts": "rg *",
    "find . -name '*.py' -type f": "find *",
    "wc -l tides.txt": "wc *",
    "sort -k2 -n tides.txt": "sort *",
    "uniq -c tides.txt": "uniq *",
    "uniq tides.txt out.txt": None,
    "tree -o out.txt": None,
    "echo low water": "echo *",
    "echo -e '$HOME; `ls`'": "echo *",
    "seq 400": "seq *",
    "git log --oneline | head -5": "git log * and head *",
    "cat a.txt && cat b.txt; ls": "cat * and ls *",
    "git status && git add tides.txt": "git status * and git add tides.txt",
    # reading, but outside of the folder
    "cat /etc/passwd": None,
    "cat ../secret": None,
    "cat charts/../../secret": None,
    "cat out": None,
    "grep -r low /home": None,
    "cat '~/x'": "cat *",
    "rg --glob=/etc/x low": None,
}


def lines(table: str) -> list[str]:
    return [line for line in table.strip().splitlines() if line and not line.startswith("# ")]


def test_table_has_at_least_77_programs_that_run_others() -> None:
    assert len(lines(RUNS_OTHERS)) >= 77


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "harbor").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "harbor" / "out").symlink_to(tmp_path / "secret")
    return tmp_path / "harbor"


@pytest.mark.parametrize("command", lines(RUNS_OTHERS))
async def test_program_that_runs_others_is_asked_every_time(folder: Path, command: str) -> None:
    assert await offered(folder, command) is None


@pytest.mark.parametrize("command", [*lines(SHELL_SYNTAX), "ls\nrm x", "git status\u202e", "ls\u00a0-l", "ls\tx", ""])
async def test_what_is_no_plain_command_is_asked_every_time(folder: Path, command: str) -> None:
    if command:
        assert await offered(folder, command) is None


@pytest.mark.parametrize("command", lines(EXACT))
async def test_other_commands_are_allowed_with_the_same_words_only(folder: Path, command: str) -> None:
    rule = await offered(folder, command)
    assert rule == command.replace("git status &&", "git status * and")
    if "&&" not in command:
        assert not await is_asked(folder, command, f"run_command {rule}")
        assert await is_asked(folder, f"{command} x", f"run_command {rule}")


@pytest.mark.parametrize("command", PATTERNS)
async def test_reading_program_is_allowed_with_listed_options_and_files_of_the_folder(
    folder: Path, command: str
) -> None:
    assert await offered(folder, command) == PATTERNS[command]


async def test_pattern_covers_what_it_shows_and_a_compound_all_of_its_commands(folder: Path) -> None:
    rules = ("run_command git log *", "run_command head *")
    for command in ("git log -p tides.txt", "git log --oneline | head -5", "head tides.txt; git log"):
        assert not await is_asked(folder, command, *rules), command
    for command in ("git log | tail -5", "git log --output=x", "git log | sh", "git status", "head out", "head /etc/x"):
        assert await is_asked(folder, command, *rules), command
    assert await is_asked(folder, "git log | head -5", rules[0])


async def test_always_adds_a_rule_for_each_command_of_a_compound(folder: Path) -> None:
    user = AskedUser("always")
    box = toolbox(folder, user)
    for command in ("cat a.txt | grep low && make", "grep -i high b.txt", "make", "make all"):
        await box.run(ToolCall("1", "run_command", {"command": command}))
    assert [request.rule for request in user.asked] == [
        "run_command cat * and grep * and make",
        "run_command make all",
    ]


async def test_request_says_what_the_rule_does_not_match(folder: Path) -> None:
    for command, about in {
        "git diff": "not `git diff --output=x`",
        "cat a.txt": "files of this folder, not `cat ../x`",
        "pytest -q": "`pytest -q`, these words only",
        "sudo ls": "asked every time: sudo runs other programs",
        "rg --pre=./x low": "asked every time: --pre=./x is not known to be harmless here",
        "ls > x": "asked every time: more than plain words",
    }.items():
        user = AskedUser()
        await toolbox(folder, user).run(ToolCall("1", "run_command", {"command": command}))
        assert about in user.asked[0].about


async def test_rule_of_an_earlier_version_covers_its_own_words_only(folder: Path) -> None:
    """It meant all commands that begin so."""
    for rule, command in (("rm", "rm -rf boats"), ("git config", "git config x y"), ("git diff", "git diff")):
        assert await is_asked(folder, command, f"run_command {rule}")


async def test_without_the_grammar_every_command_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_bash", None)
    command_rules._parser.cache_clear()
    try:
        assert await offered(folder, "ls") is None
    finally:
        command_rules._parser.cache_clear()
