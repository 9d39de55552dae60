"""Generates scripts that every provider would accept."""

from typing import Literal

from histories.script import Call, Media, Model, Result, Results, Step, Summary, System, Text, Thought, User
from histories.tape import Tape

TOOLS = ("read", "bash", "apply_patch", "web-search_2")
FORMS: tuple[Literal["image", "link", "file"], ...] = ("image", "link", "file")


class Writer:
    """Generates steps; keeps the counters that make ids and signatures unique within a story."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self._calls = 0
        self._thoughts = 0
        self._giant = False

    def script(self, scenes: list[Tape]) -> list[Step]:
        """Return one to five steps per scene; the shortest story is one user message.

        Each scene has its own tape, so that a failing example shrinks by losing whole scenes.
        """
        tape = self.tape
        steps: list[Step] = []
        while len(steps) < 2 and tape.rarely(3):
            steps.append(System(tape.text()))
        alone = tape.rarely(10)
        steps.append(Summary(tape.text()) if alone or tape.rarely(10) else self.user())
        for scene in scenes:
            self.tape = scene
            steps += self._scene(alone)
        self.tape = tape
        return steps + self._ending(alone)

    def _scene(self, alone: bool) -> list[Step]:
        """Return a few steps that may follow any others; `alone` keeps the user out of them."""
        kind = self.tape.below(8)
        if kind <= 1:
            return [*self._asked(alone), self.model()]
        if kind <= 4:
            return self.round()
        if kind == 5:  # two rounds, then the reply: a typical agent turn
            return [*self.round(), *self.round(), self.model()]
        if kind == 6:  # a system message may only come between a user message and a reply
            return [*self._asked(alone), System(self.tape.text()), self.model()]
        return [Model((Text(""),))] if alone or self.tape.rarely(2) else [User((Text(""),))]

    def _asked(self, alone: bool) -> list[Step]:
        return self.round() if alone else [self.user()]

    def _ending(self, alone: bool) -> list[Step]:
        """Return the last steps: complete, or waiting for the model, the user or tools."""
        kind = self.tape.below(8)
        if kind == 1:
            return [self.model()] if alone else [self.user()]
        if kind == 2:
            return [self.model()]
        if kind == 3:
            return self.round()
        if kind in (4, 5):
            call, results = self.round()
            return [call] if kind == 4 else [call, *self._cut(results)]
        return []

    @staticmethod
    def _cut(step: Step) -> list[Step]:
        """Leave the last of parallel calls unanswered: the others were faster."""
        assert isinstance(step, Results)
        return [Results(step.results[:-1])] if len(step.results) > 1 else []

    def user(self) -> User:
        parts: list[Text | Media] = [Text(self.tape.text())]
        if self.tape.rarely(5):
            parts.insert(self.tape.below(2), Media(self.tape.one(FORMS)))
        if self.tape.rarely(6):
            parts.append(Text(self.tape.text()))
        return User(tuple(parts))

    def thought(self) -> Thought:
        self._thoughts += 1
        return Thought(self.tape.text(), f"c2Vhb{self._thoughts:07d}", redacted=self.tape.rarely(5))

    def model(self) -> Model:
        """Return a text reply; reasoning is always followed by content."""
        thoughts = [self.thought() for _ in range((0, 0, 1, 2)[self.tape.below(4)])]
        return Model((*thoughts, Text(self.tape.text())))

    def round(self) -> list[Step]:
        """Return calls and their results, in any order, because parallel tools finish in any order."""
        tape = self.tape
        parts: list[Thought | Text | Call] = [self.thought()] if tape.rarely(3) else []
        if tape.rarely(3):
            parts.append(Text(tape.text()))
            parts += [self.thought()] if tape.rarely(4) else []
        calls = [self._call() for _ in range(1 + (0, 0, 1, 2)[tape.below(4)])]
        results = [self._result(call) for call in calls]
        if tape.rarely(3):
            results.reverse()
        return [Model((*parts, *calls)), Results(tuple(results))]

    def _call(self) -> Call:
        self._calls += 1
        name = self.tape.one(TOOLS)
        args = {"path": self.tape.text()} if self.tape.below(3) else {}
        return Call(f"{self._calls:04d}", name, args)

    def _result(self, call: Call) -> Result:
        kind = self.tape.below(8)
        if kind == 7 and not self._giant:
            self._giant = True
            return Result(call.id, call.name, self.tape.long_text())
        if kind == 6:
            return Result(call.id, call.name, "")
        if kind == 5:
            return Result(call.id, call.name, self.tape.text(), failed=True)
        media = Media(self.tape.one(FORMS)) if kind == 4 else None
        return Result(call.id, call.name, self.tape.text(), media=media)
