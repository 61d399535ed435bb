"""Keeps the collection of garbage between two tasks of a worker short.

Spark's workers run a full collection after every task, and the next task waits for it. The libraries of this
package are hundreds of thousands of objects, and looking at all of them takes longer than most tasks: 50 to
90 ms. What is loaded stays loaded, so the collector need not look at it.
"""

from __future__ import annotations

import gc
import sys

#: Kernels are loaded in the first tasks of a worker, with many objects and no new module.
_FIRST_TASKS = 16


class LoadedObjects:
    """The objects of a worker process that the collector leaves alone."""

    def __init__(self) -> None:
        self._tasks, self._modules = 0, 0

    def keep(self) -> None:
        """Call at the beginning of a task, right after a collection: all that exists is in use."""
        self._tasks += 1
        loaded = len(sys.modules)
        if self._tasks <= _FIRST_TASKS or loaded != self._modules:
            self._modules = loaded
            gc.freeze()


LOADED_OBJECTS = LoadedObjects()
