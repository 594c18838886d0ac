"""Fixtures every room may use."""

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from .nats_servers import nats_server, nats_url
from .servers import clean_database, fresh_database, postgres_server, shared_database

__all__ = [
    "clean_database",
    "fresh_database",
    "nats_server",
    "nats_url",
    "postgres_server",
    "shared_database",
]

# How long an example takes says more about the machine than about the code.
settings.register_profile("assay", deadline=None)
settings.load_profile("assay")

# A shell that runs the tests in the background lets them ignore Ctrl-C, and their children, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = ("127.", "::1", "localhost")


def _refuse_network(event: str, arguments: tuple[object, ...]) -> None:
    """Audit hook: a test may talk to this machine and to nobody else."""
    if event != "socket.connect":
        return
    # (host, port, ...) on a network; a path on a socket of this machine.
    address = repr(arguments[1])
    if address.startswith("('") and not address[2:].startswith(HERE):
        raise RuntimeError(f"a test tried to reach {address}; only this machine is allowed")


sys.addaudithook(_refuse_network)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the checkout; the test is skipped only where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared/data, which is not part of the repository")
    return SHARED
