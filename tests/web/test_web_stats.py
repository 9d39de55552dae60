"""Statistics of a session: the same whether its log is read at once or as it grows."""

from __future__ import annotations

import pytest
from web_harness import compact, talk

from holdfast import MemoryStore, SessionService
from holdfast.web.stats import StatsReader

pytestmark = pytest.mark.anyio


async def test_statistics_read_at_once_equal_those_read_event_by_event() -> None:
    service = SessionService(MemoryStore())
    grown = StatsReader(service)
    await talk(service, turns=5)
    await grown.read("s")
    await compact(service)
    await grown.read("s")
    await service.append("s", {"role": "user", "content": "One more ship."})
    await service.undo("s")
    found, fresh = await grown.read("s"), await StatsReader(service).read("s")
    assert (found.curve(1_000), found.compactions, found.usage) == (fresh.curve(1_000), fresh.compactions, fresh.usage)
    assert found.undone == {found.compactions[0].seq}


async def test_long_curve_is_thinned_out_and_keeps_its_cliffs() -> None:
    service = SessionService(MemoryStore())
    await talk(service, turns=10)
    seq = await compact(service)
    for _ in range(6):
        await service.append("s", [{"role": "user", "content": f"Ship {number}."} for number in range(400)])
    seqs, sizes, _ = (await StatsReader(service).read("s")).curve(1_000)
    assert 600 < len(seqs) < 1_400 and seqs == sorted(seqs) and seqs[-1] == (await service.get("s")).version
    at = seqs.index(seq)
    assert seqs[at + 1] == seq and sizes[at] > sizes[at + 1]


async def test_both_series_of_sizes_end_in_the_size_of_the_session() -> None:
    service = SessionService(MemoryStore())
    await talk(service, turns=3)
    await service.append("s", {"role": "assistant", "content": "Aye."}, usage={"input": 4_000, "output": 2})
    await service.append("s", {"role": "user", "content": "And then?"})
    size = await service.size("s")
    seqs, counted, reported = (await StatsReader(service).read("s")).curve(size.tokens)
    assert counted[-1] == reported[-1] == size.tokens > 4_002
    at = seqs.index(seqs[-1] - 1)
    assert reported[at] == 4_002 and counted[at] < 4_002
