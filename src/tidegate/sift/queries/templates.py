"""Templates: a hundred thousand predicates that differ only in their literals are parsed once.

Parsing SQL takes a few hundred microseconds, and queries of one program are similar. So a regular
expression extracts the literals, and the remainder is the *template*:

    lat >= 40.6 and kind = 'bus'   →   lat >= 1 and kind = '2'   with   40.6, 'bus'

A template is SQL itself, with the number of a literal (from one, so that a sign before it survives) in its
place. It is parsed like any predicate. In its tree the numbers become slots, which are filled with the
literals of a query.

Guarantee: the filled tree equals the result of `parse`. Where a regular expression could misread a literal
(quoted names, comments, escapes, prefixed strings, suffixed numbers), or where the template is refused, the
predicate itself is parsed, so errors show what the user wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from tidegate.api.range_queries import RangeQuery, refused
from tidegate.errors import FlowError
from tidegate.sift.queries.predicates import Compare, ConstantTruth, Literal, Not, Predicate, Slot
from tidegate.sift.queries.sql import number, parse

_LITERAL = re.compile(
    r"((?<![\w.'])(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.'])|(?<![\w'])'[^'\\]*'(?![\w']))"
)
#: A template in which every literal was found: words, numbers of literals, operators, and no comment.
_PLAIN = re.compile(r"(?:[^\W\d]\w*+|(?<![\w.'])[0-9]++(?![\w.'])|'[0-9]++'|[\s<>=!(),+]|-(?!-))*+")


@dataclass
class TemplateGroup:
    """Queries of one template."""

    tree: Predicate
    #: Their numbers, and the literals of each as written.
    members: list[int] = field(default_factory=list)
    literals: list[list[str]] = field(default_factory=list)

    def predicate(self, member: int) -> Predicate:
        texts = self.literals[member]
        return _mapped(self.tree, lambda literal: filled(literal, texts))

    def values(self, comparison: Compare) -> Iterator[Literal]:
        """The literals of the members in one leaf of the tree."""
        return (filled(literal, texts) for literal in comparison.literals for texts in self.literals)


def grouped(queries: Iterable[RangeQuery]) -> list[TemplateGroup]:
    """The queries by template, in the order of first occurrence."""
    groups: dict[str, TemplateGroup | None] = {}
    alone: dict[str, TemplateGroup] = {}
    for i, query in enumerate(queries):
        pieces = _LITERAL.split(query.where)
        literals = pieces[1::2]
        pieces[1::2] = [f"'{n}'" if text[0] == "'" else str(n) for n, text in enumerate(literals, 1)]
        template = "".join(pieces)
        if template not in groups:
            groups[template] = _group(template)
        group = groups[template]
        if group is None:
            group = alone.get(query.where) or alone.setdefault(query.where, TemplateGroup(_parsed(query)))
        group.members.append(i)
        group.literals.append(literals)
    found = [*(group for group in groups.values() if group), *alone.values()]
    return sorted(found, key=lambda group: group.members[0])


def filled(literal: Literal, texts: list[str]) -> Literal:
    """The value of a slot, given the literals of a query as written."""
    if not isinstance(literal, Slot):
        return literal
    text = texts[literal.number]
    if text[0] == "'":
        return text[1:-1]
    return number("-" + text if literal.negative else text)


def _parsed(query: RangeQuery) -> Predicate:
    try:
        return parse(query.where)
    except FlowError as error:
        raise refused(query, error) from None


def _group(template: str) -> TemplateGroup | None:
    """The group of a template; None if its predicates must be parsed one by one."""
    if not _PLAIN.fullmatch(template):
        return None
    try:
        return TemplateGroup(_mapped(parse(template), _slot))
    except FlowError:
        return None


def _slot(literal: Literal) -> Literal:
    if isinstance(literal, Decimal | str):
        return Slot(abs(int(literal)) - 1, negative=int(literal) < 0)
    return literal


def _mapped(tree: Predicate, change: Callable[[Literal], Literal]) -> Predicate:
    """The tree with its literals replaced."""
    if isinstance(tree, Compare):
        return Compare(tree.column, tree.operator, tuple([change(literal) for literal in tree.literals]))
    if isinstance(tree, ConstantTruth):
        return tree
    if isinstance(tree, Not):
        return Not(_mapped(tree.part, change))
    return type(tree)(tuple([_mapped(part, change) for part in tree.parts]))
