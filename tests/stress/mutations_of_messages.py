"""Known ways to break what belongs together in messages, and how kept ones change, each with its tests."""

from __future__ import annotations

from .mutation import mutation

LINKS = "tests/messages/test_links.py"
PATCH = "tests/messages/test_patch.py"
REPAIR = "tests/messages/test_repair_cases.py"
DANGLING = "tests/messages/test_dangling_edges.py"

MESSAGES = (
    mutation(
        "every cut is legal",
        "messages/links.py",
        "        return self.starts[bisect_right(self.starts, cut) - 1] == cut",
        "        return True",
        f"{LINKS}::test_is_legal_cut_at_exactly_these_positions",
    ),
    mutation(
        "a cut falls into the middle of a unit",
        "messages/links.py",
        "        return cut if cut <= 0 or cut >= self.count else self.starts[bisect_right(self.starts, cut) - 1]",
        "        return cut",
        f"{LINKS}::test_cut_at_or_after_and_before_move_to_nearest_legal_cut",
    ),
    mutation(
        "calls do not belong to the program that makes them",
        "messages/links.py",
        "            start = self._edges.add(end, message, index)\n",
        '            start = self._edges.add(end, message, index) if end.role != "joins" else None\n',
        f"{LINKS}::test_units_of_story_start_exactly_there",
    ),
    mutation(
        "results start a unit",
        "messages/links.py",
        '                is_start = role == "user" and (kind is Text or is_from_user(message))',
        "                is_start = True",
        f"{LINKS}::test_is_legal_cut_at_exactly_these_positions",
    ),
    mutation(
        "a late result of a closed call is shown",
        "messages/links.py",
        "                    late.append(index)\n",
        "                    pass\n",
        "tests/context/test_fold.py::test_fold_late_result_of_a_closed_call_is_not_shown",
    ),
    mutation(
        "drops of a message are made from the front",
        "messages/patch.py",
        "key=_path, reverse=True)",
        "key=_path)",
        f"{PATCH}::test_paths_name_the_object_as_it_came_in_whatever_order_edits_stand",
    ),
    mutation(
        "a patch changes the original",
        "messages/patch.py",
        "                    child = at[key] = child.copy()\n",
        "",
        f"{PATCH}::test_what_is_not_edited_is_shared_and_the_original_never_changes",
    ),
    mutation(
        "an earlier edit stays inside what a later one drops",
        "messages/patch.py",
        "if path[:length] != edit.path}",
        "}",
        f"{PATCH}::test_of_two_edits_for_one_place_the_later_counts",
    ),
    mutation(
        "a repair leaves a dangling edge",
        "messages/repair.py",
        "    linked = _drop_dangling(messages, report)",
        "    linked = list(messages)",
        f"{DANGLING}::test_repair_drops_or_closes_whole_units_and_says_so",
    ),
    mutation(
        "a repair leaves what the provider never finished",
        "messages/repair.py",
        "    repaired = _close_unfinished(repaired, report)\n",
        "",
        f"{DANGLING}::test_repair_drops_or_closes_whole_units_and_says_so",
    ),
    mutation(
        "a repair keeps reasoning whose signature no longer verifies",
        "messages/repair.py",
        "    if rules.binds_reasoning and not _is_unchanged(normalized, messages):",
        "    if False:",
        f"{REPAIR}::test_repair_change_drops_signed_reasoning",
    ),
    mutation(
        "a repair gives a second call the result of the first",
        "messages/repair.py",
        "        result = found.popleft() if found else None",
        "        result = found[0] if found else None",
        f"{REPAIR}::test_h2_repair_invalid_history_gives_expected_messages",
    ),
)
