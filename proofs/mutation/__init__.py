# SPDX-License-Identifier: Apache-2.0
"""Mutation: every operator at every site of every formula, and what each change breaks.

`sites` numbers the places of a formula, `operators` says what may be put there, `mutants` lists
every changed formula. `statements` says what a mutant is judged by, `refute` asks the solver on a
bounded range and replays its model in plain Python, `survivors` proves what nothing refuted to be
right. `examine` does all of it for one mutant, `matrix` for all, and `document` tells the result.

A mutant's statements are uncut: no lemma, no witness, every formula unfolded. A lemma's instances
may be false for a mutant, and a proof from a false fact says nothing.
"""
