"""Fixtures every room may use."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the checkout; the test is skipped only where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared/data, which is not part of the repository")
    return SHARED
