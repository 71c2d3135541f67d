# SPDX-License-Identifier: Apache-2.0
"""Translation validation: prove that emitted Python means what its formulas mean.

Each formula function of the text is lifted back to z3 and proved equal to the body of its
formula, for all integers for which the formula's own divisors are at least 1. That they are, under
the formula's hypotheses, is what the definedness obligations of the ledger prove. Other formulas
stay closed on both sides, since they are validated themselves; a function may call only those
that its formula calls, so that the argument is not circular.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import z3

from kvreshard.codegen.counterexample import smallest_difference
from kvreshard.codegen.lift import Lifted, lift_function
from kvreshard.codegen.module_shape import check_encoding, check_module
from kvreshard.codegen.modules import PLANNER, EmittedModule
from kvreshard.codegen.printer import is_application
from kvreshard.codegen.selection import assumed_by, called_by, subexpressions
from kvreshard.proofs.divisors import divisors_are_positive
from kvreshard.proofs.lifting.unsupported import UnsupportedError
from kvreshard.spec.canonical import spec_formulas
from kvreshard.spec.formula import unfold
from kvreshard.spec.int64 import fits_int64, int64_bounds_for

if TYPE_CHECKING:
    from kvreshard.spec.formula import Formula

# Resource units of z3, which unlike seconds are the same on every machine. A validation takes
# a few thousand, and whether all fits in 64 bits some tens of thousands.
RLIMIT = 5_000_000

Verdict = Literal["proved", "different", "unsupported", "missing", "unknown", "shell"]


@dataclass(frozen=True)
class FunctionVerdict:
    """What validation found out about one function of the text.

    Attributes:
        name: the function, or `<module>` for what concerns the text as a whole.
        verdict: `proved` equal to its formula; `different` from it; `unsupported`, the text has
            something whose meaning is not known here; `missing`, there is no such function;
            `unknown`, the solver did not decide; `shell`, it is not a formula and need not be.
        line: where it is, if it is there.
        detail: what is wrong, in words; empty where nothing is.
    """

    name: str
    verdict: Verdict
    line: int | None = None
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether this is no reason to fail."""
        return self.verdict in ("proved", "shell")


def validate_translation(source: str, module: EmittedModule = PLANNER) -> list[FunctionVerdict]:
    """Return a verdict for each function that should be in the text and each that is.

    Args:
        source: the text of a module.
        module: which module it should be.

    The text is valid where every verdict is `ok`. It is parsed, never run.
    """
    try:
        check_encoding(source)
        tree = ast.parse(source)
    except UnsupportedError as error:
        return [FunctionVerdict("<module>", "unsupported", error.line, error.what)]
    except SyntaxError as error:
        return [FunctionVerdict("<module>", "unsupported", error.lineno, f"{error.msg}")]
    except ValueError as error:  # a null byte, before Python 3.12
        return [FunctionVerdict("<module>", "unsupported", None, f"{error}")]
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    expected = {made.name: made for made in module.formulas()}
    expected |= {name: made for name, made in spec_formulas().items() if name in functions}
    return [
        *_module_verdicts(tree, module),
        *(_verdict(made, functions.get(name), module) for name, made in expected.items()),
        *_shell_verdicts(functions, expected, module.shell),
    ]


def _module_verdicts(tree: ast.Module, module: EmittedModule) -> list[FunctionVerdict]:
    try:
        check_module(tree, module.shape)
    except UnsupportedError as error:
        return [FunctionVerdict("<module>", "unsupported", error.line, error.what)]
    return []


def _shell_verdicts(
    functions: dict[str, ast.FunctionDef], expected: dict[str, Formula], shell: tuple[str, ...]
) -> list[FunctionVerdict]:
    """Return the verdicts of the functions that are no formulas: these should be the shell's."""
    found = [
        FunctionVerdict(name, "shell", node.lineno)
        if name in shell
        else FunctionVerdict(
            name, "unsupported", node.lineno, "it is neither a formula's function nor the shell's"
        )
        for name, node in functions.items()
        if name not in expected
    ]
    missing = [
        FunctionVerdict(name, "missing", None, "there is no such function")
        for name in shell
        if name not in functions
    ]
    return found + missing


