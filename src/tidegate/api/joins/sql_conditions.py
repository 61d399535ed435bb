"""SQL text as the condition of a join, split into keys, time bounds and the rest.

    orders.cell = tracks.cell                                              a key
    AND tracks.ts BETWEEN orders.ts - INTERVAL 5 MINUTES AND orders.ts     time bounds
    AND speed < 10                                                         the rest

sqlglot parses the text, but the text itself is kept: key expressions and the rest reach Spark as they were
written, except for the names of columns. A name is qualified by the name of its stream, or plain if only one
of the two streams has such a column.

A key is an equality (`=`, or `<=>` and `IS NOT DISTINCT FROM`, where null equals null) with columns of one
stream on each side: two columns, or expressions such as `lower(orders.city) = lower(tracks.city)`. Time
bounds are described in `sql_time_bounds.py`. Everything else is the rest, a condition on the joined row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from tidegate.api.joins.conditions import JoinKey
from tidegate.api.joins.sql_time_bounds import Bounds, bounds_of
from tidegate.errors import FlowError

#: A class of sqlglot in its messages.
_CLASS = re.compile(r"<class '[\w.]+\.(\w+)'>")
#: Parsed text of these kinds is a name that happens to parse, for example "order id".
_NAMES = (exp.Column, exp.Alias, exp.Literal, exp.Identifier, exp.Boolean, exp.Null)


@dataclass(frozen=True)
class SqlSide:
    """What the names of one stream are resolved against."""

    name: str
    #: The event-time column; None if no column shows the event time.
    time: str | None
    columns: tuple[str, ...]


@dataclass(frozen=True)
class SqlTemplate:
    """SQL text with places for column names: a place is the side and its column."""

    pieces: tuple[str | tuple[int, str], ...]

    def over(self, name_of: Callable[[int, str], str]) -> str:
        """The text with these names, quoted."""
        return "".join(piece if isinstance(piece, str) else _quoted(name_of(*piece)) for piece in self.pieces)

    def and_also(self, other: SqlTemplate) -> SqlTemplate:
        return SqlTemplate((*self.pieces, " AND ", *other.pieces))


@dataclass(frozen=True)
class SqlParts:
    """The parts of a condition."""

    keys: tuple[JoinKey, ...]
    bounds: Bounds
    rest: SqlTemplate | None


@dataclass(frozen=True)
class _Reference:
    """A column in the text: from `start` to before `stop`; `whole`: not a field of it."""

    start: int
    stop: int
    side: int
    column: str
    whole: bool


def is_sql(text: str) -> bool:
    """Whether a text is a condition and not the name of a column."""
    if text.isidentifier():
        return False
    try:
        parsed = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        # Half a condition is reported as such, and not as an unknown column.
        return any(sign in text for sign in "=<>")
    while isinstance(parsed, exp.Paren):
        parsed = parsed.this
    if isinstance(parsed, exp.Binary) and not isinstance(parsed, (exp.Predicate, exp.Connector)):
        return False  # Such as "lat-lon", which may well be a column.
    return not isinstance(parsed, _NAMES)


def split_condition(text: str, left: SqlSide, right: SqlSide, case_sensitive: bool = False) -> SqlParts:
    """Split a condition; FlowError says which part of it is wrong."""
    if left.name == right.name:
        raise FlowError(
            f"The SQL condition of a join cannot tell its two streams apart: both are {left.name!r}",
            code="JOIN_SQL_SAME_STREAM",
            got=text,
            do='Write on="key" or on={"left": "right"}, with within=… and where=…',
        )
    keys: list[JoinKey] = []
    bounds, rest = Bounds(), None
    names = _Names(text, (left, right), case_sensitive)
    for piece in _conjuncts(text):
        term = _Term(piece, names)
        found = bounds_of(term.tree, term.time_of)
        if found is not None:
            bounds = bounds.both(found[0])
        if found is None or not found[1]:
            key = term.key() if found is None else None
            if key is not None:
                keys += [key] if key not in keys else []
            elif not isinstance(term.tree, exp.Boolean) or not term.tree.this:
                mine = term.template(0, len(piece), "(", ")")
                rest = mine if rest is None else rest.and_also(mine)
    if not keys:
        raise FlowError(
            "The SQL condition of a join has no equality between the two streams",
            code="JOIN_SQL_NO_KEY",
            got=text,
            why="Rows are found by equal keys",
            do="Add one, for example a.key = b.key; for other conditions use tg.pairwise or tg.overlap",
        )
    return SqlParts(tuple(keys), bounds, rest)


class _Names:
    """Resolves the names of a condition."""

    def __init__(self, text: str, sides: tuple[SqlSide, SqlSide], case_sensitive: bool) -> None:
        self._text, self._sides = text, sides
        self._same: Callable[[str], str] = str if case_sensitive else str.lower

    def resolve(self, parts: list[exp.Identifier]) -> tuple[int, str, int]:
        """Side and column of a name with dots in it, and how many of its parts name them."""
        names = [part.name for part in parts]
        stream = next((s for s in (0, 1) if self._is_stream(s, names[0])), None)
        if stream is not None and len(names) > 1:
            column = self._column(stream, names[1])
            if column is not None:
                return stream, column, 2
        owners = [(s, column) for s in (0, 1) if (column := self._column(s, names[0])) is not None]
        if len(owners) == 1:
            return (*owners[0], 1)
        if len(owners) == 2:
            raise self._error(
                f"Column {names[0]!r} is in both streams of the join",
                code="JOIN_SQL_AMBIGUOUS_COLUMN",
                do=f"Write {' or '.join(f'{side.name}.{names[0]}' for side in self._sides)}",
            )
        if stream is None and len(names) > 1:
            raise self._error(
                f"A join has no stream {names[0]!r}",
                code="JOIN_SQL_UNKNOWN_STREAM",
                do=f"Use {' or '.join(repr(side.name) for side in self._sides)}, or plain names",
            )
        listed = "; ".join(f"{side.name}: {', '.join(side.columns)}" for side in self._sides)
        raise self._error(
            f"The streams of a join have no column {'.'.join(names)!r}",
            code="JOIN_SQL_UNKNOWN_COLUMN",
            do=f"Use one of these. {listed}",
        )

    def is_time(self, side: int, column: str) -> bool:
        time = self._sides[side].time
        return time is not None and self._same(time) == self._same(column)

    def _is_stream(self, side: int, name: str) -> bool:
        return self._same(self._sides[side].name) == self._same(name)

    def _column(self, side: int, name: str) -> str | None:
        """The column as its stream spells it; None if it has no such column."""
        columns = self._sides[side].columns
        return next((one for one in columns if self._same(one) == self._same(name)), None)

    def _error(self, wrong: str, code: str, *, do: str) -> FlowError:
        return FlowError(wrong, code=code, got=self._text, do=do)


class _Term:
    """One conjunct: its text, its tree, and the columns in it."""

    def __init__(self, text: str, names: _Names) -> None:
        self.text, self._names = text, names
        self.tree = _parsed(text).unnest()
        if self.tree.find(exp.Query) is not None:
            raise FlowError(
                "The SQL condition of a join contains a query",
                code="JOIN_SQL_SUBQUERY",
                got=text,
                do="Join with a table by transform, before or behind this join",
            )
        self._references = {id(one): self._reference(one) for one in self.tree.find_all(exp.Column)}

    def _reference(self, column: exp.Column) -> _Reference:
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        if len(parts) < len(column.parts) or any("start" not in part.meta for part in parts):
            raise _unreadable(self.text, "A part of it is no column")
        side, name, count = self._names.resolve(parts)
        whole = count == len(parts)
        return _Reference(parts[0].meta["start"], parts[count - 1].meta["end"] + 1, side, name, whole)

    def time_of(self, column: exp.Column) -> int | None:
        found = self._references[id(column)]
        return found.side if found.whole and self._names.is_time(found.side, found.column) else None

    def key(self) -> JoinKey | None:
        """The key, if this is an equality of the two streams."""
        if not isinstance(self.tree, (exp.EQ, exp.NullSafeEQ)):
            return None
        operands = self.tree.this, self.tree.expression
        sides = [{self._references[id(c)].side for c in one.find_all(exp.Column)} for one in operands]
        if sides not in ([{0}, {1}], [{1}, {0}]):
            return None
        null_safe = isinstance(self.tree, exp.NullSafeEQ)
        ordered = operands if sides[0] == {0} else operands[::-1]
        found = [self._references.get(id(one.unnest())) for one in ordered]
        if all(one is not None and one.whole for one in found):
            left, right = (one.column for one in found if one is not None)
            return JoinKey(left, right, null_safe)
        cut = self._operator()
        texts = [self.template(0, cut.start), self.template(cut.stop, len(self.text))]
        if sides[0] == {1}:
            texts.reverse()
        left, right = (one.over(lambda side, column: column).strip() for one in texts)
        return JoinKey(left, right, null_safe, expressions=True)

    def _operator(self) -> slice:
        """Where the equality sign stands that separates the two operands."""
        tokens, depth = _tokens(self.text), 0
        for number, token in enumerate(tokens):
            depth += _depth_of(token)
            words = [one.text.upper() for one in tokens[number : number + 4]]
            if depth == 0 and words == ["IS", "NOT", "DISTINCT", "FROM"]:
                return slice(token.start, tokens[number + 3].end + 1)
            if depth == 0 and token.token_type in (TokenType.EQ, TokenType.NULLSAFE_EQ):
                return slice(token.start, token.end + 1)
        raise _unreadable(self.text, "Its equality sign was not found")

    def template(self, start: int, stop: int, before: str = "", behind: str = "") -> SqlTemplate:
        """The text from `start` to before `stop`, with places for its columns."""
        pieces: list[str | tuple[int, str]] = [before]
        at = start
        for found in sorted(self._references.values(), key=lambda one: one.start):
            if start <= found.start < stop:
                pieces += [self.text[at : found.start], (found.side, found.column)]
                at = found.stop
        pieces += [self.text[at:stop] + behind]
        return SqlTemplate(tuple(piece for piece in pieces if piece != ""))


def _conjuncts(text: str) -> list[str]:
    """The parts of a conjunction, as they were written."""
    whole = _parsed(text).unnest()
    if isinstance(whole, exp.Or):
        raise FlowError(
            "The SQL condition of a join is an OR",
            code="JOIN_SQL_OR",
            got=text,
            why="Keys and time bounds must hold for every pair",
            do="Write keys AND time bounds AND (… OR …)",
        )
    pieces = _cut(text)
    terms = (
        [one for part in whole.flatten() for one in _flat(part)] if isinstance(whole, exp.And) else [whole]
    )
    if [_parsed(piece).unnest() for piece in pieces] != terms:
        raise _unreadable(text, "It cannot be split at its ANDs")
    return pieces


def _flat(node: exp.Expr) -> list[exp.Expr]:
    """The terms of a conjunction, with the parentheses around them removed."""
    node = node.unnest()
    return [one for part in node.flatten() for one in _flat(part)] if isinstance(node, exp.And) else [node]


def _cut(text: str) -> list[str]:
    """The text cut at the ANDs outside of parentheses; outer parentheses are removed first."""
    tokens = _tokens(text)
    if _is_wrapped(tokens):
        return _cut(text[tokens[0].end + 1 : tokens[-1].start])
    cuts, depth, betweens = [0], 0, 0
    for number, token in enumerate(tokens):
        if number and tokens[number - 1].token_type == TokenType.DOT:
            continue  # A column may be called `end`.
        depth += _depth_of(token)
        if depth:
            continue
        if token.token_type == TokenType.OR:
            return [_trimmed(tokens, text)]
        if token.token_type == TokenType.BETWEEN:
            betweens += 1
        elif token.token_type == TokenType.AND:
            if betweens:
                betweens -= 1
            else:
                cuts.append(number)
    if len(cuts) == 1:
        return [_trimmed(tokens, text)]
    ends = [*cuts[1:], len(tokens)]
    parts = [tokens[begin + (begin > 0) : end] for begin, end in zip(cuts, ends, strict=True)]
    return [one for part in parts for one in _cut(_trimmed(part, text))]


def _depth_of(token: Token) -> int:
    if token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE):
        return 1
    return -1 if token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END) else 0


def _is_wrapped(tokens: list[Token]) -> bool:
    """Whether one pair of parentheses encloses everything."""
    if len(tokens) < 2 or tokens[0].token_type != TokenType.L_PAREN:
        return False
    depth = 0
    for number, token in enumerate(tokens):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0:
            return number == len(tokens) - 1
    return False


def _trimmed(tokens: list[Token], text: str) -> str:
    """The text of these tokens: without spaces and comments around it."""
    return text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def _tokens(text: str) -> list[Token]:
    return list(sqlglot.tokenize(text, dialect="spark"))


def _parsed(text: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as error:
        # sqlglot underlines the place with terminal codes; the first line of its message is plain text.
        said = _CLASS.sub(r"\1", str(error).splitlines()[0])
        raise _unreadable(text, said) from None
    except RecursionError:
        raise _unreadable(text[:80] + "…", "It is nested too deeply") from None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _unreadable(text: str, why: str) -> FlowError:
    return FlowError(
        "The SQL condition of a join cannot be read",
        code="JOIN_SQL_SYNTAX",
        got=text,
        why=why,
        do="Write comparisons connected by AND: orders.cell = tracks.cell AND …",
    )
