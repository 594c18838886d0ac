"""What answers imply about other questions when adding records never breaks a sufficient set."""

from collections.abc import Callable

from assay.guards.coalitions import Coalition
from assay.guards.protocols import Ask
from assay.guards.reduction.search import PLAIN, Answering, Told, ask


class Knowledge:
    """Answers so far, and what follows from them if the decision is monotone.

    A question whose answer follows is not asked. A direct answer that contradicts what followed
    (a decision that is not monotone) is kept as asked and changes nothing else.

    Args:
        everything: All records; sufficient by definition.
        told: Answers known before; those of other renderings and draws are not used.
    """

    __slots__ = ("_asked", "_differs", "_same")

    def __init__(self, everything: Coalition, told: Told | None = None) -> None:
        self._asked: dict[int, bool] = {}
        self._same: list[int] = [everything]
        self._differs: list[int] = []
        for asked, same in (told or {}).items():
            if asked.rendering == PLAIN and asked.draw == 0:
                self.learn(asked.coalition, same=same)

    @property
    def asked(self) -> dict[int, bool]:
        """Direct answers by retained coalition."""
        return self._asked

    @property
    def sufficient(self) -> list[int]:
        """Inclusion-minimal sets known to be sufficient; the full set is one from the start."""
        return self._same

    @property
    def insufficient(self) -> list[int]:
        """Inclusion-maximal sets known to be insufficient."""
        return self._differs

    def implied(self, retained: int) -> bool | None:
        """The answer, if it is known or follows; ``None`` if it has to be asked."""
        for known in self._same:
            if known & retained == known:
                return True
        for known in self._differs:
            if known & retained == retained:
                return False
        return None

    def learn(self, retained: int, *, same: bool) -> None:
        """Take in a direct answer."""
        self._asked[retained] = same
        if self.implied(retained) is not None:
            return
        if same:
            kept = [known for known in self._same if known & retained != retained]
            self._same = [*kept, retained]
        else:
            kept = [known for known in self._differs if known & retained != known]
            self._differs = [*kept, retained]

    def find_out(
        self, retained: int, likely: float = 0.5, beside: Callable[[int], list[Ask]] | None = None
    ) -> Answering:
        """The answer, asked only if it does not follow; see ``Question`` for the arguments."""
        known = self.implied(retained)
        if known is not None:
            return known
        return (yield from self.ask(retained, likely, beside))

    def ask(
        self, retained: int, likely: float = 0.5, beside: Callable[[int], list[Ask]] | None = None
    ) -> Answering:
        """The answer, asked directly unless it already was."""
        if retained not in self._asked:
            same = yield ask(retained, likely, beside)
            self.learn(retained, same=same)
        return self._asked[retained]
