"""The SQL text of a column expression, read back from Spark's tree of it.

Columns made by `F.expr` keep their text. Operators, functions, literals, casts and names are written as SQL;
for everything else (Python functions, lambda functions, windows) there is no text.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from tidegate.driver.compile.keys import quoted
from tidegate.driver.java_collections import java_items

_INFIX = {"=", "<=>", "<", "<=", ">", ">=", "!=", "+", "-", "*", "/", "%", "and", "or", "&", "|", "^", "||"}
_BEHIND = {"isNull": "IS NULL", "isNotNull": "IS NOT NULL", "isnull": "IS NULL", "isnotnull": "IS NOT NULL"}


def sql_of(column: Any) -> str | None:
    """The text of a column; None if it has none."""
    made = getattr(column, "_jc", None)
    return None if made is None else _text(made.node())


def _text(node: Any) -> str | None:
    kind = node.getClass().getSimpleName()
    if kind == "SqlExpression":
        return f"({node.expression()})"
    if kind == "UnresolvedAttribute":
        return ".".join(quoted(part) for part in java_items(node.nameParts()))
    if kind == "Literal":
        return _literal(node)
    if kind == "Cast":
        inner = _text(node.child())
        return None if inner is None else f"CAST({inner} AS {node.dataType().sql()})"
    if kind == "UnresolvedExtractValue":
        inner, part = _text(node.child()), _text(node.extraction())
        return None if inner is None or part is None else f"{inner}[{part}]"
    return _call(node) if kind == "UnresolvedFunction" else None


def _call(node: Any) -> str | None:
    name = str(node.functionName())
    inner = [_text(argument) for argument in java_items(node.arguments())]
    texts = [text for text in inner if text is not None]
    if len(texts) < len(inner) or node.isDistinct() or node.isUserDefinedFunction():
        return None
    return _written(name, texts)


def _written(name: str, texts: list[str]) -> str | None:
    """A call of a function or an operator with these arguments."""
    if name in _INFIX and len(texts) == 2:
        return f"({texts[0]} {name.upper()} {texts[1]})"
    if name in _BEHIND and len(texts) == 1:
        return f"({texts[0]} {_BEHIND[name]})"
    if name == "in" and len(texts) > 1:
        return f"({texts[0]} IN ({', '.join(texts[1:])}))"
    if name in ("not", "!", "negative") and len(texts) == 1:
        return f"({'-' if name == 'negative' else 'NOT '}{texts[0]})"
    return f"{name}({', '.join(texts)})" if name.isidentifier() else None


def _literal(node: Any) -> str | None:
    value = node.value()
    # Py4J turns numbers and strings into Python's; other values stay objects of Java.
    if hasattr(value, "getClass") and value.getClass().getName() == "java.time.Duration":
        return f"INTERVAL '{value.toSeconds() * 10**6 + value.getNano() // 1000}' MICROSECONDS"
    plain = value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))
    return str(node.sql()) if plain else None
