"""Runs published clients on a task that overflows, directly and through the gateway, and prints one table.

Usage: python -m tests.clients [NAME …] [--json] [--list] [--gateway-only] [--learn] [--keep FOLDER]

Clients are installed once into ~/.cache/holdfast-clients (or HOLDFAST_CLIENTS). The model is played by a local server
that refuses what the provider would refuse, and has a window smaller than the client believes.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.clients.commands import CLIENTS, Client
from tests.clients.packages import NotInstalled
from tests.clients.runs import ClientRun, run_client

_HEAD = ("client", "version", "endpoint", "directly", "through the gateway", "requests", "compactions", "refused")


def _succeeds(direct: ClientRun | None, gateway: ClientRun) -> bool:
    worse = direct is None or not direct.finished or direct.own_summaries > gateway.own_summaries or direct.overflows
    return bool(worse and gateway.finished and gateway.compactions and not gateway.refused and not gateway.problems)


def _row(client: Client, version: str, direct: ClientRun | None, gateway: ClientRun) -> tuple[str, ...]:
    shown = "–" if direct is None else direct.outcome
    if direct is not None and direct.finished:
        shown = f"finished after {direct.overflows} errors and {direct.own_summaries} summaries of its own"
    counts = (gateway.requests, gateway.compactions, len(gateway.refused))
    return (client.name, version, client.endpoint, shown, gateway.outcome, *map(str, counts))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="clients; default: all")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each client")
    parser.add_argument("--list", action="store_true", help="print the names of all clients")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep homes, logs and stores of the runs here")
    parser.add_argument("--gateway-only", action="store_true", help="skip the direct runs")
    parser.add_argument(
        "--learn", action="store_true", help="do not tell the gateway the window: it learns from errors"
    )
    options = parser.parse_args()
    if options.list:
        print(*(client.name for client in CLIENTS), sep="\n")
        return 0
    known = {client.name: client for client in CLIENTS}
    chosen = [known[name] for name in options.names or known if name in known]
    if unknown := set(options.names) - known.keys():
        parser.error(f"unknown clients: {', '.join(sorted(unknown))}")
    rows, failed = [_HEAD], False
    for client in chosen:
        try:
            version = client.install()
        except NotInstalled as problem:
            print(f"{client.name}: skipped, {problem}", file=sys.stderr)
            continue
        folder = None if options.keep is None else options.keep / client.name
        direct = None
        if not options.gateway_only:
            direct = run_client(client, through_gateway=False, keep=folder and folder / "direct")
        gateway = run_client(client, through_gateway=True, learn=options.learn, keep=folder and folder / "gateway")
        succeeded = _succeeds(direct, gateway)
        failed |= not succeeded
        if options.json:
            shown = {"client": client.name, "version": version, "endpoint": client.endpoint, "succeeded": succeeded}
            runs = {"direct": direct and asdict(direct), "gateway": asdict(gateway)}
            print(json.dumps(shown | runs), flush=True)
            continue
        rows.append(_row(client, version, direct, gateway))
        print(
            f"{client.name}: {'ok' if succeeded else 'FAILED'}",
            *gateway.refused[:3],
            *gateway.problems,
            file=sys.stderr,
        )
    if not options.json:
        widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
