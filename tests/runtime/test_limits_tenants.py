"""Tenant and user in one name: unambiguous, whatever the names are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.runtime.limits import namespace_of, tenant_user_of

NAMES = st.text(
    st.characters(exclude_characters="\0\x1f", exclude_categories=["Cs"]), min_size=1, max_size=20
).filter(str.strip)


@given(tenant=NAMES | st.just(""), user=NAMES)
def test_a_namespace_gives_back_tenant_and_user(tenant: str, user: str) -> None:
    assert tenant_user_of(namespace_of(tenant, user)) == (tenant, user)


def test_without_a_tenant_the_namespace_is_the_user() -> None:
    assert namespace_of("", "u1") == "u1"


@pytest.mark.parametrize("user", ["acme\x1fann", "ann\0", "", "x" * 600])
def test_a_name_that_could_be_taken_for_another_is_refused(user: str) -> None:
    with pytest.raises(ValueError, match="user"):
        namespace_of("", user)
