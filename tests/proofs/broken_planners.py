# SPDX-License-Identifier: Apache-2.0
"""Broken planners by the names that the judge's tests use, and a few that only these need."""

from __future__ import annotations

from kvreshard.proofs.broken import BROKEN, RIGHT
from kvreshard.proofs.broken.head_map import by_consumer_modulo as by_modulo
from kvreshard.proofs.broken.right import planner_of as subject

__all__ = ["RIGHT", "by_modulo", "subject"]

RATIO = BROKEN["the_lowest_rank_alone_sends"].subject
MODULO = BROKEN["consumer_heads_are_taken_modulo"].subject
REBUILT = BROKEN["the_head_count_is_rebuilt_from_local_heads"].subject
EVERY_REPLICA = BROKEN["every_replica_sends"].subject
READS_PAST_THE_BLOCK = BROKEN["the_source_offset_is_one_too_far"].subject
READS_BEFORE_THE_BLOCK = BROKEN["the_source_offset_is_one_too_near"].subject
WRITES_PAST_THE_BLOCK = BROKEN["the_target_offset_is_one_too_far"].subject
COPIES_TOO_MUCH = BROKEN["one_head_too_many_is_copied"].subject
COPIES_NOTHING = BROKEN["ranks_with_nothing_to_give_send_no_heads"].subject
WRONG_RANK = BROKEN["the_rank_before_the_right_one_sends"].subject
WAITS_FOR_ALL = BROKEN["a_consumer_waits_for_every_producer"].subject
WAITS_FOR_NONE = BROKEN["a_consumer_waits_for_nobody"].subject
WAITS_TWICE = BROKEN["a_consumer_waits_for_each_producer_twice"].subject
COUNTS_ALL_CONSUMERS = BROKEN["a_producer_counts_every_consumer"].subject
LENGTHS_BY_PRODUCT = BROKEN["region_lengths_are_compared_by_their_product"].subject
LENGTHS_UNCHECKED = BROKEN["any_region_lengths_are_accepted"].subject
LENGTHS_REFUSED = BROKEN["all_region_lengths_are_refused"].subject
