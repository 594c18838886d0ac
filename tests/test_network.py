"""The suite talks to this machine and to nobody else."""

import socket

import pytest


def test_a_connection_elsewhere_is_refused() -> None:
    with socket.socket() as connection, pytest.raises(RuntimeError, match="only this machine"):
        connection.connect(("192.0.2.1", 80))
