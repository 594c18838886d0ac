"""How many requests a tenant may send in a minute."""

import math

from assay.runtime.http.gate import overloaded
from assay.stores.protocols import Clock

_MINUTE = 60.0


class Rates:
    """One bucket of requests per tenant, refilled evenly; full at first.

    Args:
        per_minute: Requests of one tenant; 0: no limit.
        clock: For the refill.
    """

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, tenant: str) -> None:
        """Count a request.

        Raises:
            ApiError: 429, with the seconds until the next one, if the bucket is empty.
        """
        if not self._per_minute:
            return
        now, each = self._clock.monotonic(), _MINUTE / self._per_minute
        left, since = self._left.get(tenant, (float(self._per_minute), now))
        left = min(float(self._per_minute), left + (now - since) / each)
        if left < 1:
            self._left[tenant] = left, now
            limit = f"the limit is {self._per_minute} requests a minute; slow down"
            raise overloaded(limit, math.ceil((1 - left) * each))
        self._left[tenant] = left - 1, now
