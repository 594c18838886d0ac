"""Without trust, where a record comes from changes nothing the panel decides."""

import msgspec
import pytest

from assay.guards.methods import guard_named
from assay.guards.protocols import Case
from assay.stores.records import Origin, Writer

from .support import TableModel, case, laboratory

SAID = ("Ann: I keep a ferret as a pet.",)
PETS = case("What pet does Ann keep?", "Ann keeps a ferret as a pet.", archive=SAID)


def told_by(writer: Writer, of: Case) -> Case:
    """The same records from another origin."""
    origin = Origin(writer=writer, channel="web")
    return msgspec.structs.replace(
        of,
        candidates=tuple(
            msgspec.structs.replace(c, record=msgspec.structs.replace(c.record, origin=origin))
            for c in of.candidates
        ),
    )


@pytest.mark.parametrize("writer", ["user", "tool", "external"])
async def test_no_origin_changes_the_decision(writer: Writer) -> None:
    guard = guard_named("panel_no_trust")

    plain = await guard.review(PETS, laboratory(TableModel()))
    other = await guard.review(told_by(writer, PETS), laboratory(TableModel()))

    assert guard.name == plain.method == "panel_no_trust"
    assert [j.admitted for j in plain.judgements] == [True]
    assert other.judgements == plain.judgements
