"""JointCore live: admit a core of the retrieved records that leads to the same answer as all of them."""

from assay.errors import GuardFailed
from assay.guards.accounting import spent_between
from assay.guards.coalitions import contains, grand
from assay.guards.protocols import Case, Decision, Experimenter, Judgement
from assay.guards.reduction.context import SPARE, Reduced, reduce_context
from assay.stores.records import Candidate


class JointCore:
    """Group deletion on the retrieved records; blind: the reference is the answer with all of them.

    It saves prompt, it does not protect: a harmful record the answer rests on is kept. Nothing is
    removed from the bank; what is left out of this prompt is a candidate again in the next one.
    Where the answer with all records was cut, or the budget ends before any smaller set is
    confirmed, everything is admitted and the certificate is ``unreduced``.

    Args:
        concurrency: Most questions in a batch, at least 1; those asked ahead are spent too.

    Raises:
        ValueError: If the concurrency is below 1.
    """

    def __init__(self, *, concurrency: int = 1) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, got {concurrency!r}")
        self._concurrency = concurrency

    @property
    def name(self) -> str:
        """``jointcore``."""
        return "jointcore"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        """Reduce.

        Raises:
            GuardFailed: If the model gave no answer with all records.
        """
        if not case.candidates:
            return Decision(method=self.name, judgements=())
        before = laboratory.ledger()
        everything = grand(len(case.candidates))
        reduced = await reduce_context(
            laboratory, case.candidates, everything, concurrency=self._concurrency
        )
        if reduced.failed:
            raise GuardFailed(f"nothing to compare with: {reduced.note}")
        judgements = tuple(
            self._judge(candidate, reduced, i) for i, candidate in enumerate(case.candidates)
        )
        return Decision(
            method=self.name,
            judgements=judgements,
            spent=spent_between(before, laboratory.ledger()),
            certificate=reduced.certificate,
            tokens_saved=reduced.tokens_saved,
        )

    def _judge(self, candidate: Candidate, reduced: Reduced, i: int) -> Judgement:
        admitted = contains(reduced.kept, i)
        return Judgement(
            record_id=candidate.record.id,
            admitted=admitted,
            reason=_why_kept(reduced) if admitted else SPARE,
            method=self.name,
        )


def _why_kept(reduced: Reduced) -> str:
    if reduced.note:
        return f"Everything is kept: {reduced.note}."
    if reduced.certificate == "1-minimal":
        return "Without it, the answer is another one than with all records."
    return "It belongs to the smallest set found that gives the same answer as all records."
