"""Texts that a call recalls, without newly written text."""

from __future__ import annotations

import pytest

from holdfast.lab.needs import edited_lines, modified_files, recalled_texts
from lab_story import call

PATCH = """*** Begin Patch
*** Update File: harbor/tides.py
@@ def load_tides
-    table = parse_table(path)
+    table = new_table(path)
*** Add File: harbor/berths.py
+import berth_nine
*** End Patch"""


def recalled(command: str) -> str:
    (found,) = recalled_texts(call("Bash", command=command).calls[0])
    return found


@pytest.mark.parametrize(
    ("command", "expected"),
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
def test_recalled_command_excludes_heredocs(command: str, expected: str) -> None:
    assert recalled(command) == expected


def test_recalled_patch_is_old_side() -> None:
    assert recalled(PATCH).split() == ["harbor/tides.py", "table", "=", "parse_table(path)"]
    (made,) = call("apply_patch", input=PATCH).calls
    assert list(edited_lines(made)) == ["table = parse_table(path)"]
    assert list(modified_files(made)) == ["harbor/tides.py", "harbor/berths.py"]


def test_recalled_empty_and_unterminated_patch() -> None:
    assert recalled("*** Begin Patch\n*** End Patch") == ""
    assert recalled("*** Begin Patch\n-old_tide") == "*** Begin Patch\n-old_tide"


@pytest.mark.parametrize("line", ["*** Begin Patch\n", "cat <<a\n", "a <<b\n", "<<a", "<<\n", "\n"])
def test_heredoc_parsing_is_linear(line: str) -> None:
    command = "cat <<never\n" + line * (1_000_000 // len(line))
    assert recalled(command) == command
