# SPDX-License-Identifier: Apache-2.0
"""Every mutant of the specification, in a fixed order and with a fixed name.

A name is `formula@site:kind`, as `first_head@0:floordiv_to_mod`; a change throughout a formula has
`all` for its site.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.mutation.operators import Place, changes, exchanges
from kvreshard.proofs.mutation.sites import replaced, sites
from kvreshard.spec.canonical import s_expression, spec_formulas
from kvreshard.spec.formula import FORMULAS, Formula

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kvreshard.proofs.mutation.sites import Site


@dataclass(frozen=True, eq=False)
class Mutant:
    """A formula with another body.

    Attributes:
        formula: the name of the formula.
        site: the number of the site; None for a change throughout.
        kind: the name of the mistake.
        before: what stood there.
        after: what stands there now.
        body: the whole body with the change.
        same_as: the names of later mutants with the same meaning by simplification alone.
    """

    formula: str
    site: int | None
    kind: str
    before: str
    after: str
    body: z3.ExprRef
    same_as: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the name, which stays while the formula does."""
        return f"{self.formula}@{'all' if self.site is None else self.site}:{self.kind}"

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Put the mutant in the place of the formula, in this process."""
        right = FORMULAS[self.formula]
        FORMULAS[self.formula] = replace(right, body=self.body)
        try:
            yield
        finally:
            FORMULAS[self.formula] = right


@dataclass(frozen=True)
class Generation:
    """What was generated.

    Attributes:
        mutants: those that are judged; each has a meaning of its own by simplification.
        sites: how many sites each formula has.
        unchanged: the names of changes that simplification turns into the formula itself.
    """

    mutants: tuple[Mutant, ...]
    sites: dict[str, int]
    unchanged: tuple[str, ...]

    @property
    def duplicates(self) -> int:
        """Return how many mutants were dropped because another has the same meaning."""
        return sum(len(mutant.same_as) for mutant in self.mutants)

    def by_name(self) -> dict[str, Mutant]:
        """Return the judged mutants by their names."""
        return {mutant.name: mutant for mutant in self.mutants}


def generate(formulas: Iterable[Formula] | None = None) -> Generation:
    """Return every mutant of every formula of the specification, or of the given ones."""
    chosen = list(spec_formulas().values() if formulas is None else formulas)
    kept: list[Mutant] = []
    unchanged: list[str] = []
    for made in chosen:
        own = list(_mutants_of(made))
        different, same = _told_apart(made, own)
        kept += different
        unchanged += same
    names = [mutant.name for mutant in kept]
    if len(set(names)) != len(names):
        raise ValueError("two mutants have the same name")
    counts = {made.name: len(sites(made.body)) for made in chosen}
    return Generation(tuple(kept), counts, tuple(unchanged))


def _mutants_of(made: Formula) -> Iterator[Mutant]:
    places = sites(made.body)
    for site in places:
        for kind, term in changes(Place(site, made, _argument(site, places))):
            body = replaced(made.body, site.path, term)
            yield Mutant(
                made.name, site.number, kind, s_expression(site.node), s_expression(term), body
            )
    for kind, body in exchanges(made):
        yield Mutant(made.name, None, kind, s_expression(made.body), s_expression(body), body)


def _argument(site: Site, places: list[Site]) -> str | None:
    """Return the name of the parameter that the site is the argument of, or None."""
    if not site.path:
        return None
    (above,) = (place.node for place in places if place.path == site.path[:-1])
    callee = FORMULAS.get(above.decl().name())
    return callee.parameter_names[site.path[-1]] if callee else None


def _told_apart(made: Formula, mutants: list[Mutant]) -> tuple[list[Mutant], list[str]]:
    """Return the mutants without duplicates, and the names of those that change nothing."""
    right = z3.simplify(made.body).sexpr()
    first: dict[str, Mutant] = {}
    unchanged = []
    for mutant in mutants:
        meaning = z3.simplify(mutant.body).sexpr()
        if meaning == right:
            unchanged.append(mutant.name)
        elif meaning in first:
            same_as = (*first[meaning].same_as, mutant.name)
            first[meaning] = replace(first[meaning], same_as=same_as)
        else:
            first[meaning] = mutant
    return list(first.values()), unchanged
