"""The same history gives the same notes, byte for byte, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings

import histories
from holdfast import compact
from holdfast.triggers import always
from real_sessions import FILES

PRINT = """
import hashlib, json, sys
from pathlib import Path
from holdfast import compact
from holdfast.messages import decode_all, encode_all
from holdfast.transcripts import read_transcript
for path in sys.argv[1:]:
    script = read_transcript(Path(path))
    messages = encode_all(decode_all(script.messages, script.format)[0], "openai-chat")
    for target in (700, 1_500):
        result = compact(messages, budget=2 * target, target=target)
        text = json.dumps([result.messages, result.checkpoint.carry.ledger])
        print(result.outcome, hashlib.sha256(text.encode()).hexdigest())
"""


def test_page_does_not_depend_on_hash_seed() -> None:
    paths = [path for path in FILES if path.name in ("harbor.json", "support.json")]
    assert len(paths) == 2
    printed = {_printed(paths, seed) for seed in ("0", "4711")}
    assert len(printed) == 1, printed


def _printed(paths: Sequence[Path], seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", PRINT, *map(str, paths)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.count("compacted") == 2 * len(paths)
    return done.stdout


@given(messages=histories.wire("openai-chat"))
@settings(max_examples=min(60, settings().max_examples))
def test_compacting_twice_gives_equal_results(messages: list[dict[str, Any]]) -> None:
    options: dict[str, Any] = {"budget": 10**6, "target": 300, "estimator": "chars/4", "trigger": always}
    first, again = (compact(messages, format="openai-chat", **options) for _ in range(2))
    assert first.messages == again.messages
    assert first.checkpoint == again.checkpoint
