"""Compaction items: encrypted, bound to their owner, with keys that rotate."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.gateway import load_item_keys
from holdfast.gateway.protocols import ITEM_PREFIX
from holdfast.gateway.vendors.sealed_items import DamagedItem, ItemSealer, SealedItem

OLD, NEW = "old-key-" * 5, "new-key-" * 5
ITEM = SealedItem(format="anthropic", messages=b'[{"role":"user","content":"Never moor at berth 13."}]' * 20)


def test_first_key_encrypts_and_every_key_decrypts() -> None:
    old, both, new = ItemSealer([OLD]), ItemSealer([NEW, OLD]), ItemSealer([NEW])
    sealed = old.seal(ITEM, "ann")
    assert sealed.startswith(ITEM_PREFIX) and "berth" not in sealed and len(sealed) < len(ITEM.messages)
    assert both.open(sealed, "ann") == ITEM == new.open(both.seal(ITEM, "ann"), "ann")
    assert old.seal(ITEM, "ann") != sealed
    for sealer, owner in ((new, "ann"), (old, "bob"), (old, ""), (ItemSealer(), "ann")):
        with pytest.raises(DamagedItem):
            sealer.open(sealed, owner)


@given(st.data())
def test_changed_items_are_damaged(data: st.DataObject) -> None:
    sealer = ItemSealer([OLD])
    sealed = sealer.seal(ITEM, "ann")
    at = data.draw(st.integers(len(ITEM_PREFIX), len(sealed) - 1))
    other = data.draw(st.characters().filter(lambda character: character != sealed[at]))
    for changed in (
        sealed[:at] + other + sealed[at + 1 :],
        sealed[:at],
        sealed + other,
        sealed[:at] + sealed[at + 1 :],
    ):
        with pytest.raises(DamagedItem):
            sealer.open(changed, "ann")


def test_key_file_is_made_once_for_its_user_only(tmp_path: Path) -> None:
    file = tmp_path / "keys" / "items.key"
    first = load_item_keys(file, {})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and load_item_keys(file, {}) == first
    assert [path.name for path in file.parent.iterdir()] == ["items.key"]
    file.write_text(f"{NEW}  # since May\n{first[0]}\n")
    assert load_item_keys(file, {}) == (NEW, first[0])
    assert load_item_keys(file, {"HOLDFAST_ITEM_KEY": f"{NEW} {OLD}"}) == (NEW, OLD)
    for content in ("", "short\n"):
        file.write_text(content)
        with pytest.raises(InvalidInput, match="at least 32 characters"):
            load_item_keys(file, {})
    with pytest.raises(InvalidInput, match="--item-key-file"):
        load_item_keys(tmp_path, {})
