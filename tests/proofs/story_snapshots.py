# SPDX-License-Identifier: Apache-2.0
"""The stories as files. `python tests/proofs/story_snapshots.py` writes them anew."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kvreshard.proofs.broken import BROKEN
from kvreshard.proofs.story.build import story_of
from kvreshard.proofs.story.json_form import as_json
from kvreshard.proofs.story.markdown import as_markdown
from kvreshard.proofs.story.terminal import as_terminal

if TYPE_CHECKING:
    from kvreshard.proofs.story.model import Story

FOLDER = Path(__file__).resolve().parent / "stories"

# The smallest input of each planner, and some inputs as they were reported.
TOLD: dict[str, tuple[str, tuple[int, int, int] | None]] = {
    **{name: (name, None) for name in BROKEN},
    **{
        f"{name}_as_reported": (name, BROKEN[name].reported)
        for name in (
            "the_lowest_rank_alone_sends",
            "the_source_offset_follows_the_tp_ratio",
            "local_heads_are_taken_as_the_models",
            "region_lengths_are_taken_to_scale_with_tp",
        )
    },
}
AS_JSON = ("the_lowest_rank_alone_sends_as_reported", "region_lengths_are_taken_to_scale_with_tp")


@cache
def told(key: str) -> Story:
    """Return the story of a snapshot."""
    name, sizes = TOLD[key]
    story = story_of(BROKEN[name], sizes)
    if story is None:
        raise ValueError(f"{name} breaks nothing at {sizes}")
    return story


def snapshots() -> dict[str, str]:
    """Return every file's name and text."""
    texts = {}
    for key in TOLD:
        story = told(key)
        texts[f"{key}.txt"] = as_terminal(story)
        texts[f"{key}.md"] = as_markdown(story)
        if key in AS_JSON:
            texts[f"{key}.json"] = as_json(story)
    return {name: text + "\n" for name, text in texts.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file in FOLDER.iterdir():
        file.unlink()
    for name, text in snapshots().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
