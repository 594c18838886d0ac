"""The scene of one turn: candidates, recent turns, and the renderer both review and reply use."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from assay.errors import ContextOverflow, RecordNotFound
from assay.guards.coalitions import EMPTY, Coalition, coalition_of, grand
from assay.guards.perturb import PERTURBATIONS
from assay.guards.protocols import Ask, ChatModel, Decision, Judgement, Parameters, Renderer
from assay.runtime.commands import Found
from assay.runtime.equipment import Equipment
from assay.runtime.models.counting import require_room
from assay.runtime.prompts import make_renderer
from assay.runtime.remember import turn_of
from assay.stores.protocols import MemoryStore, turn_source
from assay.stores.records import ArchiveTurn, Candidate, Namespace, RecordId, TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All a prompt of this turn is made of, but for the coalition.

    Attributes:
        turn_id: The turn it is.
        question: What the user says now.
        candidates: In canonical order; erased ones are gone.
        recent: Past turns of the session that still stand.
        now: When the user spoke, so that a resumed turn gives the same prompt.
        recent_tokens: Budget of the recent turns, in estimated tokens.
        tools: JSON text of the tools the model may call.
        instructions: First words of the system message; empty: those of the settings.
    """

    turn_id: TurnId
    question: str
    candidates: tuple[Candidate, ...]
    recent: tuple[ArchiveTurn, ...]
    now: datetime
    recent_tokens: int
    tools: str
    instructions: str = ""

    @property
    def sources(self) -> tuple[RecordId, ...]:
        """The past turns and the own words that every prompt of the scene shows."""
        turns = dict.fromkeys([self.turn_id, *(turn_of(turn.id) for turn in self.recent)])
        return tuple(map(turn_source, turns))

    def renderer(
        self, equipment: Equipment, parameters: Parameters, *, flagged: Coalition = EMPTY
    ) -> Renderer:
        """From a coalition of the candidates to a request."""
        return make_renderer(
            model=equipment.model.identity,
            question=self.question,
            candidates=self.candidates,
            recent=self.recent,
            now=self.now,
            seed=equipment.seed,
            parameters=parameters,
            renderings=PERTURBATIONS,
            instructions=self.instructions or equipment.settings.prompt.instructions or None,
            recent_tokens=self.recent_tokens,
            flagged=flagged,
        )

    def shown(self, decision: Decision) -> Coalition:
        """The candidates a decision admits."""
        return self._of(decision.admitted)

    def flagged(self, decision: Decision) -> Coalition:
        """The candidates a decision marks as doubtful."""
        return self._of([judgement for judgement in decision.admitted if judgement.flagged])

    def _of(self, judgements: Sequence[Judgement]) -> Coalition:
        ids = {judgement.record_id for judgement in judgements}
        return coalition_of(i for i, c in enumerate(self.candidates) if c.record.id in ids)


async def candidates_of(
    store: MemoryStore, namespace: Namespace, found: Sequence[Found]
) -> tuple[Candidate, ...]:
    """The candidates under these ids, in the same order; one erased since is left out."""
    if not found:
        return ()
    try:
        records = await store.get(namespace, [each.record_id for each in found])
    except RecordNotFound as gone:
        left = [each for each in found if each.record_id != gone.record_id]
        if len(left) == len(found):
            raise
        return await candidates_of(store, namespace, left)
    scores = {each.record_id: each.score for each in found}
    return tuple(Candidate(record=record, score=scores[record.id]) for record in records)


def fitted(scene: Scene, equipment: Equipment) -> Scene:
    """The scene cut until its largest prompt, and the reply, fit the model's context.

    Recent turns go first, then the candidates with the lowest scores.

    Raises:
        ContextOverflow: If the user's message alone does not fit.
    """
    overflow: ContextOverflow | None = None
    for smaller in _smaller(scene):
        try:
            _require_room(smaller, equipment)
        except ContextOverflow as error:
            overflow = error
        else:
            return smaller
    raise overflow or AssertionError("unreachable")


def _require_room(scene: Scene, equipment: Equipment) -> None:
    model: ChatModel = equipment.model
    render = scene.renderer(equipment, equipment.reply_parameters(scene.tools))
    require_room(model, render(Ask(grand(len(scene.candidates)))))


def _smaller(scene: Scene) -> Iterator[Scene]:
    yield scene
    tokens = scene.recent_tokens
    while tokens > 0:
        tokens = tokens // 2 if tokens > 64 else 0  # noqa: PLR2004  # a shorter scrap helps nobody
        yield _replace(scene, scene.candidates, tokens)
    for kept in range(len(scene.candidates) - 1, -1, -1):
        best = sorted(scene.candidates, key=lambda candidate: -candidate.score)[:kept]
        yield _replace(scene, tuple(c for c in scene.candidates if c in best), 0)


def _replace(scene: Scene, candidates: tuple[Candidate, ...], recent_tokens: int) -> Scene:
    return replace(scene, candidates=candidates, recent_tokens=recent_tokens)
