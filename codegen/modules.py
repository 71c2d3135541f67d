# SPDX-License-Identifier: Apache-2.0
"""The modules that are emitted: what each is made of and what it may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.codegen import printer
from kvreshard.codegen.lift import PYTHON, Reading
from kvreshard.codegen.lift_arrays import ARRAYS
from kvreshard.codegen.module_shape import NUMPY_SHAPE, PLANNER_SHAPE, Shape
from kvreshard.codegen.selection import (
    CALLED_BY_THE_NUMPY_SHELL,
    CALLED_BY_THE_SHELL,
    NUMPY_SHELL,
    SHELL,
    emitted_formulas,
)

if TYPE_CHECKING:
    from kvreshard.spec.formula import Formula


@dataclass(frozen=True)
class EmittedModule:
    """A generated module of formula functions and a shell around them.

    Attributes:
        file: its name below `generated/`; the template's is the same and `.j2`.
        roots: the formulas that its shell calls.
        shell: the functions of its shell, which are tested and not proved.
        dialect: how its formulas are printed.
        reading: how they are read back.
        shape: what it may use besides.
        wraps: whether its integers have 64 bits, so that what it computes has to fit.
    """

    file: str
    roots: tuple[Formula, ...]
    shell: tuple[str, ...]
    dialect: printer.Dialect
    reading: Reading
    shape: Shape
    wraps: bool

    def formulas(self) -> tuple[Formula, ...]:
        """Return the formulas that are emitted, callees first."""
        return emitted_formulas(self.roots)


PLANNER = EmittedModule(
    file="planner.py",
    roots=CALLED_BY_THE_SHELL,
    shell=SHELL,
    dialect=printer.PYTHON,
    reading=PYTHON,
    shape=PLANNER_SHAPE,
    wraps=False,
)
PLANNER_NUMPY = EmittedModule(
    file="planner_numpy.py",
    roots=CALLED_BY_THE_NUMPY_SHELL,
    shell=NUMPY_SHELL,
    dialect=printer.NUMPY,
    reading=ARRAYS,
    shape=NUMPY_SHAPE,
    wraps=True,
)
MODULES = (PLANNER, PLANNER_NUMPY)
