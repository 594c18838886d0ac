"""What every ``KeywordIndex`` promises."""

import pytest

from .support import ANN, BEN, OpenStores, memory


async def test_the_text_that_shares_most_comes_first(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write(
            [
                memory("r1", "the weather was fine"),
                memory("r2", "Rex likes carrots and nothing else at all in the world"),
                memory("r3", "Rex likes carrots"),
                memory("r4", "unrelated words entirely"),
            ]
        )

        hits = await stores.keywords.match(ANN, "Does REX like carrots?", limit=9)

    assert [hit.record_id for hit in hits] == ["r3", "r2"]
    assert hits[0].score > hits[1].score > 0


async def test_only_the_namespace_asked_is_searched(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("a"), memory("b", namespace=BEN)])

        assert [h.record_id for h in await stores.keywords.match(BEN, "rex", limit=9)] == ["b"]


async def test_limit_cuts_from_the_bottom(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1", "rex rex rex"), memory("r2", "rex ate my lunch")])

        assert [h.record_id for h in await stores.keywords.match(ANN, "rex", limit=1)] == ["r1"]
        assert await stores.keywords.match(ANN, "rex", limit=0) == []


@pytest.mark.parametrize(
    "hostile",
    [
        'carrots" OR "x',
        "carrots*",
        "owner:ann carrots",
        "NEAR(carrots rex)",
        "carrots AND NOT rex",
        "^carrots",
        "{owner words}: carrots",
        "carrots; DROP TABLE records",
        "-- carrots",
    ],
)
async def test_no_query_syntax_is_interpreted(open_stores: OpenStores, hostile: str) -> None:
    async with open_stores() as stores:
        await stores.store.write(
            [memory("r1"), memory("r2", "spinach"), memory("r3", "carrotsoup")]
        )

        assert [h.record_id for h in await stores.keywords.match(ANN, hostile, limit=9)] == ["r1"]


@pytest.mark.parametrize("wordless", ["", "?!", "\U0001f955", '"""'])
async def test_a_query_without_words_finds_nothing(open_stores: OpenStores, wordless: str) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1", 'quoted """ and ?! and \U0001f955')])

        assert await stores.keywords.match(ANN, wordless, limit=9) == []


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("caf\u00e9 au lait", "cafe\u0301"),
        ("cafe\u0301 au lait", "CAF\u00c9"),
        ("stra\u00dfe", "STRASSE"),
        ("\u5bff\u53f8\u304c\u597d\u304d", "\u5bff\u53f8"),
        ("\u043c\u043e\u0441\u043a\u0432\u0430", "\u041c\u041e\u0421\u041a\u0412\u0410"),
        ("snake_case", "snake"),
    ],
)
async def test_words_match_across_case_accents_and_normal_forms(
    open_stores: OpenStores, written: str, asked: str
) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1", written)])

        assert [h.record_id for h in await stores.keywords.match(ANN, asked, limit=9)] == ["r1"]


async def test_a_megabyte_of_query_is_bearable(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1")])
        query = "carrots " + " ".join(f"word{n}" for n in range(100_000))

        assert [h.record_id for h in await stores.keywords.match(ANN, query, limit=9)] == ["r1"]


async def test_a_nul_in_the_query_is_refused(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        with pytest.raises(ValueError, match="NUL"):
            await stores.keywords.match(ANN, "rex\0", limit=9)
