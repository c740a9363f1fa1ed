"""Tables that print, show themselves in notebooks, and become pandas' or a plot."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas as pd

Value = str | int | float | bool

# The colours of a plot that tell rows apart, the same in all plots for the most frequent.
_COLOURS = {"binary": "#0072b2", "float32": "#d55e00"}
_OTHER_COLOURS = ("#009e73", "#e69f00", "#cc79a7", "#56b4e9")


class Table(Sequence[Mapping[str, Value]]):
    """Rows with the same columns.

    It is a sequence of dictionaries; ``table["column"]`` is the list of a column.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Value]],
        totals: Mapping[str, Value] | None = None,
        *,
        plotted: str | None = None,
        coloured: str | None = None,
    ) -> None:
        self.title = title
        self.columns = tuple(columns)
        self.totals: Mapping[str, Value] = dict(totals or {})
        self._rows = [tuple(row) for row in rows]
        self._plotted, self._coloured = plotted, coloured

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Value]: ...
    @overload
    def __getitem__(self, index: slice) -> list[Mapping[str, Value]]: ...
    @overload
    def __getitem__(self, index: str) -> list[Value]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            if index not in self.columns:
                raise KeyError(f"no column {index!r}; the table has {', '.join(self.columns)}")
            at = self.columns.index(index)
            return [row[at] for row in self._rows]
        if isinstance(index, slice):
            return [dict(zip(self.columns, row, strict=True)) for row in self._rows[index]]
        return dict(zip(self.columns, self._rows[index], strict=True))

    def __iter__(self) -> Iterator[Mapping[str, Value]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self._rows)

    def _cells(self) -> list[list[str]]:
        return [[_cell(v) for v in row] for row in self._rows]

    def _foot(self) -> list[str]:
        return [_cell(self.totals[c]) if c in self.totals else "" for c in self.columns]

    def __repr__(self) -> str:
        lines = [list(self.columns), *self._cells()]
        if self.totals:
            lines.append(self._foot())
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        body = "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )
        return f"{self.title}\n{body}"

    def _repr_html_(self) -> str:
        def row(tag: str, cells: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        body = "".join(row("td", cells) for cells in self._cells())
        foot = f"<tfoot>{row('th', self._foot())}</tfoot>" if self.totals else ""
        return (
            f'<table style="white-space: nowrap"><caption style="caption-side: top; text-align: left">'
            f"{html.escape(self.title)}</caption>"
            f"<thead>{row('th', self.columns)}</thead><tbody>{body}</tbody>{foot}</table>"
        )

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a DataFrame, without the totals; needs pandas."""
        import pandas as pd

        return pd.DataFrame(self._rows, columns=list(self.columns))

    def plot(self, column: str | None = None, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """A bar for each row, of a column of numbers; needs matplotlib.

        Without a column it is that which matters most: the bytes of a report, with a colour for
        each precision, and the median time of a profile.
        """
        import matplotlib.pyplot as plt

        column = column or self._plotted
        if column is None:
            column = next(
                name
                for name, v in zip(self.columns, self._rows[0], strict=True)
                if isinstance(v, int | float) and not isinstance(v, bool)
            )
        values = [v for v in self[column] if isinstance(v, int | float)]
        if len(values) != len(self) or not values:
            raise ValueError(f"the column {column!r} has no numbers")
        if ax is None:
            ax = plt.figure(figsize=(7, 1 + 0.3 * len(self)), layout="constrained").gca()
        if self._coloured is None:
            ax.barh(range(len(self)), values)
        else:
            kinds = self[self._coloured]
            others = itertools.cycle(_OTHER_COLOURS)
            for kind in dict.fromkeys(kinds):
                rows = [i for i, v in enumerate(kinds) if v == kind]
                colour = _COLOURS.get(str(kind)) or next(others)
                ax.barh(rows, [values[i] for i in rows], color=colour, label=str(kind))
            ax.legend()
        ax.set_yticks(range(len(self)), [str(v) for v in self[self.columns[0]]])
        ax.invert_yaxis()
        ax.set_xlabel(column)
        ax.set_title(self.title)
        return ax


def _cell(v: Value) -> str:
    if isinstance(v, bool):
        return "yes" if v else "no"
    if not isinstance(v, float):
        return str(v)
    return f"{v:.2f}" if v == 0 or abs(v) >= 0.01 else f"{v:.2g}"
