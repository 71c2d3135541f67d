# SPDX-License-Identifier: Apache-2.0
"""The names of the invariants that a broken planner is charged with.

They are written out here, not imported from the specification, so that the broken planners can be
loaded without a solver. A test compares them with the specification's.
"""

COVERED = "every_consumer_head_is_covered_exactly_once"
OVERLAP = "no_two_writes_overlap"
READ = "every_read_is_inside_the_producer_block"
WRITE = "every_write_is_inside_the_consumer_block"
CONTENT = "every_written_byte_holds_the_same_head_token_and_position"
HOLDER = "only_a_holder_of_the_head_sends_it"
PEERS = "producers_and_consumers_agree_on_their_peers"
LENGTHS = "the_length_check_accepts_exactly_the_plannable_regions"
