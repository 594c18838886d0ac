"""What ``assay worker`` says to a person and to a program."""

import json

import pytest

from assay.cli.worker.telling import Json, Lines, Teller
from assay.runtime.distributed.worker import Ended
from assay.runtime.jobs import Job, JobKind
from assay.runtime.settings import ServeSettings, Settings
from assay.stores.records import Namespace


def ended(kind: JobKind, failure: str = "") -> Ended:
    job = Job("j1", kind, "acme", Namespace("acme"), b"My cat is called Miso.")
    return Ended(job, 0.25, failure)


def told_all(teller: Teller) -> None:
    settings = Settings(serve=ServeSettings(bank="postgresql://db/assay", bus="nats://bus:4222"))
    with teller.at_work():
        teller.started(settings, ["turn", "evaluation"])
        teller.ended(ended("turn"))
        teller.ended(ended("evaluation"))
        teller.ended(ended("turn", "TurnFailed"))
        teller.stopping()
    teller.stopped()


def test_a_person_reads_what_it_does_and_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    told_all(Lines())

    said = capsys.readouterr()
    assert said.out == ""
    assert "turn and evaluation jobs, 16 of each at once" in said.err
    assert said.err.endswith("stopped; 1 turns, 1 evaluations done, 1 failed\n")
    assert "Miso" not in said.err


def test_a_program_reads_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    told_all(Json())

    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in said] == [
        "worker.started",
        *["job.ended"] * 3,
        "worker.stopping",
        "worker.stopped",
    ]
    assert said[3] == {
        "event": "job.ended",
        "id": "j1",
        "kind": "turn",
        "seconds": 0.25,
        "failure": "TurnFailed",
    }


REFUSED = Ended(ended("turn").job, 0.001, "NotForThisWorker", "it has model 'a', it is for 'b'")


def test_a_person_is_told_once_why_jobs_are_left_to_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    teller = Lines()
    teller.ended(REFUSED)
    teller.ended(REFUSED)
    teller.stopped()

    said = capsys.readouterr().err
    assert said.count("turn jobs are left to other workers: it has model 'a', it is for 'b'") == 1
    assert "0 failed" in said


def test_a_program_is_told_why_a_job_was_left_to_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Json().ended(REFUSED)

    assert json.loads(capsys.readouterr().out)["message"] == REFUSED.refused
