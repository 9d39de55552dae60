"""P3 on real sessions: accuracy of the context size right before each reply."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from holdfast.messages import decode_all
from holdfast.tokens import Tokenizer, Usage
from holdfast.transcripts import Transcript, TranscriptEntry
from real_sessions import SESSIONS, transcript

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "calibration.py"


@pytest.fixture(scope="module")
def calibration() -> ModuleType:
    if not BENCHMARK.exists():
        pytest.skip("the benchmarks are not part of this distribution")
    spec = importlib.util.spec_from_file_location("calibration_benchmark", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.sampled(20)
@pytest.mark.skipif(not SESSIONS, reason="HOLDFAST_SESSIONS names no folder with sessions")
@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name[:13])
def test_calibration_real_session_predicts_size_within_few_percent(path: Path, calibration: ModuleType) -> None:
    """The median error of a session is under 10 %, and far less over all; without calibration it would be 15 to 60."""
    errors = calibration.measure(transcript(path))
    assert len(errors["calibrated"]) > 20
    assert calibration.quantile(errors["calibrated"], 0.5) < 0.02
    assert calibration.quantile(errors["calibrated"], 0.9) < 0.10
    assert calibration.quantile(errors["o200k"], 0.5) > calibration.quantile(errors["calibrated"], 0.5)


@pytest.mark.skipif(not SESSIONS, reason="HOLDFAST_SESSIONS names no folder with sessions")
def test_calibration_real_session_without_report_is_within_ten_percent(calibration: ModuleType) -> None:
    """Right after a compaction only the ratio and the overhead are known."""
    back: list[float] = []
    for path in SESSIONS[::4]:
        back += calibration.measure(transcript(path))["cut back"]
    assert calibration.quantile(back, 0.5) < 0.05
    assert calibration.quantile(back, 0.9) < 0.10


def test_calibration_other_tokenizer_is_learned_after_ten_replies(calibration: ModuleType) -> None:
    """A synthetic session: 20,000 tokens of hidden overhead, and 1.4 tokens per counted token."""
    entries: list[TranscriptEntry] = []
    units = 0
    for turn in range(60):
        asked = {"role": "user", "content": f"What is in file number {turn}? " * (5 + turn % 7)}
        answered = {"role": "assistant", "content": f"It holds {turn} lines of text. " * (9 + turn % 5)}
        sizes = [Tokenizer().measure(message) for message in decode_all([asked, answered])[0]]
        usage = Usage(input=round(20_000 + 1.4 * (units + sizes[0])), output=round(1.4 * sizes[1]))
        units += sum(sizes)
        entries += [TranscriptEntry(asked), TranscriptEntry(answered, usage=usage)]
    errors = calibration.measure(Transcript("plain", None, tuple(entries)))
    assert len(errors["calibrated"]) == 50
    assert max(errors["calibrated"]) < 0.01
    assert max(errors["cut back"]) < 0.05
    assert min(errors["o200k"]) > 0.5
