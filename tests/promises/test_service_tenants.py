"""P12: no path returns another tenant's record, however the tenants and users are called."""

import unicodedata
from itertools import product
from pathlib import Path

import pytest
from tests.runtime.http.served import PATH, Served, body, served

from assay.errors import AssayError
from assay.stores.records import Origin, RecordId

from .conftest import Promise

STATEMENT = "no path returns another tenant's record"
ORIGIN = Origin(writer="user", channel="import")

TENANTS = ["acme", "Acme", "acm", "acme%", "ac me", "a/b", 'a"b', "a'b", "a;--", "", "é", "e\u0301"]
USERS = ["ann", "Ann", "an", "ann%", "ann_", "a/nn", "'; DROP TABLE records; --", "acme", "*"]
OTHERS = ["é", unicodedata.normalize("NFD", "é"), "ann\nbob", "..", "a\u200bnn"]

pytestmark = pytest.mark.promise("P12", STATEMENT)


def _secret(number: int) -> str:
    return f"The launch code is word{number:04d}x."


def _key(number: int) -> str:
    return f"sk-tenant-{number:04d}"


async def _everything(one: Served, key: str, tenant: str, user: str, other: str) -> str:
    """All that any path tells this user of this tenant."""
    runtime, namespace = one.service.runtime, one.service.namespace_of(tenant, user)
    told: list[object] = []
    async with one.client(key) as client:
        for question in ("What is the launch code?", "word", "launch code is"):
            answer = await client.post(PATH, json=body(question, user=user))
            told.append(answer.text)
        told.append((await client.get("/metrics")).text)
        told.append((await client.get("/v1/models")).text)
        told.append((await client.post(PATH, json=body("", user=user))).text)
    told += [await runtime.memories(namespace), await runtime.turns(namespace)]
    told += [await runtime.decisions(namespace), await runtime.reviews(namespace)]
    told.append([row async for row in runtime.bank.cache.rows(namespace)])
    for act in (runtime.forget, runtime.quarantine, runtime.vouch):
        try:
            told.append(await act(namespace, other))
        except AssayError as error:
            told.append(str(error))
    return repr(told)


@pytest.mark.timeout(120)
async def test_every_path_tells_a_user_their_own_records_only(
    promise: Promise, tmp_path: Path
) -> None:
    pairs = list(product(TENANTS, [*USERS, *OTHERS]))[:: promise.times(14, 3)]
    keys = {_key(TENANTS.index(tenant)): tenant for tenant in TENANTS}
    leaks: list[tuple[str, str]] = []
    asked = 0
    async with served(keys=keys, bank=tmp_path / "bank", guard="vector") as one:
        runtime = one.service.runtime
        records: list[RecordId] = []
        for number, (tenant, user) in enumerate(pairs):
            namespace = one.service.namespace_of(tenant, user)
            records.append(await runtime.remember(namespace, _secret(number), origin=ORIGIN))
        for number, (tenant, user) in enumerate(pairs):
            other = records[(number + 1) % len(records)]
            key = _key(TENANTS.index(tenant))
            told = await _everything(one, key, tenant, user, other)
            asked += 1
            leaks += [
                (tenant, user)
                for another in range(len(pairs))
                if another != number and f"word{another:04d}x" in told
            ]
            assert f"word{number:04d}x" in told
        memories = [
            await runtime.memories(one.service.namespace_of(tenant, user)) for tenant, user in pairs
        ]
        users = {tenant: set(await one.service.users(tenant)) for tenant in TENANTS}

    assert leaks == []
    assert all(_secret(i) in [r.text for r in held] for i, held in enumerate(memories))
    assert users == {t: {u for tenant, u in pairs if tenant == t} for t in TENANTS}
    promise.kept(f"{asked} users of {len(TENANTS)} tenants, 12 paths each, no record of another")


@pytest.mark.parametrize("user", ["acme\x1fann", "ann\0", "ann\0acme"])
async def test_a_name_that_would_reach_into_another_tenant_is_refused(
    promise: Promise, user: str
) -> None:
    async with served(keys={"sk-test-0001": "", "sk-test-0002": "acme"}) as one:
        async with one.client("sk-test-0002") as theirs:
            await theirs.post(PATH, json=body("My cat is called Miso.", user="ann"))
        async with one.client() as client:
            answer = await client.post(PATH, json=body("What is my cat called?", user=user))

    assert answer.status_code == 400
    assert "Miso" not in answer.text
    promise.kept(f"{user!r} refused")
