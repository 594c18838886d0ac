"""Every error Assay raises on purpose.

AssayError
├── ConfigError                a setting, a file or a name given by the user is unusable
├── StoreError
│   ├── RecordNotFound         no record under this id in this namespace
│   ├── ConflictingWrite       an id was written again with other content
│   ├── ErasedInput            what was asked for was erased with its subject
│   ├── StoreClosed            the bank was used after it was closed
│   ├── StoreCorrupt           what is on disk is not what was written
│   ├── NewerFormat            the bank was written by a newer Assay
│   ├── LeaseLost              another process took the session over
│   └── EmbedderMismatch       the bank was built with another embedder
├── GuardError
│   ├── BudgetExceeded         a reservation does not fit what is left
│   └── GuardFailed            the guard could not measure, and the policy is to fail the turn
├── ModelError
│   ├── ModelUnavailable       worth retrying: refused, timed out, overloaded
│   ├── ModelRefused           the endpoint answered that it will not (authentication, content, bad request)
│   ├── MalformedAnswer        the endpoint answered something that is no completion
│   ├── ContextOverflow        the prompt does not fit the model's context; it was not sent
│   └── CassetteMiss           a replay asked something that is not in the cassette
├── BusError                   the bus between processes cannot be reached or used
│   └── JobFailed              every try of a job failed; carries the kind of the cause
├── TurnError
│   ├── TurnTimeout            the turn's deadline passed
│   └── TurnFailed             a command of the turn failed; carries the kind of the cause
└── ScenarioError              a scenario file or a benchmark's data is not what was expected

A caller's mistake is ``ValueError`` or ``TypeError``, raised before any effect.
"""


class AssayError(Exception):
    """Root of the tree; ``str()`` says what was expected, what came and what to do."""


class ConfigError(AssayError):
    """A setting, a file or a name given by the user is unusable."""


class StoreError(AssayError):
    """Reading or writing the bank failed."""


class RecordNotFound(StoreError):
    """No record under this id in this namespace."""

    def __init__(self, record_id: str, namespace: str) -> None:
        super().__init__(f"no memory record {record_id!r} in namespace {namespace!r}")
        self.record_id = record_id
        self.namespace = namespace


class ConflictingWrite(StoreError):
    """An id was written again with other content; the first content stands."""


class ErasedInput(StoreError):
    """What was asked for was erased with its subject; nothing brings it back."""


class StoreClosed(StoreError):
    """The bank was used after it was closed."""


class StoreCorrupt(StoreError):
    """What is on disk is not what was written."""


class NewerFormat(StoreError):
    """The bank was written by a newer Assay; it was not touched."""


class LeaseLost(StoreError):
    """Another process took the session over; what this one does with it is not written."""


class EmbedderMismatch(StoreError):
    """The bank was built with another embedder; it was not touched.

    Attributes:
        bound: Name of the embedder it was built with.
        given: Name of the one it was opened with.
    """

    def __init__(self, message: str, *, bound: str, given: str) -> None:
        super().__init__(message)
        self.bound = bound
        self.given = given


class GuardError(AssayError):
    """A guard could not decide."""


class BudgetExceeded(GuardError):
    """A reservation does not fit what is left; nothing has run."""

    def __init__(self, what: str, *, needed: float, left: float) -> None:
        super().__init__(
            f"budget exceeded: {needed:g} {what} needed, {left:g} left; "
            "raise the limit or pass fewer candidates"
        )
        self.what = what
        self.needed = needed
        self.left = left


class GuardFailed(GuardError):
    """The guard could not measure, and the declared policy is to fail the turn."""


class ModelError(AssayError):
    """A language model could not be asked, or its answer not be used."""


class ModelUnavailable(ModelError):
    """Worth retrying: refused, timed out, overloaded."""


class ModelRefused(ModelError):
    """The endpoint answered that it will not: authentication, content, bad request."""


class MalformedAnswer(ModelError):
    """The endpoint answered something that is no completion."""


class ContextOverflow(ModelError):
    """The prompt does not fit the model's context; it was not sent."""


class CassetteMiss(ModelError):
    """A replay asked something that is not in the cassette; the message shows the nearest entry."""


class BusError(AssayError):
    """The bus between processes cannot be reached or used."""


class JobFailed(BusError):
    """Every try of a job failed; ``kind`` is the class name of the last cause."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class TurnError(AssayError):
    """A turn did not end with a reply."""


class TurnTimeout(TurnError):
    """The turn's deadline passed."""


class TurnFailed(TurnError):
    """A command of the turn failed; ``kind`` is the class name of the cause."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class ScenarioError(AssayError):
    """A scenario file or a benchmark's data is not what was expected."""
