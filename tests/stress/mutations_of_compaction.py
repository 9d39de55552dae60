"""Known ways to break a compaction: what it keeps, when it comes, what its notes say, each with its tests."""

from __future__ import annotations

from .mutation import mutation

DECIDE = "tests/compaction/test_decide.py"
POLICY = "tests/compaction/test_policy.py"
CARRY = "tests/compaction/test_carry.py"
KEPT = "tests/compaction/test_kept_before.py"
PREVIOUS = "tests/compaction/test_previous_checkpoint.py"
FOLD = "tests/context/test_fold.py"
PLAN = "tests/context/test_plan.py"
COMMIT = "tests/sessions/test_commit.py"
EDITS = "tests/sessions/test_edits_of_checkpoints.py"
USAGE = "tests/sessions/test_usage_of_checkpoints.py"

COMPACTION = (
    # -- whether a plan is committed ---------------------------------------------------------------------
    mutation(
        "a plan that parts a call from its result is committed",
        "compaction/decide.py",
        "    if problems := find_problems(plan.messages, request.rules):",
        "    if problems := find_problems((), request.rules):",
        f"{DECIDE}::test_plan_that_parts_a_call_from_its_result_is_refused",
    ),
    mutation(
        "the strategy's target is ignored",
        "compaction/decide.py",
        "(limit, plan.target or strategy.target, room_for_gap)",
        "(limit, plan.target, room_for_gap)",
        f"{DECIDE}::test_target_of_the_strategy_is_reached_below_the_budget_too",
    ),
    mutation(
        "the smallest saving is ignored",
        "compaction/decide.py",
        "    too_little = fits and (before - after) < before * min_saving",
        "    too_little = False",
        f"{DECIDE}::test_plan_must_save_the_smallest_saving",
    ),
    mutation(
        "the smallest saving counts over the limit, too",
        "compaction/decide.py",
        "    too_little = fits and (before - after) < before * min_saving",
        "    too_little = (before - after) < before * min_saving",
        f"{DECIDE}::test_plan_over_the_budget_that_fits_is_accepted_however_little_it_saves",
    ),
    mutation(
        "a context that cannot fit is committed",
        "sessions/commit.py",
        "if decision.plan is None or decision.outcome is not Outcome.COMPACTED:",
        "if decision.plan is None:",
        f"{COMMIT}::test_smallest_context_that_cannot_be_sent_is_not_committed",
    ),
    mutation(
        "an abort is followed by a fallback",
        "compaction/run.py",
        '            return Decision(Outcome.ABORTED, size, size, "it was aborted: nothing has changed")',
        "            return self.decide()",
        "tests/strategies/test_fallback.py::test_abort_never_falls_back",
    ),
    mutation(
        "the smallest gap is not kept",
        "compaction/policy.py",
        "        if appended is None or appended >= request.gap:",
        "        if appended is None or appended >= 0:",
        f"{POLICY}::test_h12_next_automatic_compaction_comes_after_the_gap",
    ),
    mutation(
        "a target does not free a third of the room",
        "compaction/policy.py",
        "min(own, at - int(room * FREED))",
        "own",
        f"{POLICY}::test_h12_target_frees_a_third_of_the_threshold_where_half_of_the_window_is_more",
    ),
    mutation(
        "a plan leaves no room for the gap",
        "compaction/decide.py",
        "    room_for_gap = None if limit is None or not request.gap else max(1, limit - request.gap)",
        "    room_for_gap = None",
        f"{DECIDE}::test_plan_leaves_room_for_what_is_appended_before_the_next_compaction",
    ),
    # -- the size of a context ---------------------------------------------------------------------------
    mutation(
        "a checkpoint drops the calibration",
        "compaction/run.py",
        "        calibration=view.calibration.reset_size(),",
        "        calibration=type(view.calibration)(),",
        f"{USAGE}::test_p3_reports_from_before_a_compaction_count_as_a_ratio_and_not_as_a_size",
    ),
    mutation(
        "the size reported before a compaction counts after it",
        "tokens/usage.py",
        "        return msgspec.structs.replace(self, known_tokens=None)\n\n    def as_ratio",
        "        return self\n\n    def as_ratio",
        f"{USAGE}::test_p3_reports_from_before_a_compaction_count_as_a_ratio_and_not_as_a_size",
    ),
    mutation(
        "a report counts for another checkpoint than its request's",
        "context/view.py",
        '        elif made_on != (self.checkpoint_id or ""):',
        "        elif False:",
        f"{USAGE}::test_p3_reply_requested_before_a_compaction_does_not_count_after_it",
    ),
    mutation(
        "the epoch of a report is ignored",
        "context/view.py",
        "            if event.epoch != self.checkpoint_id:",
        "            if False:",
        f"{USAGE}::test_p3_reports_from_before_a_compaction_count_as_a_ratio_and_not_as_a_size",
    ),
    mutation(
        "reasoning made for another context is sent",
        "context/view.py",
        "        unbound = event.seq < self.checkpoint_seq or outdated ",
        "        unbound = event.seq < self.checkpoint_seq ",
        "tests/sessions/test_session_summaries.py::"
        "test_reasoning_of_a_reply_requested_before_a_compaction_is_not_sent_after_it[memory]",
    ),
    # -- turns, notes and edits --------------------------------------------------------------------------
    mutation(
        "a stored note counts as a turn of the user",
        "context/view.py",
        'bool(body.get("synthetic") and not restored)',
        "False",
        f"{FOLD}::test_fold_synthetic_and_aside_messages_are_no_turns",
    ),
    mutation(
        "a framed note counts as a turn of the user",
        "context/view.py",
        "        note = note or (not filler and self._is_note(shown))\n",
        "",
        f"{FOLD}::test_fold_notes_are_no_turns_also_where_nothing_marks_them",
    ),
    mutation(
        "the digest of a note's frame is not checked",
        "messages/frame.py",
        "    return digest[:-1] in (_digest(text), _digest(text, True))",
        "    return bool(digest[:-1])",
        "tests/messages/test_media_and_frames.py::test_is_framed_rejects_look_alike",
    ),
    mutation(
        "results that the model has not read are pruned",
        "context/plan.py",
        "        if not unread and any((index, part) in self.unread",
        "        if False and any((index, part) in self.unread",
        "tests/compaction/test_unread_results.py",
    ),
    mutation(
        "an earlier prune is forgotten at the next commit",
        "compaction/run.py",
        "        if changes := plan.edited.get(index, view.messages[index]).edits:",
        "        if index in plan.edited and (changes := plan.edited[index].edits):",
        f"{EDITS}::test_result_that_was_cleared_stays_cleared_in_what_later_compactions_keep",
    ),
    mutation(
        "messages that a checkpoint hides are forgotten at the next commit",
        "compaction/run.py",
        "{id: (HIDDEN,) for id, seq in view.hidden.items() if seq > start}",
        "{}",
        f"{EDITS}::test_note_that_was_moved_to_the_front_is_not_shown_in_its_old_place_again",
    ),
    mutation(
        "a message of the head is shown unedited",
        "compaction/run.py",
        "None if message_in(event) == shown.message else shown.message)",
        "None)",
        f"{CARRY}::test_pinned_result_that_was_cleared_is_shown_cleared_from_the_head",
    ),
    mutation(
        "new notes move behind the messages that the old ones preceded",
        "context/plan.py",
        "        if self.notes_last:\n            old = len(head)",
        "        if head:\n            old = len(head)",
        f"{PLAN}::test_h6_new_notes_come_first_where_the_old_ones_did",
    ),
    mutation(
        "new notes move before the messages that the old ones followed",
        "context/plan.py",
        '        old = next((place for place, shown in enumerate(plan.head) if shown.kind == "note"), None)',
        "        old = None",
        f"{PLAN}::test_h6_new_notes_take_the_place_of_the_old",
    ),
    # -- what later rounds know --------------------------------------------------------------------------
    mutation(
        "a checkpoint forgets the pins",
        "compaction/run.py",
        "        pins=tuple(sorted(plan.pins)),",
        "        pins=(),",
        f"{CARRY}::test_pin_is_carried_after_its_event_is_archived",
    ),
    mutation(
        "the ledger of earlier rounds is lost",
        "compaction/run.py",
        "        ledger=before.ledger if plan.ledger is None else plan.ledger(),",
        "        ledger=None if plan.ledger is None else plan.ledger(),",
        f"{CARRY}::test_ledger_is_carried_through_compactions_that_write_no_page",
    ),
    mutation(
        "pruning counts as a round",
        "compaction/run.py",
        "round=before.round + plan.archives,",
        "round=before.round + 1,",
        f"{CARRY}::test_pruning_is_no_round",
    ),
    mutation(
        "a checkpoint continues messages of another history",
        "compaction/previous.py",
        "ids[previous.shown - 1] == previous.shown_digest:",
        "ids:",
        f"{PREVIOUS}::test_previous_with_other_messages_raises_checkpoint_mismatch",
    ),
    mutation(
        "a session's compaction kept one event less than it did",
        "compaction/run.py",
        "    kept_until = view.version if view.events else len(view.messages) - plan.cut",
        "    kept_until = view.version - 1 if view.events else len(view.messages) - plan.cut",
        f"{KEPT}::test_session_without_a_new_message_has_nothing_new_to_compact",
    ),
    mutation(
        "a session's compaction kept what was appended meanwhile",
        "compaction/run.py",
        "    kept_until = view.version if view.events else len(view.messages) - plan.cut",
        "    kept_until = view.version + 1 if view.events else len(view.messages) - plan.cut",
        f"{KEPT}::test_message_appended_while_a_session_is_compacted_is_new",
    ),
    mutation(
        "a list's compaction kept one message less than it did",
        "compaction/run.py",
        "    kept_until = view.version if view.events else len(view.messages) - plan.cut",
        "    kept_until = view.version if view.events else len(view.messages) - plan.cut - 1",
        f"{KEPT}::test_list_without_a_new_message_has_nothing_new_to_compact",
    ),
    mutation(
        "a view counts one event less as kept by the compaction",
        "context/view.py",
        "        self.previously_kept += event.seq <= self.checkpoint.carry.kept_until",
        "        self.previously_kept += event.seq < self.checkpoint.carry.kept_until",
        f"{KEPT}::test_session_without_a_new_message_has_nothing_new_to_compact",
    ),
    mutation(
        "an imported compaction kept one event less than it did",
        "transcripts/log.py",
        "        kept_until=version if cut else before.kept_until,",
        "        kept_until=version - 1 if cut else before.kept_until,",
        "tests/transcripts/test_importing.py::test_messages_that_the_tools_compaction_kept_are_not_new",
    ),
    mutation(
        "a list continues as if its compaction kept one message more",
        "compaction/stateless.py",
        "    view.previously_kept = previous.carry.kept_until",
        "    view.previously_kept = previous.carry.kept_until + 1",
        f"{KEPT}::test_list_without_a_new_message_has_nothing_new_to_compact",
    ),
    # -- the ledger --------------------------------------------------------------------------------------
    mutation(
        "the room of a lone name is not returned when it gives way",
        "ledger/select.py",
        "                            left += len(self._pool[other].line.text) + _SEPARATOR_CHARS\n",
        "",
        "tests/ledger/test_select.py::test_room_of_a_lone_name_is_used_again_where_its_line_takes_its_place",
    ),
    mutation(
        "a page takes text of the conversation for its own structure",
        "ledger/text.py",
        '    return _STRUCTURE_START.sub(r"> \\1", text)',
        "    return text",
        "tests/ledger/test_parse_page.py::test_quoted_text_cannot_forge_page_sections",
    ),
    mutation(
        "a page repeats the requests that stay visible",
        "ledger/sections.py",
        "    return [line for line in lines if line.place not in staying]",
        "    return list(lines)",
        "tests/ledger/test_ledger_rounds.py::test_later_request_is_on_the_page_only_where_no_message_shows_it",
    ),
    mutation(
        "the page of an earlier round is not read without its checkpoint",
        "compaction/stateless.py",
        "            if view.synthetic:\n                read_notes_back(view)",
        "            if False:\n                read_notes_back(view)",
        "tests/ledger/test_parse_page.py::test_next_round_without_checkpoint_knows_the_page",
    ),
    mutation(
        "a carried ledger loses its lines",
        "ledger/carry.py",
        "        lines=kept,",
        "        lines=[],",
        "tests/ledger/test_ledger_rounds.py::test_name_from_first_round_is_shown_in_tenth",
    ),
)
