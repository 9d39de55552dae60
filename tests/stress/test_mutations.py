"""The list of mutations: each still applies, and a mutation that no test notices is reported (H1)."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from stress.mutation import Mutation
from stress.mutation_list import MUTATIONS
from stress.mutations import PACKAGE, ROOT, mutated_text, try_mutation

STORES = ("memory", "sqlite", "jsonl", "postgres")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutation_applies_and_names_tests_that_exist(mutation: Mutation) -> None:
    assert mutated_text(mutation) != (PACKAGE / mutation.file).read_text(encoding="utf-8")
    for tests in mutation.tests:
        path, _, chosen = tests.partition(" -k ")
        file, *names = path.partition("[")[0].split("::")
        defined = re.findall(r"(?:def|class) (\w+)", (ROOT / file).read_text(encoding="utf-8"))
        assert set(names) <= set(defined)
        words = [word for word in re.findall(r"\w+", chosen) if word not in ("and", "or", *STORES)]
        assert all(any(word in name for name in defined) for word in words)


def test_mutation_is_noticed_by_its_test_or_survives(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "holdfast")
    [mutation] = [mutation for mutation in MUTATIONS if mutation.name == "known ids are ignored"]
    noticed = try_mutation(mutation, tmp_path)
    assert noticed is not None and "test_append_retry_writes_nothing[memory]" in noticed
    blind = msgspec.structs.replace(mutation, tests=("tests/stores/test_open_store.py -k invalid_synchronous",))
    assert try_mutation(blind, tmp_path) is None
    assert (tmp_path / "holdfast" / mutation.file).read_bytes() == (PACKAGE / mutation.file).read_bytes()
