"""Import time, each in a new interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from benchmarks.measure import Options, Ratio, fastest


def run(options: Options) -> Iterator[Ratio]:
    nothing, ours, theirs = fastest(
        [partial(_python, code) for code in ("pass", "import holdfast", "import langchain_core.messages")],
        5 if options.quick else 10,
    )
    ours, theirs = ours - nothing, theirs - nothing
    yield Ratio(
        "import",
        "import langchain_core.messages / import holdfast, without interpreter startup",
        theirs / ours,
        seconds={"langchain_core.messages": theirs, "holdfast": ours},
    )


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
