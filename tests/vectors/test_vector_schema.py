# SPDX-License-Identifier: Apache-2.0
"""The vectors are valid by their schema, and the schema refuses what is not."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from kvreshard import generated

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(generated.__path__[0]) / "vectors"
SCHEMA: dict[str, Any] = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
DOCUMENT: dict[str, Any] = json.loads((FOLDER / "vectors.json").read_text(encoding="utf-8"))

VALIDATOR = Draft202012Validator(SCHEMA)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_vectors_are_valid() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert VALIDATOR.is_valid(DOCUMENT)


def test_every_object_is_closed_and_every_definition_is_used() -> None:
    text = json.dumps(SCHEMA)
    assert all(f'"#/$defs/{name}"' in text for name in SCHEMA["$defs"])
    objects = [SCHEMA, SCHEMA["properties"]["provenance"], *SCHEMA["$defs"].values()]
    closed = [one for one in objects if one.get("type") == "object"]
    assert len(closed) == text.count('"type": "object"')
    assert all(one["additionalProperties"] is False for one in closed)


OPTIONAL = {"fault", "models"}
_REFUSED = [case for case in DOCUMENT["cases"] if "refused" in case]
# A case with answers, the first refused one (sizes) and the last (ranks): the whole document takes
# seconds to validate.
FEW = {**DOCUMENT, "cases": [DOCUMENT["cases"][0], _REFUSED[0], _REFUSED[-1]]}


@pytest.mark.parametrize(
    ("path", "case"),
    [
        ([], None),
        (["provenance"], None),
        (["cases", 0], None),
        (["cases", 0, "plans", 0], None),
        (["cases", -1], "refused"),
        (["cases", 1], "refused"),
    ],
)
def test_every_member_is_needed_and_no_other_is_allowed(
    path: list[str | int], case: str | None
) -> None:
    def at(document: Any) -> Any:
        for step in path:
            document = document[step]
        return document

    assert case is None or case in at(FEW)
    for name in at(FEW).keys() - OPTIONAL:
        document = copy.deepcopy(FEW)
        del at(document)[name]
        assert not VALIDATOR.is_valid(document), f"without {name}"
    document = copy.deepcopy(FEW)
    at(document)["more"] = 1
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document.update(format=2),
        lambda document: document.update(format=True),
        lambda document: document.update(cases=[]),
        lambda document: document["provenance"].update(spec_sha256="0" * 63),
        lambda document: document["elections"].append("striped"),
        lambda document: document["cases"][0].update(bytes_per_head=0),
        lambda document: document["cases"][0].update(bytes_per_head=24.5),
        lambda document: document["cases"][0].update(total_num_kv_heads=True),
        lambda document: document["cases"][0].update(regime="split"),
        lambda document: document["cases"][0].update(name="Sweep 1"),
        lambda document: document["cases"][0].update(models=[]),
        lambda document: document["cases"][0].update(refused=True),
        lambda document: document["cases"][-1].update(refused=False),
        lambda document: document["cases"][-1].update(producer_tp_rank=0.5),
        lambda document: document["cases"][0].update(producer_tp_rank=0, consumer_tp_rank=0),
        lambda document: document["cases"][0]["plans"].clear(),
        lambda document: document["cases"][0]["plans"][0]["copies"].clear(),
        lambda document: document["cases"][0]["plans"][0]["copies"][0].pop(),
        lambda document: document["cases"][0]["plans"][0]["copies"][0].append(0),
        lambda document: document["cases"][0]["plans"][0]["copies"][0].__setitem__(4, 0),
        lambda document: document["cases"][0]["plans"][0]["copies"][0].__setitem__(2, -1),
        lambda document: document["cases"][0]["plans"][0]["senders"][0].append(0),
        lambda document: document["cases"][0]["plans"][0]["elections"].append("lowest"),
        lambda document: document["cases"][0]["lengths"][0].__setitem__(2, 1),
        lambda document: document["cases"][0]["lengths"][0].append(True),
    ],
)
def test_the_schema_refuses(edit: Callable[[dict[str, Any]], object]) -> None:
    document = copy.deepcopy(FEW)
    assert VALIDATOR.is_valid(document)
    edit(document)
    assert not VALIDATOR.is_valid(document)
