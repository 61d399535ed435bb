"""The operator of windows of rows: like windows of time, but they wait for rows."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.driver.operators.window import WindowOperator
from tidegate.window.lifetime import RowsLifetime
from tidegate.worker.runtime.task_runner import Task
from tidegate.worker.window.count_task import CountWindowInstance
from tidegate.worker.window.work import WindowWork


class CountWindowOperator(WindowOperator):
    """Windows of a number of rows."""

    def _tasks(self) -> Callable[[WindowWork, int, str], Task]:
        return CountWindowInstance

    def _lifetime(self) -> RowsLifetime:
        return RowsLifetime()
