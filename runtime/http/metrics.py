"""What is counted, for Prometheus: figures only, without a name of a tenant, a user or a text."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The figures of one service, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "assay_requests", "Chat requests by HTTP status.", ["status"], registry=self.registry
        )
        self.dropped = Counter(
            "assay_dropped", "Requests whose client went away.", registry=self.registry
        )
        self.records = Counter(
            "assay_records",
            "Records proposed for a prompt, by what became of them.",
            ["decision"],
            registry=self.registry,
        )
        self.tokens = Counter(
            "assay_tokens", "Tokens spent, experiments included.", registry=self.registry
        )
        self.calls = Counter(
            "assay_model_calls", "Live model calls, retries included.", registry=self.registry
        )
        self.turn_seconds = Histogram(
            "assay_turn_seconds",
            "From a request to the end of its answer.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.first_seconds = Histogram(
            "assay_first_piece_seconds",
            "From a request to the first piece of its answer.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.active = Gauge("assay_turns_active", "Turns under way.", registry=self.registry)
        self.waiting = Gauge("assay_turns_waiting", "Turns that wait.", registry=self.registry)

    def text(self, *, active: int, waiting: int) -> bytes:
        """In Prometheus's text format.

        Args:
            active: Turns under way now.
            waiting: Turns that wait now.
        """
        self.active.set(active)
        self.waiting.set(waiting)
        return generate_latest(self.registry)
