"""Shell completion: the script of each shell, and the words it asks for."""

from __future__ import annotations

import pytest
from cli_files import Run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, run: Run) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0 and f"_HOLDFAST_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("holdfast comp", "plain,compact"),
        ("holdfast compact --strategy prune+tok", "plain,prune+tokens"),
        ("holdfast compact --format anth", "plain,anthropic"),
        ("holdfast compact --preset claude", "plain,claude_code"),
        ("holdfast compact --summarizer open", "plain,openai:"),
        ("holdfast presets work", "plain,workstream"),
        ("holdfast compact ./", "file,./"),
    ],
)
def test_completion_completes_words(words: str, found: str, run: Run) -> None:
    place = str(len(words.split()) - 1)
    done = run(_HOLDFAST_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=place)
    assert found in done.stdout.splitlines()
