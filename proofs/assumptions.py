# SPDX-License-Identifier: Apache-2.0
"""What the theorems take for granted, and what lies outside them.

The one place where this list is written; `soundness` puts it into SOUNDNESS.md. Standard library
only, so that the list can be read where nothing is installed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Assumption:
    """Something a reader has to accept, with what speaks for it and what it still leaves open."""

    name: str
    statement: str
    mitigation: str
    remains: str


# The order is the order of the document, from the caller's promises to the machine's. New ones go
# to the end of their group; the names are what other files refer to, the numbers may move.
ASSUMPTIONS: tuple[Assumption, ...] = (
    # What the caller promises.
    Assumption(
        name="rank_is_in_range",
        statement="Each rank is an integer r with 0 <= r < T, where T is its group's size.",
        mitigation=(
            "The planner checks it on every call and raises ValueError naming the field, the "
            "value and what is legal."
        ),
        remains="A rank that is in range but is another worker's rank plans that worker's copies.",
    ),
    Assumption(
        name="total_num_kv_heads_is_the_models",
        statement=(
            "The total_num_kv_heads passed in is the number of KV heads the model has in this "
            "region, the same on both sides, and not local heads times group size."
        ),
        mitigation=(
            "Illegal combinations with a group size are refused. The length check compares the "
            "two regions by the heads that each side holds."
        ),
        remains=(
            "A wrong number can still pass the length check: only the model's configuration "
            "tells it from the right one."
        ),
    ),
    Assumption(
        name="both_sides_use_the_same_election",
        statement=(
            "Producers and consumers name the same election policy. The agreement on peers, and "
            "so each side's count of whom to wait for, is proved for one policy at a time."
        ),
        mitigation=(
            "The policy is an argument with a fixed default. The runtime's peers exchange it and "
            "refuse a mismatch at the handshake."
        ),
        remains=(
            "The planner sees one side at a time and cannot compare: a connector that uses it "
            "without the runtime has to."
        ),
    ),
    Assumption(
        name="a_region_is_one_layer",
        statement=(
            "A region is the view of one layer, or of one component of a layer. A head offset "
            "counts inside that view."
        ),
        mitigation=(
            "The hypothesis stands in the docstrings of the byte-level functions. The runtime "
            "takes strides from the tensor and refuses views it does not know by name."
        ),
        remains=(
            "A caller who uses the formulas without the runtime and passes the length of a span "
            "of several layers gets offsets that are right for no layer but the first."
        ),
    ),
    Assumption(
        name="block_length_is_heads_times_bytes_per_head",
        statement=(
            "A region's length is the number of heads the rank holds times the bytes of one head. "
            "There is no padding, and no scale or other data between heads."
        ),
        mitigation=(
            "The length check accepts exactly the pairs of lengths for which a size per head "
            "exists that fits both sides. The runtime refuses padded and packed pages by name."
        ),
        remains=(
            "Padding in proportion to the heads that each side holds looks like a larger head to "
            "the length check."
        ),
    ),
    # What the model of a cache leaves out.
    Assumption(
        name="layout_is_head_major_and_contiguous",
        statement=(
            "Within a block of a region the heads a rank holds lie one after another, in the "
            "order of their global numbers, and each head's tokens lie together in it in the same "
            "order on both sides."
        ),
        mitigation="The runtime derives the layout from the tensor's strides and refuses others.",
        remains=(
            "Strides tell where elements lie, not what a kernel means by them. A producer and a "
            "consumer whose kernels disagree on the meaning of equal strides are not seen."
        ),
    ),
    Assumption(
        name="the_caller_names_the_kind_of_cache",
        statement=(
            "Whoever describes a tensor to the runtime says what it holds: plain attention, a "
            "quantised cache, a hybrid state."
        ),
        mitigation="What is not plain attention is refused by name before anything is sent.",
        remains=(
            "A quantised cache that is called plain, and a layer that is left out of the list, "
            "are not seen."
        ),
    ),
    Assumption(
        name="ownership_is_by_consecutive_heads",
        statement=(
            "Rank r of a group of size T holds max(H // T, 1) consecutive heads from "
            "r * H // T. Replicas of a head are consecutive ranks."
        ),
        mitigation=(
            "The rule is written once, in spec/, and is the one that every serving system "
            "surveyed for this project uses."
        ),
        remains="A system that assigns heads otherwise is out of scope: its plans would be wrong.",
    ),
    Assumption(
        name="replicas_hold_equal_values",
        statement=(
            "Ranks that hold the same head hold the same bytes for it, so any of them may send it."
        ),
        mitigation="The theorems name who sends, so a run can be repeated with the same senders.",
        remains=(
            "Replicas computed with different kernels or in a different order may differ in the "
            "last bits. Which replica's values arrive is then the election's choice."
        ),
    ),
    # What stands between a proof and the code that runs.
    Assumption(
        name="the_spec_says_what_is_meant",
        statement="The invariants in spec/ say what a reader takes a correct transfer to be.",
        mitigation=(
            "They speak of ownership and copies only, never of the planner's own values. Each "
            "regime has scenarios that must exist. Enumeration with plain Python arithmetic "
            "states the claim a second time, independently."
        ),
        remains="A wish that nobody wrote down is not proved.",
    ),
    Assumption(
        name="division_agrees",
        statement=(
            "z3's div and mod are Euclidean and total, Python's // and % floor and raise. They "
            "agree for every dividend where the divisor is at least one."
        ),
        mitigation=(
            "Every division in every formula carries an obligation of definedness: that its "
            "divisor is at least one. They are proved with the others."
        ),
        remains="That the two agree on that domain is arithmetic, taken as known.",
    ),
    Assumption(
        name="the_solver_is_right",
        statement="Where z3 answers unsat, there is no counterexample.",
        mitigation=(
            "Default options, a pinned version, three seeds for what is proved in one query. cvc5 "
            "is asked the same, and confirms what the section on the second solver counts. The "
            "emitted code is also run on every legal input up to a bound, and judged with sets of "
            "heads, without a solver."
        ),
        remains=(
            "Neither solver returns a proof that a small checker has replayed. What cvc5 leaves "
            "undecided rests on z3 alone, and so does it that hypotheses can be met."
        ),
    ),
    Assumption(
        name="the_harness_asks_what_is_stated",
        statement=(
            "The Python code in proofs/ puts to the solver what the obligations state: it unfolds "
            "formulas, substitutes terms into lemmas, and for some bounded statements writes an "
            "existential out and rewrites comparisons."
        ),
        mitigation=(
            "An instance of a lemma is an implication made by substitution, so it needs no side "
            "condition. The bounded statements use no lemma, and enumeration uses neither. Every "
            "operator of every formula is changed in turn, and a named statement has to be refuted "
            "by a model that plain Python replays: proofs/kill_matrix.json has the results, "
            "docs/mutation.md tells them."
        ),
        remains="A fault in this code that makes a false statement pass by all three roads.",
    ),
    Assumption(
        name="the_printer_is_right",
        statement="The emitted Python means what the proved z3 expressions mean.",
        mitigation=(
            "Translation validation: the text of each emitted formula function is parsed, lifted "
            "back to z3 and proved equal to its spec formula, for all sizes."
        ),
        remains="Nothing beyond the lifter, the next entry.",
    ),
    Assumption(
        name="the_lifter_is_right",
        statement=(
            "The reader that turns emitted Python, and the Python of an audited planner, into z3 "
            "gives each construct Python's meaning."
        ),
        mitigation=(
            "It knows a short list of constructs and refuses all others. It is compared with "
            "CPython, on numbers and on symbols: every operator and builtin on all small operands, "
            "random programs, and a table of what is easily wrong. CrossHair confirms what it made "
            "of a table of functions. The emitted functions are also run against the spec's own "
            "values and against brute force."
        ),
        remains=(
            "A fault that no tested input reaches. Of an audited file it is taken for granted that "
            "it loads, and that nothing but its own text changes what its names mean."
        ),
    ),
    Assumption(
        name="the_shell_is_tested_not_proved",
        statement=(
            "What stands around the formulas in the generated module (checks of arguments, choice "
            "of the policy, building of tuples) does what its docstring says."
        ),
        mitigation=(
            "It is short and listed by the check. It is tested against brute force for every "
            "legal size in a range, and for large sizes drawn at random."
        ),
        remains="It is tested, not proved.",
    ),
    Assumption(
        name="python_computes_as_documented",
        statement="CPython's integers are unbounded and its operators compute what they should.",
        mitigation=(
            "`planner.py` uses integers only: no floats and no fixed-width numbers. For "
            "`planner_numpy.py` see the next entry."
        ),
        remains="The interpreter and the machine below it.",
    ),
    Assumption(
        name="numpy_computes_as_documented",
        statement=(
            "numpy's operators and functions on int64 arrays give, element by element, what "
            "integers give where the result fits 64 bits, and // and % floor where the divisor is "
            "at least one."
        ),
        mitigation=(
            "That every result fits is proved, within bounds that the interface checks before it "
            "converts. The module is run against the one over Python's integers for every legal "
            "pair of groups up to 24, and at the bounds."
        ),
        remains=(
            "numpy and the machine below it. A caller of the formula functions, rather than the "
            "interface, has to keep the bounds."
        ),
    ),
    # What moves the bytes.
    Assumption(
        name="the_engine_writes_where_it_is_told",
        statement=(
            "A transfer engine that reports success has written the given bytes at the given "
            "address."
        ),
        mitigation=(
            "Every return code is checked, receipts must cover each consumer byte exactly once, "
            "and an option compares the content at the consumer."
        ),
        remains=(
            "Without that option a write that was reported and went elsewhere is not seen, for "
            "example one into an address that was freed and used again."
        ),
    ),
    Assumption(
        name="blocks_hold_still",
        statement=(
            "The source blocks do not change, and the destination blocks are not used for "
            "anything else, while a transfer runs."
        ),
        mitigation=(
            "The runtime holds the source blocks of a failed batch back, since an engine may go "
            "on reading after it has reported a failure."
        ),
        remains="The owner of the cache decides when blocks are freed; no theorem covers time.",
    ),
    # What an audit of somebody's planner takes for granted besides.
    Assumption(
        name="an_audit_believes_its_contract",
        statement=(
            "What an audited planner is given, who meets whom, and what a copy counts in are as "
            "its contract says."
        ),
        mitigation=(
            "A contract is parsed and checked, and stands in the report with its domain and what "
            "it leaves out. A wrong expected sender, or pairs that are too few, prove no coverage."
        ),
        remains="A contract that does not hand on the planner's answer, or asks it wrongly.",
    ),
    Assumption(
        name="sizes_and_ranks_are_written_in_factors",
        statement=(
            "Legal sizes of which one divides the other are products of factors in one of 13 "
            "orders, and ranks and heads are digits over them."
        ),
        mitigation=(
            "Three claims say so, and each audit proves them anew with lemmas of the ledger. All "
            "such sizes up to 64 are enumerated in a test."
        ),
        remains="The step from one digit to all of them is by hand.",
    ),
    Assumption(
        name="an_audits_proofs_have_one_solver",
        statement=(
            "The goals of an audit are proved by z3 alone, with products of unknowns as numbers of "
            "their own wherever that is enough."
        ),
        mitigation=(
            "What is impossible for any products is impossible for these. Mutants of right "
            "planners and the broken ones are audited in the tests: nothing that brute force "
            "refutes is proved."
        ),
        remains="A fault of z3, for which no second solver is asked here.",
    ),
    Assumption(
        name="an_executed_target_answers_honestly",
        statement="A target that is run with --exec answers for itself, the same each time.",
        mitigation=(
            "It runs apart, with limits, and answers of the wrong form are refused. Where it is "
            "lifted as well, every copy is compared, and a difference is not decided."
        ),
        remains=(
            "Hostile code can send well-formed answers that are not its plan, and small sizes are "
            "tried with 6 bytes per head. A check by execution rests on this, a proof does not."
        ),
    ),
)
