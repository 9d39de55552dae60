"""Shell commands that the user may allow from now on, and as what: tables of programs, and a parser of plain commands.

A command is allowed by the words that it consists of, so only what is nothing but words is considered: a grammar of the
shell must find simple commands, joined by `&&`, `||`, `|` or `;`, without any expansion, redirection or assignment.

Of a program that only reads (`READ_ONLY`), all calls with listed options and paths in the folder are one rule. Of
others only the same words again are, and nothing of programs whose words do not say what would run (`RUNS_OTHERS`).

`git` runs code that the config of a repository names, as fsmonitor, filters and hooks. That is safe under a rule only
because the agent cannot write such a config unasked: see `protected_paths`, and `RUNS_OTHERS_BUT` without `git config`.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_ANY = "*"
"""In a list of options: all words are harmless, paths too."""
_GIT_LOG = """-p -u -s -w -b -z -i -E -F -n= -U= -M -S= -G= -L= -NUM --patch --no-patch --stat --stat= --shortstat
 --numstat --name-only --name-status --summary --oneline --graph --decorate --decorate= --no-decorate --all
 --branches --tags --remotes --pretty= --format= --abbrev-commit --date= --since= --until= --after= --before=
 --author= --grep= --follow --reverse --merges --no-merges --first-parent --max-count= --skip= --color --color=
 --no-color --word-diff --word-diff= --cached --staged --merge-base --ignore-all-space --ignore-space-change
 --diff-filter= --unified= --minimal --patience --histogram --no-ext-diff --no-textconv --no-renames --find-renames
 --topo-order --date-order --left-right"""
_GREP = """-i -v -n -l -L -c -r -w -x -o -h -H -s -q -E -F -P -I -a -A= -B= -C= -m= -e= -NUM --include= --exclude=
 --exclude-dir= --color --color= --ignore-case --line-number --files-with-matches --count --recursive"""
READ_ONLY: dict[str, str] = {
    "basename": "-a -s= -z",
    "cat": "-A -b -e -E -n -s -t -T -v --number --number-nonblank --show-all --show-ends --show-tabs --squeeze-blank",
    "cmp": "-b -l -s",
    "comm": "-1 -2 -3",
    "cut": "-b= -c= -d= -f= -s --bytes= --characters= --delimiter= --fields=",
    "df": "-h -i -T",
    "diff": "-b -B -C= -i -N -q -u -U= -w -y --brief --color= --ignore-all-space --side-by-side --unified --unified=",
    "dirname": "-z",
    "du": "-a -c -d= -h -k -m -s --human-readable --max-depth= --summarize --total",
    "echo": _ANY,
    "egrep": _GREP,
    "false": _ANY,
    "fgrep": _GREP,
    "file": "-b -i --brief --mime --mime-type",
    "find": """-a -and -depth -empty -iname -ipath -iregex -maxdepth -mindepth -mmin -mtime -name -newer -not -NUM -o
 -or -path -perm -print -print0 -prune -regex -size -type -xdev""",
    "git blame": "-w -M -C -l -s -e -f -n -L= --date= --porcelain --line-porcelain",
    "git branch": "-a -r -v --all --list --no-color --remotes --show-current --sort= --format= --verbose",
    "git cat-file": "-e -p -s -t",
    "git describe": "--abbrev= --all --always --contains --dirty --exact-match --long --tags",
    "git diff": _GIT_LOG,
    "git grep": """-A= -B= -c -C= -e= -E -F -h -H -i -l -L -n -o -p -P -v -w -W --break --cached --count
 --files-with-matches --heading --ignore-case --line-number --name-only --no-color --untracked""",
    "git log": _GIT_LOG,
    "git ls-files": """-c -d -k -m -o -s -t -u -z --cached --deleted --error-unmatch --exclude-standard --full-name
 --modified --others --stage""",
    "git ls-tree": "-d -l -r -t -z --full-tree --long --name-only",
    "git merge-base": "--all --fork-point --is-ancestor --octopus",
    "git reflog": "-n= -NUM --date= --oneline",
    "git remote": "-v --verbose",
    "git rev-list": "-n= -NUM --all --count --first-parent --max-count= --merges --no-merges --reverse --since=",
    "git rev-parse": """-q --abbrev-ref --git-dir --is-inside-work-tree --quiet --short --short= --show-prefix
 --show-toplevel --verify""",
    "git shortlog": "-e -n -s --since= --until=",
    "git show": _GIT_LOG,
    "git show-ref": "--hash --heads --tags",
    "git stash list": _GIT_LOG,
    "git stash show": _GIT_LOG,
    "git status": """-b -s -u -u= -v -z --ahead-behind --branch --ignored --ignored= --long --no-ahead-behind
 --no-renames --porcelain --porcelain= --short --show-stash --untracked-files --untracked-files=""",
    "git tag": "-l -n --list --sort= --format=",
    "git worktree list": "--porcelain -v -z",
    "grep": _GREP,
    "head": "-c= -n= -q -v -NUM --bytes= --lines= --quiet --verbose",
    "ls": """-1 -a -A -c -C -d -F -g -h -i -l -n -o -p -r -R -s -S -t -u -v -x -X --all --almost-all --color --color=
 --directory --group-directories-first --human-readable --recursive --reverse --sort= --time-style=""",
    "nl": "-b= -n= -s= -w=",
    "pwd": "-L -P",
    "readlink": "-e -f -m -n",
    "realpath": "-e -m -s",
    "rg": """-A= -B= -c -C= -e= -F -g= -i -l -m= -n -N -o -P -s -S -t= -T= -u -U -v -w -x --color= --count --files
 --files-with-matches --glob= --heading --hidden --ignore-case --json --line-number --max-count= --max-depth=
 --no-heading --no-ignore --sort= --stats --type= --type-list""",
    "seq": _ANY,
    "sort": """-b -c -C -d -f -g -h -i -k= -M -n -r -s -t= -u -V -z --field-separator= --key= --numeric-sort
 --reverse --unique""",
    "stat": "-c= -t --format= --printf= --terse",
    "tail": "-c= -n= -q -v -NUM --bytes= --lines= --quiet --verbose",
    "tr": "-c -C -d -s -t",
    "tree": "-a -C -d -D -f -h -I= -L= -n -p -P= -s --dirsfirst --gitignore --noreport --prune",
    "true": _ANY,
    "uname": "-a -m -r -s",
    "uniq": "-c -d -f= -i -s= -u -w= --count --ignore-case --repeated --unique",
    "wc": "-c -l -L -m -w --bytes --chars --lines --words",
    "which": "-a",
    "whoami": "",
}
"""Programs that change nothing and run nothing, with the options of which that is true.

