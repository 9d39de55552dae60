"""Plain conversations: share of casually mentioned facts that survive compaction.

    python benchmarks/conversations.py [--budget 2000]

There are no tool calls, so only the text shows what matters. Each conversation is generated from a seed: four
hundred turns of small talk with forty facts (names, dates, amounts, codes, preferences) spread among them. A fact
counts as kept if a line of the result contains its value and at least half of the words around it.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from holdfast import KeepLedger, TokenWindow, Truncate, compact

Messages = list[dict[str, Any]]
Fact = tuple[str, str]
"""A sentence, and the value in it."""
TURNS, FACTS, SEEDS = 400, 40, 8

FACT_FORMS = {
    "English": [
        ("My sister {0} lives in Porto now.", "Annika Mirela Tove Ludmila Saskia Ingrid"),
        ("The dentist moved my appointment to {0}.", "March-14 June-3 2027-02-09 08:45 17:20"),
        ("I paid {0} euros for the old piano.", "1350 845 2290 615"),
        ("The code of the bicycle lock is {0}.", "7714 K4-99 0382 XR51"),
        ("Please never put {0} into anything you cook for us.", "coriander hazelnuts aniseed mussels"),
        ("Our train leaves from platform {0} this time.", "11b 23 4a 17"),
    ],
    "German": [
        ("Meine Schwester {0} wohnt jetzt in Lübeck.", "Annika Mirela Tove Ludmila Saskia Ingrid"),
        ("Der Zahnarzt hat den Termin auf {0} gelegt.", "14.März 3.Juni 09.02.2027 08:45 17:20"),
        ("Für das alte Klavier habe ich {0} Euro bezahlt.", "1350 845 2290 615"),
        ("Bitte koche für uns nie mit {0}.", "Koriander Haselnüssen Anis Muscheln"),
    ],
    "Chinese": [
        ("我妹妹{0}现在住在成都。", "安妮卡 米雷拉 路德米拉 萨斯基亚"),
        ("牙医把预约改到{0}了。", "3月14日 6月3日 八点四十五 十七点二十"),
        ("旧钢琴花了我{0}欧元。", "1350 845 2290 615"),
        ("做饭的时候请千万不要放{0}。", "香菜 榛子 茴香 贻贝"),
    ],
}
TALK = {
    "English": (
        "the weather today this morning we really had a good time and then nothing much happened so I just sat there"
        " thinking about what to do next maybe later who knows it was fine as always you see how it goes"
    ),
    "German": (
        "das Wetter heute war ganz schön und dann ist nichts weiter passiert also habe ich einfach dort gesessen und"
        " überlegt was man noch machen könnte vielleicht später wer weiß es war gut wie immer man sieht ja"
    ),
    "Chinese": "今天天气很好我们玩得很开心后来也没有什么事情我就坐在那里想着接下来做什么也许晚一点谁知道呢和平常一样",
}


def conversation(language: str, seed: int) -> tuple[Messages, list[Fact]]:
    """Small talk with facts in it, all from the seed."""
    rng = random.Random(f"{language} {seed}")
    forms = FACT_FORMS[language]
    chosen = [rng.choice(forms) for _ in range(FACTS)]
    facts = [(form.format(value := rng.choice(values.split())), value) for form, values in chosen]
    spots = dict(zip(sorted(rng.sample(range(TURNS - 20), FACTS)), facts, strict=True))
    messages: Messages = []
    for turn in range(TURNS):
        text = _small_talk(language, rng)
        if turn in spots:
            text = f"{text} {spots[turn][0]}"
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": _small_talk(language, rng)}]
    return messages, list(dict.fromkeys(facts))


def _small_talk(language: str, rng: random.Random) -> str:
    words = TALK[language].split() if " " in TALK[language] else list(TALK[language])
    glue = " " if " " in TALK[language] else ""
    sentences = [glue.join(rng.choices(words, k=rng.randint(8, 16))) for _ in range(rng.randint(1, 3))]
    return " ".join(f"{sentence}{'。' if not glue else '.'}" for sentence in sentences)


def kept_share(result: Messages, facts: list[Fact]) -> float:
    lines = [line for message in result for line in str(message["content"]).splitlines()]
    return sum(any(_contains_fact(line, *fact) for line in lines) for fact in facts) / len(facts)


def _contains_fact(line: str, sentence: str, value: str) -> bool:
    around = _words(sentence.replace(value, " "))
    return value in line and len(around & _words(line)) * 2 >= len(around)


def _words(text: str) -> set[str]:
    """Words; in a script without spaces, pairs of characters."""
    found = set(re.findall(r"[^\W\d_]+", text))
    wide = {word for word in found if max(word) > "⺀"}
    return (found - wide) | {a + b for word in wide for a, b in pairwise(word)}


def _text(messages: Messages) -> str:
    return "\n".join(str(message["content"]) for message in messages)


def _head_and_tail(messages: Messages, budget: int) -> Messages:
    text = _text(messages)
    return [{"role": "user", "content": text[: budget * 2] + "\n" + text[-budget * 2 :]}]


def _random_lines(messages: Messages, budget: int) -> Messages:
    lines = [str(message["content"]) for message in messages]
    order = random.Random(0).sample(range(len(lines)), len(lines))
    chosen, room = [], budget * 4
    for place in order:
        if (room := room - len(lines[place]) - 1) < 0:
            break
        chosen.append(place)
    return [{"role": "user", "content": "\n".join(lines[place] for place in sorted(chosen))}]


def _with_strategy(strategy: Any) -> Callable[[Messages, int], Messages]:
    def run(messages: Messages, budget: int) -> Messages:
        done = compact(messages, budget=budget, target=budget, strategy=strategy(budget), estimator="chars/4")
        return list(done.messages)

    return run


CONTESTANTS: dict[str, Callable[[Messages, int], Messages]] = {
    "tail window": _with_strategy(TokenWindow),
    "head and tail": _head_and_tail,
    "random lines": _random_lines,
    "truncation": _with_strategy(lambda budget: Truncate(max_tokens=budget)),
    "ledger": _with_strategy(KeepLedger),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Facts kept of plain conversations.")
    parser.add_argument("--budget", type=int, default=2_000, help="token budget (chars/4)")
    budget = parser.parse_args().budget
    print(f"{'facts kept':16}" + "".join(f"{language:>10}" for language in TALK))
    made = {language: [conversation(language, seed) for seed in range(SEEDS)] for language in TALK}
    for name, rule in CONTESTANTS.items():
        shares = [sum(kept_share(rule(m, budget), facts) for m, facts in some) / SEEDS for some in made.values()]
        print(f"{name:16}" + "".join(f"{share:10.2f}" for share in shares))
    size = sum(len(_text(messages)) // 4 for some in made.values() for messages, _ in some) // (SEEDS * len(made))
    print(f"{SEEDS} conversations per language of {size:,} tokens on average, down to {budget:,}")


if __name__ == "__main__":
    main()
