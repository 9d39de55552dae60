"""Service agents and plain conversations: ids, amounts, dates, names and preferences are kept over filler."""

from __future__ import annotations

import json

import pytest
from ledger_helpers import Messages, assistant, filler, notes_on, tool_use, user

from holdfast import compact
from holdfast.ledger import parse_page
from holdfast.models import ScriptedModel
from holdfast.triggers import always

SMALL_TALK = {
    "en": ("It is so nice to talk about this and that.", "Yes, it really is nice to talk about this and that."),
    "de": ("Es ist so schön, über dies und das zu reden.", "Ja, es ist wirklich schön, über dies und das zu reden."),
    "zh": ("今天天气很好,我们随便聊聊吧。", "是的,今天天气很好,随便聊聊很开心。"),
    "ar": ("من الجميل أن نتحدث عن هذا وذاك.", "نعم، من الجميل حقا أن نتحدث عن هذا وذاك."),
}
DETAILS = {
    "en": ("My daughter Marguerite turns seven on 14 March and is allergic to hazelnuts.", ["Marguerite", "hazelnuts"]),
    "de": (
        "Meine Tochter Friederike wird am 14. März sieben und verträgt keine Haselnüsse.",
        ["Friederike", "Haselnüsse"],
    ),
    "zh": ("我女儿叫林晓雨,三月十四日满七岁,对榛子过敏。", ["林晓雨", "榛子过敏"]),
    "ar": ("ابنتي مارغريت ستبلغ السابعة في 14 مارس ولديها حساسية من البندق.", ["مارغريت", "البندق"]),
}


@pytest.mark.parametrize("language", DETAILS)
def test_personal_details_of_user_are_kept_over_small_talk(language: str) -> None:
    detail, words = DETAILS[language]
    asked, answered = SMALL_TALK[language]
    talk = [message for _ in range(150) for message in (user(asked), assistant(answered))]
    page = notes_on([user(asked), assistant(answered), user(detail), assistant(answered), *talk, user(asked)], 1_200)
    for word in words:
        assert word in page, word


@pytest.mark.parametrize("language", DETAILS)
def test_findings_of_assistant_are_kept_over_small_talk(language: str) -> None:
    detail, words = DETAILS[language]
    asked, answered = SMALL_TALK[language]
    talk = [message for _ in range(150) for message in (user(asked), assistant(answered))]
    page = notes_on([user(asked), assistant(f"{answered}\n{detail}"), *talk, user(asked)], 1_200)
    for word in words:
        assert word in page, word


def case(number: int) -> Messages:
    """One customer's case, with figures of its own."""
    order, customer = f"ORD-{7_000 + number}", f"CUS-{90 + number}"
    found = {"order": order, "customer": customer, "total_cents": 12_900 + number, "paid": "2026-03-11"}
    return [
        user(f"Where is the order of {customer}?"),
        *tool_use(f"f{number}", "find_order", json.dumps(found), order=order),
        *tool_use(
            f"r{number}",
            "refund",
            json.dumps({"refund": f"RF-{number}", "state": "booked"}),
            order=order,
            amount=4_500 + number,
        ),
        assistant(f"{order}: refund of {45 + number / 100:.2f} EUR is booked."),
    ]


def test_ids_amounts_and_dates_of_service_calls_are_kept() -> None:
    messages = [user("Work through today's cases."), *case(1), *case(2), *filler(20), user("What did we refund?")]
    page = notes_on(messages, 1_200)
    for needed in ("ORD-7001", "CUS-91", "4501", "RF-1", "ORD-7002", "12902", "RF-2", "2026-03-11"):
        assert needed in page, needed


def test_many_cases_in_little_room_keep_their_ids() -> None:
    cases = [message for number in range(60) for message in case(number)]
    result = compact([user("Work through today's cases."), *cases, user("And now?")], budget=2_400, target=1_200)
    shown = json.dumps(list(result.messages))
    assert "ORD-7059" in shown
    assert sum(f"ORD-{7_000 + number}" in shown for number in range(60)) >= 20


def test_excerpts_of_a_conversation_without_tools_name_the_speaker() -> None:
    """After a summary, lines of messages are not listed as tool output; they are read back as what they are."""
    talk = [
        message
        for number in range(60)
        for message in (
            user(f"How deep is berth B-{number}07, and who is the harbour master of Osterhaven-{number}?"),
            assistant(
                f"Berth B-{number}07 is {number * 31} cm deep.\nThe harbour master is Captain Brodie-{number}11."
            ),
        )
    ]
    model = ScriptedModel("### Current State\n- Working on: berths", repeat=True)
    result = compact(talk, budget=12_000, target=6_000, trigger=always, summarizer=model)
    text = result.messages[0]["content"]
    assert "### the assistant [" in text and "tool output" not in text
    read = parse_page(text)
    assert {line.kind for line in read.lines if "Captain Brodie" in line.text} == {"said"}
