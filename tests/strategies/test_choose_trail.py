"""Choosing how many of the newest steps stay as native messages."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from holdfast.strategies.trail import MAX_SHARE, TrailStep, choose_trail, reused_characters

ROOM = 10_000


def own_text(age: int) -> str:
    """Text without names that no step of another age repeats."""
    word = "watch" + "".join(chr(ord("a") + int(digit)) for digit in f"{age:03}")
    return f"{word} all {word} night\n" * 6


def steps(count: int, text: str | None = None, size: int | None = None) -> list[TrailStep]:
    """Steps of two messages each, newest first, at the end of a history of 1,000 messages."""
    texts = [(age, text or own_text(age)) for age in range(2, 2 * count + 2, 2)]
    return [TrailStep(1_000 - age, age, (own,), len(own) if size is None else size) for age, own in texts]


def at(price: float) -> Callable[[int], float]:
    return lambda room: price


def length(cut: int | None) -> int:
    """Number of steps in the trail."""
    return 0 if cut is None else (1_000 - cut) // 2


def test_worth_of_a_step_falls_with_its_age() -> None:
    """The trail ends where a character of notes is worth more than one of a step."""
    for age in (4, 12, 40):
        size = len(own_text(age))
        worth = reused_characters(size, age) / size
        assert choose_trail(steps(30), ROOM, 0, MAX_SHARE, {}, 1.0, at(worth)) == 1_000 - age


def test_short_text_is_worth_more_for_its_size_than_a_long_one() -> None:
    """A command or a path is written again rather than a whole file."""
    command, file = (steps(1, own_text(2)[:size]) for size in (40, 150))
    price = at(reused_characters(90, 2) / 90)
    assert choose_trail(command, ROOM, 0, MAX_SHARE, {}, 1.0, price) == 998
    assert choose_trail(file, ROOM, 0, MAX_SHARE, {}, 1.0, price) is None


def test_texts_of_one_step_count_apart() -> None:
    parts = tuple(own_text(number)[:40] for number in range(4))
    apart, together = TrailStep(998, 2, parts, 160), TrailStep(998, 2, ("".join(parts),), 160)
    price = at(reused_characters(90, 2) / 90)
    assert choose_trail([together], ROOM, 0, MAX_SHARE, {}, 1.0, price) is None
    assert choose_trail([apart], ROOM, 0, MAX_SHARE, {}, 1.0, price) == 998


def test_dearer_notes_shorten_the_trail() -> None:
    lengths = [
        length(choose_trail(steps(30), ROOM, 0, MAX_SHARE, {}, 1.0, at(price)))
        for price in (0.25, 0.3, 0.35, 0.4, 0.44, 0.6)
    ]
    assert lengths == sorted(set(lengths), reverse=True)
    assert lengths[-1] == 0


def test_price_rises_as_the_trail_takes_the_room_of_notes() -> None:
    """The notes give up their least valuable lines first, and then better ones."""
    full = choose_trail(steps(30), ROOM, 0, MAX_SHARE, {}, 1.0, at(0.05))
    scarce = choose_trail(steps(30), ROOM, 0, MAX_SHARE, {}, 1.0, lambda room: 0.05 if room > 7_000 else 0.5)
    assert 0 < length(scarce) < length(full)


def test_text_that_a_newer_step_shows_is_worth_nothing() -> None:
    """The same command again and again needs to be shown once."""
    same = "and the watch went on all night long\n" * 5
    partly = [step._replace(texts=(f"{step.texts[0]}{same}",)) for step in steps(30, size=300)]
    new, in_part, repeated = (
        length(choose_trail(shown, ROOM, 0, MAX_SHARE, {}, 1.0, at(0.1)))
        for shown in (steps(30, size=300), partly, steps(30, same, size=300))
    )
    assert repeated == 1 < in_part < new


def test_no_trail_where_no_step_gains() -> None:
    assert choose_trail(steps(30), ROOM, 0, MAX_SHARE, {}, 1.0, at(1.0)) is None
    assert choose_trail([], ROOM, 0, MAX_SHARE, {}, 1.0, at(0.0)) is None


def test_newest_step_too_large_for_its_share_leaves_no_trail() -> None:
    assert choose_trail(steps(3, size=int(MAX_SHARE * ROOM) + 1), ROOM, 0, MAX_SHARE, {}, 1.0, at(0.0)) is None


def test_room_of_the_fixed_sections_is_never_taken() -> None:
    size = 500
    for reserved in (4_000, 8_000):
        cut = choose_trail(steps(90, size=size), ROOM, reserved, MAX_SHARE, {}, 1.0, at(0.0))
        assert length(cut) == (ROOM - reserved) / size
    assert choose_trail(steps(90, size=size), ROOM, ROOM, MAX_SHARE, {}, 1.0, at(0.0)) is None


def test_price_is_that_of_notes_in_the_room_that_is_left() -> None:
    asked: list[int] = []

    def price(room: int) -> float:
        asked.append(room)
        return 0.0

    choose_trail(steps(3, size=500), ROOM, 2_000, MAX_SHARE, {}, 1.0, price)
    assert asked == [7_500, 7_000, 6_500]


def test_free_room_is_filled_with_all_steps_that_fit() -> None:
    size = 500
    assert length(choose_trail(steps(10, size=size), ROOM, 0, MAX_SHARE, {}, 1.0, at(0.0))) == 10
    assert length(choose_trail(steps(90, size=size), ROOM, 0, MAX_SHARE, {}, 1.0, at(0.0))) == MAX_SHARE * ROOM / size


def test_worthless_steps_are_taken_where_room_is_free() -> None:
    assert length(choose_trail(steps(5), ROOM, 0, MAX_SHARE, {}, 0.0, at(0.0))) == 5


def test_worthless_step_is_passed_to_reach_an_older_one_that_gains_more() -> None:
    loss, gain = TrailStep(998, 2, (own_text(2),), 100), TrailStep(996, 4, ("see moor_boat",), 100)
    assert choose_trail([loss], ROOM, 0, MAX_SHARE, {"moor_boat": 5.0}, 0.0, at(0.01)) is None
    assert choose_trail([loss, gain], ROOM, 0, MAX_SHARE, {"moor_boat": 5.0}, 0.0, at(0.01)) == 996
    assert choose_trail([loss, gain], ROOM, 0, MAX_SHARE, {"moor_boat": 1.5}, 0.0, at(0.01)) is None


def test_name_counts_in_the_newest_step_that_holds_it_alone() -> None:
    price, scores = at(0.01), {"moor_boat": 5.0, "cast_off": 5.0}
    assert choose_trail(steps(3, "moor_boat moor_boat", 100), ROOM, 0, MAX_SHARE, scores, 0.0, price) == 998
    named = [
        step._replace(texts=(text,)) for step, text in zip(steps(2, size=100), ("moor_boat", "cast_off"), strict=True)
    ]
    assert choose_trail(named, ROOM, 0, MAX_SHARE, scores, 0.0, price) == 996


def test_name_repeated_in_one_step_counts_once() -> None:
    repeated = steps(1, "moor_boat moor_boat moor_boat", 100)
    assert choose_trail(repeated, ROOM, 0, MAX_SHARE, {"moor_boat": 1.1}, 0.0, at(0.01)) == 998
    assert choose_trail(repeated, ROOM, 0, MAX_SHARE, {"moor_boat": 0.9}, 0.0, at(0.01)) is None


SIZES = st.lists(st.integers(1, 3_000), max_size=30)


@given(SIZES, st.floats(0, 2), st.floats(0, 2))
def test_trail_never_exceeds_its_share_of_the_room(sizes: list[int], per_character: float, price: float) -> None:
    sized = [step._replace(size=size) for step, size in zip(steps(len(sizes)), sizes, strict=True)]
    cut = choose_trail(sized, ROOM, 0, MAX_SHARE, {}, per_character, at(price))
    assert cut is None or cut in [step.cut for step in sized]
    assert sum(sizes[: length(cut)]) <= MAX_SHARE * ROOM


@given(SIZES, st.floats(0.01, 2), st.floats(0, 2), st.floats(0, 2))
def test_trail_is_never_longer_at_a_higher_price(
    sizes: list[int], per_character: float, price: float, more: float
) -> None:
    sized = [step._replace(size=size) for step, size in zip(steps(len(sizes)), sizes, strict=True)]
    cheap, dear = (
        length(choose_trail(sized, ROOM, 0, MAX_SHARE, {}, per_character, at(one))) for one in (price, price + more)
    )
    assert dear <= cheap
