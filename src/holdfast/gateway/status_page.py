"""The status page at `/`: what the gateway has done for its caller, as HTML without scripts or as JSON."""

from __future__ import annotations

from html import escape
from typing import Any

import msgspec

from ..io.http_server import HttpReply
from ..sessions import SessionService
from .metrics import GatewayMetrics, OwnerCounts, RecentCompaction

_SHOWN_SESSIONS = 20
_SHOWN_COMPACTIONS = 20
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Vary": "Accept",
}


class SessionLine(msgspec.Struct, frozen=True):
    """A conversation, newest first."""

    id: str
    model: str
    created: str
    forked_from: str | None


class GatewayStatus(msgspec.Struct, frozen=True):
    """What one owner may see of the gateway."""

    owner: str
    since: str
    status: str
    """`ok`, `stopping`, or why the store cannot be used."""
    active: int
    """Requests of all owners that are being forwarded."""
    counts: OwnerCounts
    sessions: tuple[SessionLine, ...]
    compactions: tuple[RecentCompaction, ...]


async def read_status(sessions: SessionService, metrics: GatewayMetrics, owner: str, status: str) -> GatewayStatus:
    """Collects the status for one owner; sessions and compactions of others are left out."""
    records = await sessions.list(owner or None, _SHOWN_SESSIONS) if status == "ok" else []
    return GatewayStatus(
        owner,
        metrics.started.isoformat(timespec="seconds"),
        status,
        metrics.active,
        metrics.owners.get(owner, OwnerCounts()),
        tuple(SessionLine(one.id, one.model or "", one.created, one.parent) for one in records),
        tuple(one for one in reversed(metrics.recent) if one.owner == owner)[:_SHOWN_COMPACTIONS],
    )


def status_reply(status: GatewayStatus, *, as_json: bool) -> HttpReply:
    """Returns the page, or the same as JSON."""
    if as_json:
        return HttpReply.json(status, headers=_HEADERS)
    return HttpReply(200, _render_page(status).encode(), {"Content-Type": "text/html; charset=utf-8", **_HEADERS})


def _render_page(status: GatewayStatus) -> str:
    counts = status.counts
    facts = (
        ("for", status.owner or "everyone on this machine"),
        ("since", status.since),
        ("store", status.status),
        ("requests", f"{counts.requests:,} ({status.active} active)"),
        ("compacted", f"{counts.compacted:,}, and {counts.recovered:,} after the provider refused them as too long"),
        ("tokens not sent", f"{counts.tokens_saved:,} (estimate)"),
        ("forwarded as they were after a failure", f"{counts.failed:,}"),
    )
    compactions = [
        (one.time, one.session, f"{one.tokens_before:,}", f"{one.tokens_after:,}", f"{one.seconds:.1f} s")
        for one in status.compactions
    ]
    sessions = [(one.id, one.model, one.created, one.forked_from or "") for one in status.sessions]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast gateway</title>'
        "<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
        "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2rem .8rem .2rem 0;"
        "border-bottom:1px solid #8884}td{overflow-wrap:anywhere}"
        "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}</style>"
        "<h1>Holdfast gateway</h1><p>Forwards model calls and keeps long conversations inside the model's window.</p>"
        + _table((), facts)
        + "<h2>Last compactions</h2>"
        + _table(("time", "session", "tokens before", "after", "took"), compactions)
        + "<h2>Newest sessions</h2>"
        + _table(("session", "model", "created", "forked from"), sessions)
        + "</html>"
    )


def _table(head: tuple[str, ...], rows: Any) -> str:
    if not rows:
        return "<p>None yet.</p>"
    first = f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>" if head else ""
    return f"<table>{first}{''.join(f'<tr>{_cells(row)}</tr>' for row in rows)}</table>"


def _cells(row: tuple[str, ...]) -> str:
    return "".join(f"<td>{escape(cell)}</td>" for cell in row)
