# SPDX-License-Identifier: Apache-2.0
"""The specification: parameters, ownership, planner formulas, layout and invariants.

To review it, read `ownership`, `planner`, `election`, `layout` and `invariants`, in this order;
`parameters`, `regimes` and `scenarios` say what is legal, how the proof is divided, and what must
be possible; `int64` says up to which sizes 64-bit integers do. `formula` and `canonical` are
machinery and say nothing about transfers.

The formulas are z3 expressions, written as Python: `+ - * // %` and comparisons mean what they
mean there. `z3.And(...)` and `z3.Or(...)` hold where all, or one, of their arguments do,
`z3.If(c, a, b)` is `a if c else b`, and `z3.Exists([p], ...)` says that some integer p makes the
rest hold.

The letters of the theorems:

    H       total_num_kv_heads, the KV heads of the model
    T, r    size of a tensor-parallel group, and a rank of it
    P, p    size of the producer group, and a rank of it; q is a second one
    D, d    size of the consumer group, and a rank of it
    e       the elected ordinal: which of the ranks that hold a head sends it
    h       a head of the model
    B       bytes of one head in a block; N tokens in a block, C bytes of one head of one token
    M       length of a block in bytes (M_P, M_D), L length of a region that is checked
    x, y    a copied head, counted in the consumer's block; a copied byte, counted in the copy
"""