`-n=` and `--lines=` take a value in the same word, `-NUM` is a number such as -20. What is not listed is left out since
it writes (`sort -o`), runs a program (`rg --pre`), follows links (`grep -R`), waits (`tail -f`), or is rare.
"""
_MOST_OPERANDS = {"git branch": 0, "git reflog": 0, "git remote": 0, "git tag": 0, "uniq": 1}
"""With more operands, these write."""
RUNS_OTHERS_BUT: dict[str, str] = {
    "bundle": "check install list update",
    "cabal": "build test",
    "cargo": "build check clippy doc fmt run test tree update",
    "composer": "install update validate",
    "conda": "install list",
    "dart": "analyze format test",
    "docker": "build images inspect logs ps pull version",
    "dotnet": "build format restore test",
    "git": """add branch checkout cherry-pick clone commit fetch init merge mv pull push reset restore revert rm stash
 switch tag""",
    "go": "build env fmt list mod test version vet",
    "hatch": "build",
    "kubectl": "apply describe get logs version",
    "mix": "compile format test",
    "npm": "audit build ci i install list ls outdated pack run run-script start t test view",
    "opam": "install list",
    "pdm": "install lock",
    "pip": "check download freeze install list show uninstall",
    "pipenv": "install lock",
    "pnpm": "audit build i install list outdated run test why",
    "podman": "build images inspect logs ps pull version",
    "poetry": "add build check install lock remove show update",
    "python": "",
    "rustup": "show update",
    "stack": "build test",
    "swift": "build test",
    "uv": "add build lock pip remove sync tree venv",
    "yarn": "add audit build info install list outdated remove run test why",
}
"""Programs that run others by most of their subcommands; the same words may be allowed with these."""
_PYTHON_MODULES = frozenset("black flake8 isort mypy pyright pytest ruff unittest".split())
"""`python -m MODULE` is what these are called by."""
RUNS_OTHERS = frozenset(
    # shells, and words of the shell that change what the next ones mean
    """. alias ash bash bind builtin busybox cd cmd command csh dash declare elvish enable env eval exec export fish
    hash ksh local mksh nu oksh popd powershell pushd pwsh rbash read readonly set sh shopt source tcsh toybox trap
    typeset ulimit umask unalias unset xonsh yash zsh """
    # wrappers: sudo and its like, schedulers, tracers, debuggers, sandboxes, remote shells, terminals
    """at batch bwrap capsh catchsegv chroot chrt chronic concurrently cron crontab cross daemonize dbus direnv dlx
    doas dotenv dotenvx dtruss entr expect fakeroot faketime fd fdfind firejail flatpak flock foreman gdb heaptrack
    honcho hyperfine ionice jdb ld linux32 linux64 lldb ltrace lxc lxd mosh multipass nc ncat nice nodemon nohup
    nsenter numactl overmind parallel perf pkexec pm2 proot proxychains qemu rlwrap rr rsh rsync rtk run runuser sandbox
    scp screen script scriptreplay setarch setpriv setsid sftp snap socat ssh sshpass start stdbuf strace su sudo
    sudoedit supervisord systemd tar taskset telnet time timeout tmux torify torsocks tsocks unbuffer unshare vagrant
    valgrind watch watchexec wine winpty xargs xvfb zellij zip cpio """
    # editors and pagers
    """code ed emacs emacsclient ex helix hx info less man micro more most nano nvim pico subl vi view vim vimdiff """
    # interpreters
    """awk bc bun clojure dc deno elixir erl escript gawk gforth ghci gnuplot groovy gs guile iex ipython irb java
    jjs jruby jshell julia kotlin ksh lua luajit m4 mawk mongosh mysql nawk node nodejs octave osascript perl php
    psql pypy pythonw r racket rhino rscript ruby runghc sbcl scala scheme sed gsed sqlite sqlplus tclsh ts tsx wish """
    # runners of packages and of versions of programs
    """asdf bunx corepack fnm mise n nix npx nvm pipx pkgx pnpx pyenv rbenv rye sdk uvx volta""".split()
)
"""Programs that run whatever their arguments, or the files that these name, say: they are asked every time.

