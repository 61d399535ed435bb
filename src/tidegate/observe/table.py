"""Prints tables: a title, columns, rows of text, numbers right-aligned.

On a terminal they have rules and bold heads; in a file they are plain text of the same shape. Cells are never
truncated: they wrap on a terminal, and a table in a file is as wide as it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text


def print_table(
    console: Console, title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], *, left: int = 1
) -> None:
    """The first `left` columns are left-aligned, the others right-aligned."""
    # The table's own title would wrap at the width of the table.
    console.print(Text(title, style="bold"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, show_header=any(heads))
    for number, head in enumerate(heads):
        table.add_column(head, justify="left" if number < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    if console.is_terminal:
        console.print(table)
        return
    wide = Console(file=StringIO(), width=10_000, color_system=None)
    wide.width = Measurement.get(wide, wide.options, table).maximum
    with wide.capture() as text:
        wide.print(table)
    # Trailing padding is useless in a file and makes diffs hard to read.
    console.file.write("\n".join(line.rstrip() for line in text.get().splitlines()) + "\n")
