"""Sends random requests of each protocol through a gateway and compares what was sent with what arrived.

Usage: python tests/stress/gateway_bytes.py [--examples 1000]

Prints how many requests and replies arrived as they were sent; the first that did not is shown and ends the run.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gateway"))

from exactness import PATHS, Exchange, exchanges, running_check


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares both ends of the gateway.")
    parser.add_argument("--examples", type=int, default=1_000, help="exchanges of each protocol")
    arguments = parser.parse_args()
    logging.disable()  # most requests are malformed, which the gateway notes
    how = settings(
        max_examples=arguments.examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    for protocol in PATHS:
        started = time.perf_counter()
        counts = _compare(protocol, how)
        shown = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        print(f"{protocol}: all as sent in {time.perf_counter() - started:.0f} s ({shown})", flush=True)


def _compare(protocol: str, how: settings) -> Counter[str]:
    """Compares random exchanges of a protocol and counts what they had."""
    counts: Counter[str] = Counter()
    with running_check() as check:

        @how
        @given(exchanges(protocol))
        def compare(exchange: Exchange) -> None:
            check(exchange)
            ends = exchange.request, exchange.reply
            counts["exchanges"] += 1
            counts["compressed"] += any(message.get(b"content-encoding") for message in ends)
            counts["chunked"] += exchange.request_chunks is not None or exchange.reply_chunks is not None
            counts["streams"] += exchange.reply.get(b"content-type") == b"text/event-stream"
            counts["other calls"] += all(known not in exchange.request.first for known, _ in PATHS.values())

        compare()
    return counts


if __name__ == "__main__":
    main()