A name stands for all its versions and variants, wherever they are: perl5.36, /bin/bash, vim.tiny, qemu-x86_64.
"""
_PLAIN_WORD = re.compile(r"(?:[\w./@%+,^-]|[:=](?!~)|(?<!^)~)+")
"""No expansion is in it; the shell expands a tilde at the beginning, and some do after : and =."""
_NUMBER_OPTION = re.compile(r"-\d+")
_VARIANT = re.compile(r"[-.\d]")
_JOINS = frozenset(("&&", "||", "|", ";"))


class CommandScope(msgspec.Struct, frozen=True):
    """What may be allowed from now on instead of this command alone."""

    rules: tuple[str, ...] = ()
    """A rule for each of its programs; none if it has to be asked every time."""
    about: str = ""
    """What the rules match, with an example of what they do not match; or why there are none."""
    reads_only: bool = False


_NOT_PLAIN = CommandScope(about="asked every time: more than plain words")


def command_scope(line: str, root: Path | None = None) -> CommandScope:
    """Returns the rules that would allow a command; `root` is the folder in which its paths must stay."""
    commands = parse_plain_commands(line)
    if not commands:
        return _NOT_PLAIN
    scopes = [_scope(words, root) for words in commands]
    if refused := next((one for one in scopes if not one.rules), None):
        return refused
    rules = tuple(dict.fromkeys(rule for one in scopes for rule in one.rules))
    about = "; ".join(dict.fromkeys(one.about for one in scopes))
    return CommandScope(rules, about, all(one.reads_only for one in scopes))


def _scope(words: Sequence[str], root: Path | None) -> CommandScope:
    """Returns what may be allowed of one command."""
    called = words[0].rsplit("/", 1)[-1].lower().removesuffix(".exe")
    family = _VARIANT.split(called)[0]
    again = CommandScope((shlex.join(words),), f"`{shlex.join(words)}`, these words only")
    if called in RUNS_OTHERS or family in RUNS_OTHERS or not called or "=" in words[0]:
        return CommandScope(about=f"asked every time: {words[0]} runs other programs")
    if [*words[:2]] == ["git", "--no-pager"]:
        words = ["git", *words[2:]]
    program = next((name for n in (3, 2, 1) if (name := " ".join(words[:n])) in READ_ONLY), None)
    if program is not None:
        own = words[program.count(" ") + 1 :]
        if not (unlisted := _unlisted(program, own, root)):
            other = "> x" if READ_ONLY[program] == _ANY else "--output=x" if words[0] == "git" else "../x"
            about = f"`{program} *` with known options and files of this folder, not `{program} {other}`"
            return CommandScope((f"{program} *",), about, reads_only=True)
        if program not in ("git branch", "git tag"):
            return CommandScope(about=f"asked every time: {unlisted} is not known to be harmless here")
    if family in RUNS_OTHERS_BUT:
        is_module = family == "python" and words[1:2] == ["-m"] and words[2:3] and words[2] in _PYTHON_MODULES
        if not is_module and (len(words) < 2 or words[1] not in RUNS_OTHERS_BUT[family].split()):
            return CommandScope(about=f"asked every time: {shlex.join(words[:2])} may run other programs")
    return again


def _unlisted(program: str, words: Sequence[str], root: Path | None) -> str:
    """Returns the first word that the table does not allow; empty if there is none.

    An option's value in a word of its own is taken for an operand: then no word after it can pass for a value.
    """
    options = frozenset(READ_ONLY[program].split())
    if _ANY in options:
        return ""
    operands = [word for word in words if not word.startswith("-") or word == "-"]
    if len(operands) > _MOST_OPERANDS.get(program, len(operands)):
        return operands[-1]
    for word in words:
        value = word
        if word.startswith("-") and word not in ("-", "--"):
            if not _is_listed(word, options):
                return word
            value = word.partition("=")[2]
        if not _stays_inside(value, root):
            return word
    return ""


def _is_listed(word: str, options: frozenset[str]) -> bool:
    if word in options or (_NUMBER_OPTION.fullmatch(word) and "-NUM" in options):
        return True
    if word.startswith("--"):
        return f"{word.partition('=')[0]}=" in options
    for letter in word[1:]:
        if f"-{letter}=" in options:
            return True
        if f"-{letter}" not in options:
            return False
    return True


def _stays_inside(word: str, root: Path | None) -> bool:
    """Whether a word that may be a path stays in the folder, links resolved."""
    if root is None:
        return not word.startswith("/") and ".." not in word.split("/")
    try:
        found = (root / word).resolve()
    except (OSError, RuntimeError, ValueError):
        return False
    return found == root or root in found.parents


# -- the parser ---------------------------------------------------------------------------------------------


class _NotPlain(Exception):
    pass


def parse_plain_commands(line: str) -> list[list[str]]:
    """Returns the words of each command of a line; empty if it is not made of plain commands only."""
    if not line.isprintable() or sys.platform == "win32" or (parser := _parser()) is None:
        return []
    source = line.encode()
    tree = parser.parse(source)
    pieces: list[tuple[int, int]] = []
    try:
        if tree.root_node.has_error:
            return []
        commands = list(_commands(tree.root_node, pieces))
    except _NotPlain:
        return []
    end = 0
    for start, stop in (*pieces, (len(source), len(source))):  # nothing that the grammar passes over
        if source[end:start].strip(b" "):
            return []
        end = stop
    return commands


@cache
def _parser() -> Parser | None:
    """The grammar is part of the chat extra; without it, no command is plain."""
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError:
        return None
    return Parser(Language(tree_sitter_bash.language()))


def _commands(node: Node, pieces: list[tuple[int, int]]) -> Iterator[list[str]]:
    """Yields the words of each command below a node, and adds to `pieces` what was understood."""
    if node.type == "command":
        words = [_word(_only_child(child) if child.type == "command_name" else child) for child in node.children]
        pieces += [(child.start_byte, child.end_byte) for child in node.children]
        yield words
    elif node.type in ("program", "list", "pipeline"):
        for child in node.children:
            yield from _commands(child, pieces)
    elif node.type in _JOINS:
        pieces.append((node.start_byte, node.end_byte))
    else:
        raise _NotPlain


def _only_child(node: Node) -> Node:
    if len(node.children) != 1:
        raise _NotPlain
    return node.children[0]


def _word(node: Node) -> str:
    """Returns the word that the shell makes of a node without expanding anything."""
    text = (node.text or b"").decode()
    match node.type:
        case "word" | "number" if _PLAIN_WORD.fullmatch(text):
            return text
        case "raw_string":
            return text[1:-1]
        case "string" if not set("$`\\!") & set(text):
            return text[1:-1]
        case "concatenation":
            return "".join(map(_word, node.children))
    raise _NotPlain
