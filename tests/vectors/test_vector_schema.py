# SPDX-License-Identifier: Apache-2.0
"""The vectors are valid by their schema, and the schema refuses what is not.

jsonschema is not among the project's dependencies. The check below knows the keywords that the
schema uses, by their meaning in JSON Schema 2020-12, and refuses a schema with any other.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvreshard import generated

FOLDER = Path(generated.__path__[0]) / "vectors"
SCHEMA: dict[str, Any] = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
DOCUMENT: dict[str, Any] = json.loads((FOLDER / "vectors.json").read_text(encoding="utf-8"))

ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description"}
TYPES: dict[str, type] = {"object": dict, "array": list, "string": str, "boolean": bool}

Check = Callable[[Any, Any, dict[str, Any]], bool]


def same(left: Any, right: Any) -> bool:
    """Compare as JSON does: true is not 1."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def has_type(value: Any, name: Any, _: dict[str, Any]) -> bool:
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def items(value: Any, rule: Any, schema: dict[str, Any]) -> bool:
    rest = value[len(schema.get("prefixItems", [])) :] if isinstance(value, list) else []
    return all(valid(item, rule) for item in rest)


def prefix_items(value: Any, rules: Any, _: dict[str, Any]) -> bool:
    return not isinstance(value, list) or all(map(valid, value, rules))


def properties(value: Any, rules: Any, _: dict[str, Any]) -> bool:
    return not isinstance(value, dict) or all(
        valid(value[name], rule) for name, rule in rules.items() if name in value
    )


def additional(value: Any, rule: Any, schema: dict[str, Any]) -> bool:
    named = schema.get("properties", {})
    return not isinstance(value, dict) or all(
        valid(member, rule) for name, member in value.items() if name not in named
    )


def reference(value: Any, place: Any, _: dict[str, Any]) -> bool:
    assert place.startswith("#/$defs/")
    return valid(value, SCHEMA["$defs"][place.removeprefix("#/$defs/")])


KEYWORDS: dict[str, Check] = {
    "type": has_type,
    "items": items,
    "prefixItems": prefix_items,
    "properties": properties,
    "additionalProperties": additional,
    "$ref": reference,
    "const": lambda value, right, _: same(value, right),
    "enum": lambda value, choices, _: any(same(value, choice) for choice in choices),
    "oneOf": lambda value, rules, _: sum(valid(value, rule) for rule in rules) == 1,
    "required": lambda value, names, _: not isinstance(value, dict) or set(names) <= set(value),
    "minItems": lambda value, least, _: not isinstance(value, list) or len(value) >= least,
    "uniqueItems": lambda value, asked, _: (
        not asked
        or not isinstance(value, list)
        or len({json.dumps(v) for v in value}) == len(value)
    ),
    "minimum": lambda value, least, _: not isinstance(value, int) or value >= least,
    "minLength": lambda value, least, _: not isinstance(value, str) or len(value) >= least,
    "pattern": lambda value, text, _: (
        not isinstance(value, str) or re.search(text, value) is not None
    ),
}


def valid(value: Any, schema: Any) -> bool:
    """Whether a value is valid by a schema, which may be true or false."""
    if isinstance(schema, bool):
        return schema
    unknown = schema.keys() - KEYWORDS.keys() - ANNOTATIONS
    assert not unknown, f"keywords that this check does not know: {sorted(unknown)}"
    return all(
        KEYWORDS[name](value, rule, schema)
        for name, rule in schema.items()
        if name not in ANNOTATIONS
    )


def test_the_vectors_are_valid() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert valid(DOCUMENT, SCHEMA)


def test_every_object_is_closed_and_every_definition_is_used() -> None:
    text = json.dumps(SCHEMA)
    assert all(f'"#/$defs/{name}"' in text for name in SCHEMA["$defs"])
    objects = [SCHEMA, SCHEMA["properties"]["provenance"], *SCHEMA["$defs"].values()]
    closed = [one for one in objects if one.get("type") == "object"]
    assert len(closed) == text.count('"type": "object"')
    assert all(one["additionalProperties"] is False for one in closed)


OPTIONAL = {"fault", "models"}


@pytest.mark.parametrize(
    ("path", "case"),
    [
        ([], None),
        (["provenance"], None),
        (["cases", 0], None),
        (["cases", 0, "plans", 0], None),
        (["cases", -1], "refused"),
    ],
)
def test_every_member_is_needed_and_no_other_is_allowed(
    path: list[str | int], case: str | None
) -> None:
    def at(document: Any) -> Any:
        for step in path:
            document = document[step]
        return document

    assert case is None or case in at(DOCUMENT)
    for name in at(DOCUMENT).keys() - OPTIONAL:
        document = copy.deepcopy(DOCUMENT)
        del at(document)[name]
        assert not valid(document, SCHEMA), f"without {name}"
    document = copy.deepcopy(DOCUMENT)
    at(document)["more"] = 1
    assert not valid(document, SCHEMA)


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document.update(format=2),
        lambda document: document.update(format=True),
        lambda document: document.update(cases=[]),
        lambda document: document["provenance"].update(spec_sha256="0" * 63),
        lambda document: document["elections"].append("striped"),
        lambda document: document["cases"][0].update(bytes_per_head=0),
        lambda document: document["cases"][0].update(bytes_per_head=24.0),
        lambda document: document["cases"][0].update(total_num_kv_heads=True),
        lambda document: document["cases"][0].update(regime="split"),
        lambda document: document["cases"][0].update(name="Sweep 1"),
        lambda document: document["cases"][0].update(models=[]),
        lambda document: document["cases"][0].update(refused=True),
        lambda document: document["cases"][-1].update(refused=False),
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
    document = copy.deepcopy(DOCUMENT)
    document["cases"] = [document["cases"][0], document["cases"][-1]]
    assert valid(document, SCHEMA)
    edit(document)
    assert not valid(document, SCHEMA)


def test_a_keyword_that_the_check_does_not_know_is_no_pass() -> None:
    with pytest.raises(AssertionError, match="does not know: \\['maxLength'\\]"):
        valid("x", {"maxLength": 1})
