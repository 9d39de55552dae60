"""Facts that a summary must not lose, and those it lost (H3)."""

from __future__ import annotations

import pytest
from ledger_helpers import Messages, assistant, tool_use, user

from holdfast.ledger import Fact, HistoryExtractor, Ledger, clip, missing_facts, required_facts
from holdfast.messages import decode_all

TASK = "Move the tide tables of Osterhaven to the new format."
STEPS = [{"step": "Convert the tables", "status": "done"}, {"step": "Check berth K7", "status": "pending"}]


def noted(messages: Messages) -> Ledger:
    history = HistoryExtractor()
    decoded = decode_all(messages, "openai-chat")[0]
    history.read(decoded, range(1, len(decoded) + 1))
    return history.ledger()


def worked() -> Ledger:
    return noted(
        [
            user(TASK),
            *tool_use("1", "edit", "ok", path="/srv/tides.py", old_string="a", new_string="b"),
            *tool_use("2", "read", "x", path="/srv/other.py"),
            user("Never delete the archive folder. I like short answers! We meet at 3.15 pm."),
            *tool_use("3", "bash", "error: table locked", command="make"),
            *tool_use("4", "update_plan", "ok", plan=STEPS),
            assistant("It is locked."),
        ]
    )


def test_required_facts_include_task_constraints_files_errors_and_pending_work() -> None:
    assert required_facts(worked()) == (
        Fact("task", TASK, 1),
        Fact("constraint", "Never delete the archive folder.", 6),
        Fact("pending", "Check berth K7", 0),
        Fact("error", "error: table locked", 8),
        Fact("file", "/srv/tides.py", 2),
        Fact("statement", "I like short answers!", 6, 1),
        Fact("statement", "We meet at 3.15 pm.", 6, 2),
    )


def test_required_facts_include_user_statement_without_constraint_word() -> None:
    facts = required_facts(noted([user("Hello there."), user("Ok. Maria signs off every release on the quay.")]))
    assert facts[-1] == Fact("statement", "Maria signs off every release on the quay.", 2, 1)
    assert missing_facts(facts[-1:], "Maria works on the quay.\nEvery release has a sign.") == facts[-1:]


def test_missing_facts_requires_numbers_and_negations() -> None:
    fact = Fact("constraint", "Never keep more than 4096 rows in a table.", 3)
    assert missing_facts([fact], "keep rows in a table, never more than 5000") == (fact,)
    assert missing_facts([fact], "keep more than 4096 rows in a table") == (fact,)
    assert missing_facts([fact], "never keep more than 4096 rows in one table") == ()


@pytest.mark.parametrize(
    "sentence",
    [
        "You must not touch the schema.",
        "Don't use globals.",
        "Bitte niemals den Ordner löschen.",
        "Ab jetzt antworte auf Deutsch.",
        "请始终用中文回答。",
        "يجب أن تكتب الاختبارات.",
        "From now on, version 2.0 only.",
    ],
)
def test_required_facts_keep_constraint_in_the_users_words(sentence: str) -> None:
    facts = required_facts(noted([user("Hello there."), user(f"Nice. {sentence}")]))
    assert Fact("constraint", sentence, 2, 1) in facts


def test_missing_facts_of_complete_summary_is_empty() -> None:
    summary = (
        "The user wants the tide tables of Osterhaven moved to a new format, and the archive folder never to be "
        "deleted. They like short answers, and meet at 3.15. Changed: tides.py. Open: error: table locked; berth K7 is "
        "still to be checked: Check K7."
    )
    assert missing_facts(required_facts(worked()), summary) == ()


def test_missing_facts_names_each_omission() -> None:
    lost = missing_facts(
        required_facts(worked()), "The user wants the tide tables of Osterhaven moved to a new format."
    )
    assert [fact.kind for fact in lost] == ["constraint", "pending", "error", "file", "statement", "statement"]


def test_facts_of_empty_ledger_are_empty() -> None:
    assert required_facts(Ledger()) == ()
    assert missing_facts((), "") == ()


def test_missing_facts_compares_text_without_words_verbatim() -> None:
    assert missing_facts([Fact("task", "?!", 1)], "they asked ?! and left") == ()
    assert missing_facts([Fact("task", "?!", 1)], "nothing") != ()


def test_l7_clip_long_text_without_blanks_keeps_head_and_tail() -> None:
    shown = clip("请 " + "修理码头，然后点灯。" * 400 + "完", 2_000)
    assert 1_900 < len(shown) <= 2_010
    assert shown.startswith("请 修理码头") and shown.endswith("完")


def test_missing_facts_matches_whole_file_names_only() -> None:
    fact = Fact("file", "/srv/app.py", 3)
    assert missing_facts([fact], "I read myapp.pyc and my-app.py.") == (fact,)
    assert missing_facts([fact], "I changed `app.py`.") == ()