def _verdict(made: Formula, node: ast.FunctionDef | None, module: EmittedModule) -> FunctionVerdict:
    if node is None:
        return FunctionVerdict(made.name, "missing", None, "there is no such function")
    try:
        callees = {callee.name: callee for callee in called_by(made.body)}
        lifted = lift_function(node, callees, module.reading)
    except UnsupportedError as error:
        return FunctionVerdict(made.name, "unsupported", error.line, error.what)
    if lifted.parameter_names != made.parameter_names:
        detail = f"the parameters should be {', '.join(made.parameter_names)}"
        return FunctionVerdict(made.name, "different", node.lineno, detail)
    if lifted.body.sort() != made.body.sort():
        detail = f"the result should be {made.body.sort()}"
        return FunctionVerdict(made.name, "different", node.lineno, detail)
    compared = _compare(made, lifted, node.lineno)
    if module.wraps and compared.ok:
        return _fits(made, lifted) or compared
    return compared


def _compare(made: Formula, lifted: Lifted, line: int) -> FunctionVerdict:
    defined = divisors_are_positive([made.body])
    if _check(defined) != z3.sat:
        detail = "the formula's divisors were not shown to have a legal value"
        return FunctionVerdict(made.name, "unknown", line, detail)
    for division in lifted.divisions:
        if _check([*defined, division.condition, division.divisor == 0]) != z3.unsat:
            detail = "a division that the formula does not show to be defined"
            return FunctionVerdict(made.name, "different", division.line, detail)
    if _check([*defined, made.body != lifted.body]) == z3.unsat:
        return _calls_what_the_formula_does(made, lifted) or FunctionVerdict(
            made.name, "proved", line
        )
    difference = smallest_difference(made, lifted.body, defined)
    if difference is None:
        detail = "not proved equal to its formula, and no small difference found"
        return FunctionVerdict(made.name, "unknown", line, detail)
    return FunctionVerdict(made.name, "different", line, difference)


def _calls_what_the_formula_does(made: Formula, lifted: Lifted) -> FunctionVerdict | None:
    """Return what is wrong with the function's calls: others might not be defined, or not end."""
    own = [node for node in subexpressions(made.body) if is_application(node)]
    for call in lifted.calls:
        if not any(call.value.eq(one) for one in own):
            detail = f"a call that the formula does not make: {call.value}"
            return FunctionVerdict(made.name, "unsupported", call.line, detail)
    return None


def _fits(made: Formula, lifted: Lifted) -> FunctionVerdict | None:
    """Return which integer of the function is not proved to fit 64 bits."""
    hypotheses = (*assumed_by(made), *int64_bounds_for(made.parameter_names))
    given = [unfold(hypothesis.condition) for hypothesis in hypotheses]
    if _check(given) != z3.sat:
        detail = "the hypotheses were not shown to have a legal value"
        return FunctionVerdict(made.name, "unknown", None, detail)
    all_fit = unfold(z3.And(*(fits_int64(computed.value) for computed in lifted.integers)))
    if _check([*given, z3.Not(all_fit)]) == z3.unsat:
        return None
    for computed in lifted.integers:
        result = _check([*given, unfold(z3.Not(fits_int64(computed.value)))])
        if result != z3.unsat:
            verdict: Verdict = "different" if result == z3.sat else "unknown"
            detail = f"not proved to fit 64 bits: {computed.value}"
            return FunctionVerdict(made.name, verdict, computed.line, detail)
    detail = "each integer was proved to fit 64 bits, and not all of them together"
    return FunctionVerdict(made.name, "unknown", None, detail)


def _check(assertions: list[z3.BoolRef]) -> z3.CheckSatResult:
    solver = z3.Solver()
    solver.set("rlimit", RLIMIT)
    solver.add(*assertions)
    return solver.check()
