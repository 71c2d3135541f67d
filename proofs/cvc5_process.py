# SPDX-License-Identifier: Apache-2.0
"""Answer one question with cvc5, in a process of its own.

`python -m kvreshard.proofs.cvc5_process RLIMIT` reads SMT-LIB from its input and writes one line of
JSON. Default options, but for the resource limit. A process of its own can be ended from outside,
whatever the solver does.
"""

from __future__ import annotations

import json
import sys

import cvc5


def ask(text: str, rlimit: int) -> dict[str, str]:
    """Return "sat", "unsat" or "unknown" as `result`, and why where it is unknown."""
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("rlimit", str(rlimit))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "question")
    symbols = parser.getSymbolManager()
    answers = []
    while not (command := parser.nextCommand()).isNull():
        said = command.invoke(solver, symbols).strip()
        if command.getCommandName() == "check-sat":
            answers.append(said)
        elif said:
            raise ValueError(f"cvc5 answers {command.getCommandName()} with {said}")
    if len(answers) != 1:
        raise ValueError(f"one check-sat expected, {len(answers)} found")
    result, _, reason = answers[0].partition(" ")
    return {"result": result, "reason": reason.strip("()")}


def main() -> None:
    """Read a question, write the answer."""
    print(json.dumps(ask(sys.stdin.read(), int(sys.argv[1]))))


if __name__ == "__main__":
    main()
