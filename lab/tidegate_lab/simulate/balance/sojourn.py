"""The mean time a row stays in an instance: one server, random arrivals, random service times (M/M/1).

Paper: Ls-Stream, theorem 1, equations 15 to 21. Rows arrive at rate E and are served at rate μ > E:

    pr_k = (E/μ)^k · (1 − E/μ)    probability of k rows in the instance  (17), (18)
    L    = E / (μ − E)            mean number of rows in the instance    (16), (19)
    AST  = L / E = 1 / (μ − E)    mean time of a row in the instance     (15), (20)

(18) is printed with a sum from 0; a sum from 1 gives the printed result. For μ <= E the queue grows without
bound and the mean is infinite.

μ is not measured but derived from the load: an instance with a capacity of C units of load per unit of time
is busy for R/C of the time, so E/μ = R/C. That is the "negative relationship" of load and μ that the proof
of theorem 1 needs and does not give.
"""

from __future__ import annotations

import math


def presence(rate: float, service_rate: float, rows: int) -> float:
    """Probability that so many rows are in the instance; equations 17 and 18."""
    if rate >= service_rate:
        return 0.0
    busy = rate / service_rate
    return busy**rows * (1.0 - busy)


def queue_length(rate: float, service_rate: float) -> float:
    """Average number of rows in the instance, served one included; equation 19."""
    return rate / (service_rate - rate) if rate < service_rate else math.inf


def sojourn_time(rate: float, service_rate: float) -> float:
    """Average time from arrival to end of service; equation 20."""
    return 1.0 / (service_rate - rate) if rate < service_rate else math.inf


def service_rate(rate: float, load: float, capacity: float) -> float:
    """μ of an instance that gets `load` from `rate` rows, per unit of time, and could do `capacity`."""
    return rate * capacity / load if load > 0 else math.inf
