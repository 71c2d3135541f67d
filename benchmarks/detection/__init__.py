# SPDX-License-Identifier: Apache-2.0
"""What `why_proof.py` measures: for each fault, which kind of check notices it, and at what cost.

`peers` holds the sizes that public unit tests of other projects exercise, `beyond` faults that
show late, `engine` faults that no planner is to blame for. `emitted` puts a mutant into the text of
the planner module, `enumeration` and `vectorised` judge planners over a range of sizes, `gate` runs
transfers through the runtime, `solver` asks z3. `document` tells the record.
"""
