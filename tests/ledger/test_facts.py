"""What a summary must not lose, and what of it one did (H3)."""

from __future__ import annotations

import pytest
from ledger_story import Messages, said, used, user

from holdfast.ledger import Fact, Ledger, Notebook, clipped, missing, must_keep
from holdfast.messages import decode_all

TASK = "Move the tide tables of Osterhaven to the new format."
STEPS = [{"step": "Convert the tables", "status": "done"}, {"step": "Check berth K7", "status": "pending"}]


def noted(messages: Messages) -> Ledger:
    notebook = Notebook()
    decoded = decode_all(messages, "openai-chat")[0]
    notebook.read(decoded, range(1, len(decoded) + 1))
    return notebook.ledger()


def worked() -> Ledger:
    return noted(
        [
            user(TASK),
            *used("1", "edit", "ok", path="/srv/tides.py", old_string="a", new_string="b"),
            *used("2", "read", "x", path="/srv/other.py"),
            user("Never delete the archive folder. I like short answers! We meet at 3.15 pm."),
            *used("3", "bash", "error: table locked", command="make"),
            *used("4", "update_plan", "ok", plan=STEPS),
            said("It is locked."),
        ]
    )


def test_task_constraints_files_errors_and_pending_work() -> None:
    assert must_keep(worked()) == (
        Fact("task", TASK, 1),
        Fact("constraint", "Never delete the archive folder.", 6),
        Fact("pending", "Check berth K7", 0),
        Fact("error", "error: table locked", 8),
        Fact("file", "/srv/tides.py", 2),
        Fact("said", "I like short answers!", 6, 1),
        Fact("said", "We meet at 3.15 pm.", 6, 2),
    )


def test_a_wish_without_any_cue_is_kept_too() -> None:
    facts = must_keep(noted([user("Hello there."), user("Ok. Maria signs off every release on the quay.")]))
    assert facts[-1] == Fact("said", "Maria signs off every release on the quay.", 2, 1)
    assert missing(facts[-1:], "Maria works on the quay.\nEvery release has a sign.") == facts[-1:]


def test_a_number_or_a_negation_is_told_only_if_it_is_there() -> None:
    fact = Fact("constraint", "Never keep more than 4096 rows in a table.", 3)
    assert missing([fact], "keep rows in a table, never more than 5000") == (fact,)
    assert missing([fact], "keep more than 4096 rows in a table") == (fact,)
    assert missing([fact], "never keep more than 4096 rows in one table") == ()


@pytest.mark.parametrize(
    "said_so",
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
def test_a_standing_constraint_is_kept_in_the_users_words(said_so: str) -> None:
    facts = must_keep(noted([user("Hello there."), user(f"Nice. {said_so}")]))
    assert Fact("constraint", said_so, 2, 1) in facts


def test_a_summary_that_tells_all_misses_nothing() -> None:
    summary = (
        "The user wants the tide tables of Osterhaven moved to a new format, and the archive folder never to be "
        "deleted. They like short answers, and meet at 3.15. Changed: tides.py. Open: error: table locked; berth K7 is "
        "still to be checked: Check K7."
    )
    assert missing(must_keep(worked()), summary) == ()


def test_what_a_summary_left_out_is_named() -> None:
    lost = missing(must_keep(worked()), "The user wants the tide tables of Osterhaven moved to a new format.")
    assert [fact.kind for fact in lost] == ["constraint", "pending", "error", "file", "said", "said"]


def test_nothing_is_missing_where_nothing_was() -> None:
    assert must_keep(Ledger()) == ()
    assert missing((), "") == ()


def test_a_fact_without_any_word_is_looked_for_as_it_is() -> None:
    assert missing([Fact("task", "?!", 1)], "they asked ?! and left") == ()
    assert missing([Fact("task", "?!", 1)], "nothing") != ()


def test_l7_a_long_text_without_blanks_shows_its_head_and_its_tail() -> None:
    shown = clipped("请 " + "修理码头，然后点灯。" * 400 + "完", 2_000)
    assert 1_900 < len(shown) <= 2_010
    assert shown.startswith("请 修理码头") and shown.endswith("完")


def test_a_file_is_told_by_its_own_name_not_by_a_longer_one() -> None:
    fact = Fact("file", "/srv/app.py", 3)
    assert missing([fact], "I read myapp.pyc and my-app.py.") == (fact,)
    assert missing([fact], "I changed `app.py`.") == ()
