"""Known ways to break the gateway: what it forwards, stores and lets pass, each with the tests that must notice."""

from __future__ import annotations

from .mutation import mutation

COMPACTION = "tests/gateway/test_gateway_compaction.py"
FAULTS = "tests/gateway/test_gateway_faults.py"
SECURITY = "tests/gateway/test_gateway_security.py"
THINKING = "tests/gateway/test_gateway_thinking.py"

GATEWAY = (
    mutation(
        "the hard threshold leaves no room for the reply",
        "gateway/rewriting.py",
        "        if size.limit is not None and size.tokens > size.limit:",
        "        if size.window is not None and size.tokens > size.window:",
        f"{COMPACTION}::test_request_that_leaves_no_room_for_the_reply_is_compacted_before_it_is_sent",
    ),
    mutation(
        "a compacted conversation is sent as the client's own list",
        "gateway/rewriting.py",
        "        elif size.is_compacted or is_another:",
        "        elif is_another:",
        f"{THINKING}::test_cache_marks_of_the_client_stay_on_its_newest_messages",
    ),
    mutation(
        "every request waits for a store that failed",
        "gateway/rewriting.py",
        "            self._store_failed_until = anyio.current_time() + _RETRY_STORE_SECONDS",
        "            pass",
        f"{FAULTS}::test_store_that_failed_is_not_waited_for_with_each_request",
    ),
    mutation(
        "an edited history continues in the same session",
        "gateway/client_sessions.py",
        "                if shared.logged < len(conversation.log.ids):  # it went back or was edited",
        "                if False:",
        f"{COMPACTION}::test_edited_history_continues_in_a_fork",
    ),
    mutation(
        "an append for an older log lands after what another replica wrote",
        "gateway/client_sessions.py",
        "                    after=conversation.version,\n",
        "",
        "tests/gateway/test_gateway_forward_first.py::"
        "test_edited_list_is_a_fork_though_another_replica_writes_what_was_edited_away",
    ),
    mutation(
        "a sealed item opens for another owner",
        "gateway/vendors/sealed_items.py",
        "    return ITEM_PREFIX.encode() + owner.encode()",
        "    return ITEM_PREFIX.encode()",
        "tests/gateway/test_sealed_items.py::test_first_key_encrypts_and_every_key_decrypts",
    ),
    mutation(
        "owners share the sessions that they name alike",
        "gateway/client_sessions.py",
        '    given = "\\0".join((caller.owner, caller.key,',
        '    given = "\\0".join((caller.key,',
        f"{SECURITY}::test_owners_that_send_the_same_have_sessions_of_their_own",
    ),
    mutation(
        "the client's cache marks are lost in a compacted request",
        "gateway/rewriting.py",
        "    shown = with_cache_marks([*context.messages, *extra], given.messages)",
        "    shown = [*context.messages, *extra]",
        f"{THINKING}::test_cache_marks_of_the_client_stay_on_its_newest_messages",
    ),
    mutation(
        "side calls are stored in the conversation",
        "gateway/rewriting.py",
        '        if kind != "generate" or self.is_side_call(match, body):',
        '        if kind != "generate":',
        f"{COMPACTION}::test_unchanged_request_and_side_calls_leave_the_conversation_alone",
    ),
    mutation(
        "a key of the gateway reaches the upstream",
        "gateway/upstream.py",
        "            elif (kept := header_without_keys(name, value, self.options.keys)) is not None:",
        "            elif (kept := value) is not None:",
        f"{SECURITY}::test_gateway_key_in_a_header_does_not_reach_the_upstream",
    ),
    mutation(
        "a reply counts for another checkpoint than its request's",
        "gateway/client_sessions.py",
        "                made_on = conversation.sent_after",
        '                made_on = ""',
        f"{THINKING}::test_thinking_made_after_the_compaction_is_kept_by_a_gateway_that_was_restarted",
    ),
    mutation(
        "an overflow is recovered again and again",
        "gateway/server.py",
        "                    shrunk = True\n",
        "",
        f"{COMPACTION}::test_request_that_is_refused_again_after_its_recovery_is_the_clients",
    ),
    mutation(
        "a list is followed under another client's session key",
        "gateway/client_sessions.py",
        '    given = "\\0".join((caller.owner, caller.key,',
        '    given = "\\0".join((caller.owner,',
        "tests/gateway/test_gateway_clients.py::test_conversations_that_begin_alike_are_two_sessions_by_the_clients_own_name",
    ),
)
