"""Runs several programs in this process, one after the other, and prints one JSON object for each.

Usage: python -m tests.integrations.run_programs URL FILE [URL FILE …]

The URL is that of the provider. The programs share the imports of the SDKs, which take longer than the programs; what
the SDKs leave open ends with the process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import traceback
import warnings


def main(pairs: list[tuple[str, str]]) -> None:
    warnings.simplefilter("ignore")
    for url, program in pairs:
        os.environ |= {"OPENAI_BASE_URL": url, "ANTHROPIC_BASE_URL": url.removesuffix("/v1")}
        printed, problem, names = io.StringIO(), "", {}
        with contextlib.redirect_stdout(printed):
            try:
                names = runpy.run_path(program, run_name="__main__")
            except Exception:
                problem = traceback.format_exc()
        if "litellm" in sys.modules:
            sys.modules["litellm"].callbacks = []  # its callbacks are global
        answer = str(names.get("answer", printed.getvalue().strip().rpartition("\n")[2]))
        print(json.dumps({"answer": answer, "printed": printed.getvalue(), "problem": problem}), flush=True)


if __name__ == "__main__":
    given, sys.argv[1:] = sys.argv[1:], []
    main(list(zip(given[::2], given[1::2], strict=True)))
