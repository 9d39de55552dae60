"""Known ways to break the steps, turns, leases and recall of a session, each with the tests that must notice."""

from __future__ import annotations

from .mutation import mutation

TURN = "tests/sessions/test_turn.py"
BREAKER = "tests/sessions/test_breaker.py"
WAITING = "tests/sessions/test_lease_waiting.py"
KEEPER = "tests/agent/test_keeper.py"
SEARCH = "tests/recall/test_recall_search.py"

SESSIONS = (
    # -- commit, lease and breaker -----------------------------------------------------------------------
    mutation(
        "a cancellation interrupts the commit",
        "sessions/commit.py",
        "        with anyio.CancelScope(shield=True):",
        "        with anyio.CancelScope():",
        "tests/sessions/test_commit.py::test_compaction_that_is_cancelled_in_its_commit_is_written_and_reported",
    ),
    mutation(
        "a lease is not renewed",
        "sessions/lease.py",
        "        held = holder is not None and await holder.renew()",
        "        held = False",
        f"{WAITING}::test_h9_busy_event_loop_does_not_lose_its_lease[memory]",
    ),
    mutation(
        "an automatic compaction does not wait for the running one",
        "sessions/commit.py",
        "                if waits and key in self.running:",
        "                if False:",
        "tests/sessions/test_lanes.py::test_automatic_compaction_of_a_lane_waits_for_the_running_one",
    ),
    mutation(
        "the breaker never opens",
        "sessions/breaker.py",
        "    if view.failures >= FAILURES and time < view.retry_at:",
        "    if False:",
        f"{BREAKER}::test_breaker_opens_after_three_failures[memory]",
    ),
    mutation(
        "the breaker does not close after its pause",
        "sessions/breaker.py",
        "    if view.failures >= FAILURES and time < view.retry_at:",
        "    if view.failures >= FAILURES:",
        f"{BREAKER}::test_breaker_stays_open_longer_after_each_failure[memory]",
    ),
    mutation(
        "the breaker does not close after a success",
        "context/view.py",
        "            self.failures, self.retry_at, self.attempted = 0, 0.0, False",
        "            pass",
        f"{BREAKER}::test_undo_of_a_success_does_not_restore_old_failures[memory]",
    ),
    mutation(
        "a failed compaction is tried again at once",
        "sessions/breaker.py",
        "    if view.attempted:",
        "    if False:",
        f"{BREAKER}::test_failure_is_not_retried_without_new_messages[memory]",
    ),
    mutation(
        "an automatic compaction follows an undo at once",
        "sessions/breaker.py",
        "    if view.undone and not _is_callers_decision(trigger, request):",
        "    if False:",
        "tests/compaction/test_wrong_arguments.py::test_a_trigger_that_fires_on_anything_compacts_after_an_undo",
    ),
    # -- turn ----------------------------------------------------------------------------------------------
    mutation(
        "the id of a turn is not deduplicated",
        "sessions/turn.py",
        '        live, first = self._live, f"{self.id}{SAY}"\n        if not self._events:',
        '        live, first = self._live, f"{self.id}{SAY}"\n        if self._made is not None and not self._events:',
        f"{TURN}::test_h9_same_id_again_returns_the_reply_and_runs_nothing[memory]",
    ),
    mutation(
        "a turn stores a reply to an outdated context",
        "sessions/turn.py",
        "                if isinstance(problem, DuplicateEvent) or await self._has_messages_after(after):",
        "                if isinstance(problem, DuplicateEvent):",
        f"{TURN}::test_h9_reply_to_an_older_context_is_not_stored",
    ),
    mutation(
        "a resumed turn takes an open call for its answered twin",
        "sessions/turn_state.py",
        "            if index not in answered and index not in found and _is_same(given, call)",
        "            if index not in found and _is_same(given, call)",
        f"{TURN}::test_h9_open_call_is_not_taken_for_its_answered_twin",
    ),
    mutation(
        "an older turn goes on after a newer one has begun",
        "sessions/turn.py",
        '        if self._state.status == "superseded":',
        "        if False:",
        f"{TURN}::test_h9_superseded_turn_says_so",
    ),
    mutation(
        "two turns of a session run at once",
        "sessions/turn.py",
        "                    await self._lease.acquire()\n",
        "",
        f"{TURN}::test_h9_turns_of_one_session_run_one_at_a_time[memory]",
    ),
    # -- keeper ----------------------------------------------------------------------------------------------
    mutation(
        "a keeper sends what is over the window",
        "sessions/steps.py",
        "        if not self.auto or most is None or size.tokens <= most:",
        "        if True:",
        f"{KEEPER}::test_context_over_the_window_is_compacted_without_a_model_whatever_the_preset_does",
    ),
    mutation(
        "an overflow is retried again and again",
        "sessions/steps.py",
        "        if self._retried_version == before.version:",
        "        if False:",
        f"{KEEPER}::test_g3_overflow_compacts_and_allows_one_retry",
    ),
    mutation(
        "calls that were cut off are stored",
        "sessions/continuation.py",
        "if not _is_complete(call)])",
        "if False])",
        f"{KEEPER}::test_g3_incomplete_call_is_dropped_and_others_kept",
    ),
    mutation(
        "calls that were interrupted stay open",
        "sessions/steps.py",
        "        if calls := await self.sessions.waiting(self.session_id):",
        "        if calls := ():",
        "tests/agent/test_interruptions.py::test_calls_left_open_by_a_crash_are_closed_before_the_next_step",
    ),
    # -- recall ----------------------------------------------------------------------------------------------
    mutation(
        "the last page of hits says that there is another",
        "recall/search.py",
        "offset + limit if len(hits) > limit else None",
        "offset + limit if len(hits) >= limit else None",
        f"{SEARCH}::test_search_page_that_holds_the_last_hit_is_the_last_page[memory]",
    ),
    mutation(
        "a page of hits repeats the last one of the page before",
        "recall/search.py",
        "offset + limit if len(hits) > limit else None",
        "offset + limit - 1 if len(hits) > limit else None",
        f"{SEARCH}::test_search_pages_contain_every_hit_once[memory]",
    ),
    mutation(
        "recall shows other lanes",
        "recall/search.py",
        "            lane=lane and replace_surrogates(lane),",
        "            lane=None,",
        f"{SEARCH}::test_search_one_lane_or_all[memory]",
    ),
    mutation(
        "recall shows sessions of other owners",
        "recall/search.py",
        "query, session_id=within, owner=owner, where=where",
        "query, session_id=within, owner=None, where=where",
        f"{SEARCH}::test_search_filters[memory]",
    ),
    mutation(
        "recall calls archived what another session's context shows",
        "recall/search.py",
        "        page = hits[:limit] if within is not None else await self._mark_archived(hits[:limit])",
        "        page = hits[:limit]",
        f"{SEARCH}::test_search_all_sessions_marks_archived_by_each_context[memory]",
    ),
    mutation(
        "a passage skips what did not fit",
        "recall/passage.py",
        '        return f"{head}, cut\\n{part}", offset + len(part)',
        '        return f"{head}, cut\\n{part}", len(body)',
        "tests/recall/test_recall_read.py::test_read_continued_passages_make_up_the_event[memory-64]",
    ),
)
