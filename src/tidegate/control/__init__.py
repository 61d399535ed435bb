"""Control decides, between two batches, what the next batch will do.

It reads what the last batch reported and returns one value, the `Plan` (`model/plan.py`). Reports in,
decisions out, no input or output of its own: `state/plan_log.py` writes the plan. Clock and randomness are
arguments, so a plan can be made again and is the same. `driver/engine/controllers.py` calls control twice a
batch: to plan it, and to learn from it.

    goal/              how much to shed: the level of every mechanism, such as the probe ratio of a join
    actuators/         what a level means: which parts, rows or windows one mechanism leaves out
    balance/           where rows are stored and which instance processes them
    repair/            skipped pairs that a later batch finds
    receipts/          what was lost
    identity/          what a change of the flow between two runs means for the state
    levels.py          the levels that the goal decided, for whatever acts on them
    observing.py       a goal that sheds nothing, and says what it would have shed
    planning.py        the plan of a batch; outcome.py: the manifest after it
    batch_size.py      how much of its sources a batch takes without a goal
    small_batches.py   whether one task runs all instances
    watermarks.py      how far event time has come
    latency.py         how long rows took from their availability to the publishing of their batch
    merging.py         which stored pieces become one
    convex_hull.py     the lower convex hull of a curve
"""
