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


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ('bd create --description "Mend load_tides and parse_table" -p 1', "bd create --description  -p 1"),
        ("git commit -m 'mend load_tides' tides.py", "git commit -m  tides.py"),
        ('gh pr create --title="load_tides" --body "a \\"b\\" c"', "gh pr create --title= --body "),
        ("# now load_tides\npytest tides.py  # not parse_table", "\npytest tides.py  "),
        ("gh issue view #412", "gh issue view #412"),
        ("sed -n '1200,1350p' tides.py", "sed -n  tides.py"),
        ("head -n 2000 tides.py | tail -c +4000", "head  tides.py | tail "),
        ("head -n tides.py", "head -n tides.py"),
        ("pip install -q numpy==2.1.0 pandas && pytest tides.py", "pip install && pytest tides.py"),
        ("pip install -r tides_required.txt", "pip install -r tides_required.txt"),
        ("pip install -e ./tides.py", "pip install -e ./tides.py"),
    ],
)
def test_what_a_command_newly_says_or_chooses_is_not_recalled(command: str, expected: str) -> None:
    """Prose for others, ranges of lines, and packages, which are installed by their public names."""
    assert recalled(command) == expected


@pytest.mark.sampled(3)
@pytest.mark.parametrize("unit", ['--body "', "pip install a ", "sed -n '1,", "# ", "-m '"])
def test_texts_that_a_command_writes_are_found_in_linear_time(unit: str) -> None:
    assert recalled("ls; " + unit * (1_000_000 // len(unit))).startswith("ls")


def test_recalled_patch_is_old_side() -> None:
    assert recalled(PATCH).split() == ["harbor/tides.py", "table", "=", "parse_table(path)"]
    (made,) = call("apply_patch", input=PATCH).calls
    assert list(edited_lines(made)) == ["table = parse_table(path)"]
    assert list(modified_files(made)) == ["harbor/tides.py", "harbor/berths.py"]


def test_recalled_empty_and_unterminated_patch() -> None:
    assert recalled("*** Begin Patch\n*** End Patch") == ""
    assert recalled("*** Begin Patch\n-old_tide") == "*** Begin Patch\n-old_tide"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("line", ["*** Begin Patch\n", "cat <<a\n", "a <<b\n", "<<a", "<<\n", "\n"])
def test_heredoc_parsing_is_linear(line: str) -> None:
    command = "cat <<never\n" + line * (1_000_000 // len(line))
    assert recalled(command) == command
