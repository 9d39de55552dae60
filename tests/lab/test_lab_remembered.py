"""What a call refers to, apart from what it newly writes."""

from __future__ import annotations

import pytest

from holdfast.lab.remembered import edited_lines, modified_files, remembered
from lab_story import call

PATCH = """*** Begin Patch
*** Update File: harbor/tides.py
@@ def load_tides
-    table = parse_table(path)
+    table = new_table(path)
*** Add File: harbor/berths.py
+import berth_nine
*** End Patch"""


def remembers(command: str) -> str:
    (found,) = remembered(call("Bash", command=command).calls[0])
    return found


@pytest.mark.parametrize(
    ("command", "remembered"),
    [
        ("cat > tides.py <<'EOF'\nload_tides()\nEOF\npytest -q", "cat > tides.py \npytest -q"),
        ("cat <<-END | sort\n\tberth\n\n\tEND\necho done", "cat \necho done"),
        ("cat <<A\none\nA\ncat <<B\ntwo\nB", "cat \ncat "),
        ("cat <<A\nsee <<B\nA\nkept\nB", "cat \nkept\nB"),
        ("cat <<A\n<<A\nx\nA", "cat "),
        ("cat <<EOF\nEOFS\nit never ends", "cat <<EOF\nEOFS\nit never ends"),
        ("echo $((1 << 3))", "echo $((1 << 3))"),
    ],
)
def test_a_command_without_the_documents_it_writes(command: str, remembered: str) -> None:
    assert remembers(command) == remembered


def test_of_a_patch_the_side_that_was_there() -> None:
    assert remembers(PATCH).split() == ["harbor/tides.py", "table", "=", "parse_table(path)"]
    (made,) = call("apply_patch", input=PATCH).calls
    assert list(edited_lines(made)) == ["table = parse_table(path)"]
    assert list(modified_files(made)) == ["harbor/tides.py", "harbor/berths.py"]


def test_an_empty_patch_is_one_and_one_without_an_end_is_none() -> None:
    assert remembers("*** Begin Patch\n*** End Patch") == ""
    assert remembers("*** Begin Patch\n-old_tide") == "*** Begin Patch\n-old_tide"


@pytest.mark.parametrize("line", ["*** Begin Patch\n", "cat <<a\n", "a <<b\n", "<<a", "<<\n", "\n"])
def test_a_heap_of_beginnings_without_an_end_takes_no_longer_than_other_text(line: str) -> None:
    command = "cat <<never\n" + line * (1_000_000 // len(line))
    assert remembers(command) == command
