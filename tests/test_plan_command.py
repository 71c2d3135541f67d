# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from kvreshard import head_plan, hf_config
from kvreshard.cli import main
from kvreshard.generated.planner import TransferPlan, group_is_legal, plan_transfer
from kvreshard.head_plan import ELECTIONS, plan_heads
from kvreshard.hf_config import ConfigError, read_config
from kvreshard.model_shapes import LayerGroup, ModelShape, built_in_models
from kvreshard.models import MODELS
from kvreshard.plan import FORMATS
from kvreshard.plan_json import SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

BUILT_IN = built_in_models()
SIZES = ("--prefill-tp", "8", "--decode-tp", "1")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["plan", *arguments])


def document(*arguments: str) -> Any:
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


# The forms


def test_the_terminal_form_answers_who_sends_what_to_whom() -> None:
    result = run("--heads", "4", "--query-heads", "64", *SIZES, "--bytes-per-head", "65536")
    assert result.exit_code == 0, result.output
    said = [" ".join(line.replace("│", " ").split()) for line in result.output.splitlines()]
    assert "p6 d0 head 3 0 heads, 0 B 3 heads, 196,608 B 1 head, 65,536 B" in said
    assert "d0 slot 3 head 3 <-- p6 ok" in said
    assert "d0 waits for p0, p2, p4 and p6" in said
    assert "p1, p3, p5 and p7 send to nobody" in said
    assert "the consumer rank gets 4 heads: 262,144 bytes" in said
    assert said[-1] == (
        "To see this again: kvreshard plan --heads 4 --prefill-tp 8 --decode-tp 1 "
        "--query-heads 64 --bytes-per-head 65536"
    )
    assert "Not checked" not in result.output


def test_the_command_said_gives_the_same_again() -> None:
    first = run("--model", "Qwen3-235B-A22B", *SIZES, "--election", "spread")
    command = first.output.splitlines()[-1].split("kvreshard plan ")[1]
    assert run(*command.split()).output == first.output


@pytest.mark.parametrize("election", ELECTIONS)
@pytest.mark.parametrize(("H", "P", "D"), [(4, 8, 1), (4, 1, 8), (6, 3, 6), (2, 4, 8), (1, 4, 2)])
def test_the_json_form_has_the_copies_of_the_planner(
    H: int,
    P: int,
    D: int,
    election: str,
) -> None:
    sizes = ("--heads", str(H), "--prefill-tp", str(P), "--decode-tp", str(D))
    (group,) = document(*sizes, "--election", election, "--bytes-per-head", "100")["groups"]
    found = {(one["producer_tp_rank"], one["consumer_tp_rank"]): one for one in group["copies"]}
    for p in range(P):
        for d in range(D):
            plan = plan_transfer(
                total_num_kv_heads=H,
                producer_tp_size=P,
                producer_tp_rank=p,
                consumer_tp_size=D,
                consumer_tp_rank=d,
                election=election,
            )
            copy = found.pop((p, d), None)
            assert plan.sends == (copy is not None)
            assert plan.sends == (p in group["senders"][d]) == (d in group["receivers"][p])
            if copy is not None:
                assert plan[1:] == (
                    copy["src_head_offset"],
                    copy["dst_head_offset"],
                    copy["head_count"],
                )
                (size,) = copy["bytes"]
                assert [100 * n for n in plan[1:]] == [
                    size["src_offset"],
                    size["dst_offset"],
                    size["length"],
                ]
                held = group["producer_heads"][p]
                assert held[plan.src_head_offset] == copy["first_head"]
    assert found == {}


def test_the_json_form_says_its_schema() -> None:
    made = document("--heads", "4", *SIZES)
    assert made["schema"] == SCHEMA == "kvreshard.plan/1"
    assert (made["safe"], made["faults"]) == (True, [])
    assert made["groups"][0]["regions"] == []
    assert len(made["model"]["not_checked"]) == 2


def test_the_svg_form_is_the_picture() -> None:
    result = run("--heads", "6", "--prefill-tp", "3", "--decode-tp", "2", "--format", "svg")
    assert result.exit_code == 0
    picture = ElementTree.fromstring(result.stdout)
    arrows = [one for one in picture.iter() if "data-heads" in one.attrib]
    assert sorted(one.attrib["data-heads"] for one in arrows) == ["0 1", "2", "3", "4 5"]


class _Page(HTMLParser):
    """What a page has: its tags, its ids and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_html_form_has_a_picture_for_each_group_of_layers() -> None:
    result = run("--model", "mimo-v2-flash", *SIZES, "--format", "html")
    assert result.exit_code == 0
    assert result.stdout.startswith("<!DOCTYPE html>\n")
    page = _Page()
    page.feed(result.stdout)
    assert page.tags.count("svg") == 2
    assert len(page.ids) == len(set(page.ids)) == 4
    assert "script" not in page.tags
    assert "d0 waits for p0 to p7" in page.text


@pytest.mark.parametrize("form", FORMATS)
def test_each_form_can_go_to_a_file(form: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.out"
    arguments = ("--heads", "4", *SIZES, "--format", form)
    result = run(*arguments, "--output", str(path))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"written: {path}\n"
    written = path.read_text(encoding="utf-8")
    assert "p0" in written or '"producer_tp_rank": 0' in written
    assert written.endswith("\n")
    if form != "terminal":
        assert run(*arguments).stdout == written


def test_a_large_plan_says_what_it_leaves_out() -> None:
    sizes = ("--heads", "128", "--prefill-tp", "64", "--decode-tp", "64")
    result = run(*sizes)
    assert "d6 to d63: 116 slots left out, all as they should be" in result.output
    assert "and 40 more, which --format json has" in result.output
    assert len(document(*sizes)["groups"][0]["copies"]) == 64


def test_a_wrong_plan_is_said_to_be_unsafe(monkeypatch: pytest.MonkeyPatch) -> None:
    def lowest_rank_only(*, producer_tp_rank: int, **_: object) -> TransferPlan:
        return TransferPlan(producer_tp_rank == 0, 0, 0, int(producer_tp_rank == 0))

    monkeypatch.setattr(head_plan, "plan_transfer", lowest_rank_only)
    result = run("--heads", "4", *SIZES)
    assert result.exit_code == 1
    assert "NOT SAFE: " in result.output
    assert result.output.count("MISSING") == 3
    plan = plan_heads(
        total_num_kv_heads=4, producer_tp_size=8, consumer_tp_size=1, election="lowest"
    )
    assert "d0: its block" in plan.faults
    assert "consumer 0: its peers" in plan.faults


def test_the_plan_needs_no_solver() -> None:
    program = (
        "import sys; sys.modules['z3'] = sys.modules['jinja2'] = None; "
        "from kvreshard.cli import main; "
        "main('plan --heads 4 --prefill-tp 8 --decode-tp 1 --format html'.split())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


# The models


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_built_in_model_has_a_legal_shape(name: str) -> None:
    shape = BUILT_IN[name]
    assert name == shape.name == name.lower()
    assert shape.source in {"published config", "third-party listing, uncertain"}
    assert shape.groups
    assert len({group.name for group in shape.groups}) == len(shape.groups)
    for group in shape.groups:
        assert group.layers is not None
        assert group.layers >= 1
        assert group.kv_heads >= 1
        assert group.query_heads is not None
        assert group.query_heads % group.kv_heads == 0
        assert group.latent == ((group.kv_heads, group.value_width) == (1, 0))
        assert group_is_legal(group.kv_heads, 1)
    assert run("--model", name, "--prefill-tp", "1", "--decode-tp", "1").exit_code == 0


def test_the_models_of_the_demo_have_the_same_shape_here() -> None:
    assert MODELS
    for name, model in MODELS.items():
        (group,) = BUILT_IN[name].groups
        found = (group.layers, group.kv_heads, group.key_width, group.value_width)
        assert found == (model.layers, model.kv_heads, model.head_dim, model.head_dim)


def test_layers_with_other_heads_get_a_plan_of_their_own() -> None:
    groups = document("--model", "gemma-4-26b-a4b", *SIZES)["groups"]
    assert [(one["name"], one["total_num_kv_heads"], len(one["copies"])) for one in groups] == [
        ("sliding window", 8, 8),
        ("full attention", 2, 2),
    ]
    groups = document("--model", "mimo-v2-flash", *SIZES)["groups"]
    assert [one["total_num_kv_heads"] for one in groups] == [4, 8]
    assert [[r["bytes_per_head"] for r in one["regions"]] for one in groups] == [[6144, 4096]] * 2


def test_a_latent_cache_is_one_head_that_every_rank_holds() -> None:
    made = document("--model", "deepseek-v3", *SIZES, "--block-size", "64", "--dtype-bytes", "1")
    (group,) = made["groups"]
    assert (group["total_num_kv_heads"], group["latent"]) == (1, True)
    assert group["producer_heads"] == [[0]] * 8
    assert [one["bytes_per_head"] for one in group["regions"]] == [64 * 576]
    assert "every rank holds whole" in made["model"]["notes"][0]


@pytest.mark.parametrize("name", ["qwen3.5-27b", "nemotron-h-56b", "kimi-k3", "qwen3-next-80b"])
def test_a_hybrid_model_says_what_is_not_planned(name: str) -> None:
    result = run("--model", name, "--prefill-tp", "2", "--decode-tp", "1")
    assert result.exit_code == 0
    assert "is not planned yet" in " ".join(result.output.split())


def test_bytes_are_not_guessed_where_a_token_has_no_fixed_width() -> None:
    made = document("--model", "deepseek-v4-pro", *SIZES)
    assert made["groups"][0]["regions"] == []
    assert any("--bytes-per-head" in said for said in made["model"]["not_checked"])


def test_the_list_names_each_model_with_its_source() -> None:
    lines = run("--list-models").output.splitlines()
    assert len(lines) == len(BUILT_IN)
    assert "gemma-2-9b: 8 KV heads; third-party listing, uncertain" in lines


# Wrong usage


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--heads", "4", "--prefill-tp", "8"], "--decode-tp is missing; legal: 1 to 256"),
        (["--heads", "4", "--decode-tp", "8"], "--prefill-tp is missing; legal: 1 to 256"),
        (SIZES, "legal: one of --heads, --model and --config; got none of them"),
        (["--heads", "4", "--model", "kimi-k2", *SIZES], "got --heads and --model"),
        (
            ["--model", "kimi-k2", "--query-heads", "8", *SIZES],
            "--query-heads=8 goes with --heads, not --model",
        ),
        (
            ["--heads", "4", "--query-heads", "6", *SIZES],
            "--query-heads=6; legal: a multiple of the 4 KV heads",
        ),
        (
            ["--heads", "6", "--prefill-tp", "4", "--decode-tp", "1"],
            (
                "--prefill-tp=4 is not legal for the 6 KV heads of the model; "
                "legal: 1, 2, 3, 6, 12, and others"
            ),
        ),
        (
            ["--model", "llama-4-maverick", "--prefill-tp", "8", "--decode-tp", "16"],
            (
                "--decode-tp=16 does not divide the 40 query heads of llama-4-maverick, so no "
                "engine can run that group; legal: 1, 2, 4, 8, 40"
            ),
        ),
        (
            ["--model", "gemma-4-26b-a4b", "--prefill-tp", "3", "--decode-tp", "1"],
            (
                "--prefill-tp=3 is not legal for the 8 KV heads of the sliding window layers of "
                "gemma-4-26b-a4b; legal: 1, 2, 4, 8, 16"
            ),
        ),
        (
            ["--heads", "6", "--prefill-tp", "3", "--decode-tp", "2", "--election", "paired"],
            "legal: sizes of which one divides the other",
        ),
        (["--model", "kimi-k22", *SIZES], "--model=kimi-k22 is not built in; close to it: kimi-k2"),
        (["--model", "zzzz", *SIZES], "--model=zzzz is not built in; legal: "),
        (
            ["--model", "mimo-v2-flash", *SIZES, "--format", "svg"],
            "mimo-v2-flash needs one for each of full attention and sliding window",
        ),
        (
            ["--heads", "4", "--block-size", "16", *SIZES],
            "--block-size=16 beside --heads; legal: with --model or --config",
        ),
        (
            ["--model", "kimi-k2", "--dtype-bytes", "1", "--bytes-per-head", "9", *SIZES],
            "--dtype-bytes=1 beside --bytes-per-head",
        ),
        (["--heads", "0", *SIZES], "0 is not in the range"),
        (["--heads", "4", "--prefill-tp", "512", "--decode-tp", "1"], "1<=x<=256"),
        (["--config", "no_such.json", *SIZES], "'no_such.json' does not exist"),
    ],
)
def test_wrong_usage_names_what_is_legal(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no" / "plan.svg"
    result = run("--heads", "4", *SIZES, "--format", "svg", "--output", str(path))
    assert result.exit_code == 2
    assert f"--output={path} cannot be written" in result.output


# Configs


PLAIN = {
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "num_hidden_layers": 4,
}
LATENT = {**PLAIN, "num_key_value_heads": 32, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
WINDOWS = {
    **PLAIN,
    "head_dim": 192,
    "v_head_dim": 128,
    "num_key_value_heads": 4,
    "hybrid_layer_pattern": [0, 1, 1, 1],
    "swa_num_attention_heads": 32,
    "swa_num_key_value_heads": 8,
    "swa_head_dim": 192,
    "swa_v_head_dim": 128,
}
GLOBALS = {
    **PLAIN,
    "head_dim": 256,
    "global_head_dim": 512,
    "num_global_key_value_heads": 2,
    "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
}


def blocks(*shared: int | None) -> list[dict[str, Any]]:
    return [{"attention": {"n_heads_in_group": n, "no_op": n is None}} for n in shared]


def config(tmp_path: Path, document: object) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("document", "groups", "note"),
    [
        (PLAIN, [LayerGroup("attention", 4, 8, 32, 128, 128)], ""),
        ({**PLAIN, "head_dim": 64}, [LayerGroup("attention", 4, 8, 32, 64, 64)], ""),
        ({"text_config": PLAIN, "x": 1}, [LayerGroup("attention", 4, 8, 32, 128, 128)], ""),
        ({**PLAIN, "hidden_size": 4097}, [LayerGroup("attention", 4, 8, 32)], ""),
        (LATENT, [LayerGroup("MLA", 4, 1, 32, 576, 0, latent=True)], "every rank holds whole"),
        (
            {**LATENT, "index_head_dim": 128},
            [LayerGroup("MLA", 4, 1, 32, 576, 0, latent=True)],
            "the indexer has a region of its own, 128 wide",
        ),
        (
            {**LATENT, "linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3]}},
            [LayerGroup("MLA", 1, 1, 32, 576, 0, latent=True)],
            "layers of type kda: 3",
        ),
        (
            WINDOWS,
            [
                LayerGroup("full attention", 1, 4, 32, 192, 128),
                LayerGroup("sliding window", 3, 8, 32, 192, 128),
            ],
            "",
        ),
        (
            {**GLOBALS, "attention_k_eq_v": True},
            [
                LayerGroup("sliding window", 3, 8, 32, 256, 256),
                LayerGroup("full attention", 1, 2, 32, 512, 512),
            ],
            "attention_k_eq_v",
        ),
        (
            {**PLAIN, "layer_types": ["linear_attention"] * 3 + ["full_attention"]},
            [LayerGroup("attention", 1, 8, 32, 128, 128)],
            "layers of type linear_attention: 3; their state has no KV heads and is not planned",
        ),
        (
            {**PLAIN, "full_attention_interval": 4},
            [LayerGroup("attention", 1, 8, 32, 128, 128)],
            "layers of type linear_attention: 3",
        ),
        (
            {**PLAIN, "hybrid_override_pattern": "M-M*"},
            [LayerGroup("attention", 1, 8, 32, 128, 128)],
            "layers of type mamba: 2",
        ),
        (
            {**PLAIN, "layers_block_type": ["mamba", "moe", "attention"]},
            [LayerGroup("attention", 1, 8, 32, 128, 128)],
            "layers of type mamba: 1",
        ),
        (
            {**PLAIN, "num_key_value_heads": None, "block_configs": blocks(4, 4, None, 8)},
            [
                LayerGroup("attention with 8 KV heads", 2, 8, 32, 128, 128),
                LayerGroup("attention with 4 KV heads", 1, 4, 32, 128, 128),
            ],
            "which have no KV cache: 1",
        ),
        (
            {**PLAIN, "num_key_value_heads": 1, "compress_ratios": [4, 128]},
            [LayerGroup("attention", 4, 1, 32)],
            "compress_ratios",
        ),
        (
            {"num_attention_heads": 71, "multi_query": True},
            [LayerGroup("attention", None, 1, 71)],
            "multi_query",
        ),
        (
            {"num_attention_heads": 128, "new_decoder_architecture": True, "num_kv_heads": 8},
            [LayerGroup("attention", None, 8, 128)],
            "",
        ),
        (
            {"num_attention_heads": 12},
            [LayerGroup("attention", None, 12, 12)],
            "the config has no num_key_value_heads",
        ),
    ],
)
def test_a_config_is_read(
    tmp_path: Path, document: object, groups: list[LayerGroup], note: str
) -> None:
    path = config(tmp_path, document)
    shape = read_config(path)
    assert list(shape.groups) == groups
    assert (shape.name, shape.source) == (str(path), "the config given")
    assert note in " ".join(shape.notes)
    assert bool(note) == bool(shape.notes)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([1], "config.json holds list; legal: a JSON object"),
        ({}, "num_attention_heads is missing; legal: an integer of 1 or more"),
        ({**PLAIN, "num_key_value_heads": "8"}, "num_key_value_heads='8'; legal: an integer of 1"),
        ({**PLAIN, "num_key_value_heads": True}, "num_key_value_heads=True; legal: an integer"),
        ({**PLAIN, "num_key_value_heads": 0}, "num_key_value_heads=0; legal: an integer of 1"),
        (
            {**PLAIN, "num_key_value_heads": 5},
            "num_key_value_heads=5; legal: a divisor of the 32 query heads",
        ),
        (
            {"text_config": {**PLAIN, "num_attention_heads": -1}},
            "text_config.num_attention_heads=-1; legal: an integer of 1 or more",
        ),
        ({**LATENT, "qk_rope_head_dim": None}, "qk_rope_head_dim=None; legal: an integer"),
        ({**PLAIN, "layer_types": []}, "layer_types=[]; legal: a list with one entry"),
        ({**PLAIN, "layer_types": [1]}, "layer_types=[1]; legal: a list of 'full_attention'"),
        (
            {**PLAIN, "layer_types": ["linear_attention"]},
            "layer_types=['linear_attention']; legal: at least one layer with attention",
        ),
        ({**PLAIN, "hybrid_override_pattern": "M?"}, "hybrid_override_pattern='M?'; legal: a text"),
        ({**PLAIN, "linear_attn_config": {}}, "linear_attn_config={}; legal: an object with"),
        ({**WINDOWS, "hybrid_layer_pattern": [0, 2]}, "hybrid_layer_pattern=[0, 2]; legal: "),
        ({**WINDOWS, "swa_num_key_value_heads": 3}, "swa_num_key_value_heads=3; legal: a divisor"),
        ({**PLAIN, "block_configs": [1]}, "block_configs=[1]; legal: a list of objects"),
        ({**PLAIN, "block_configs": blocks(None)}, "legal: at least one layer with attention"),
        ({**PLAIN, "block_configs": blocks(5)}, "a divisor of 32, in each layer with attention"),
        # A head count that would be overlooked, so that one H stood for all layers.
        (
            {**PLAIN, "num_global_key_value_heads": 2},
            "num_global_key_value_heads=2; legal: together with layer_types",
        ),
        (
            {**PLAIN, "swa_num_key_value_heads": 2},
            "swa_num_key_value_heads=2; legal: together with hybrid_layer_pattern",
        ),
        (
            {**PLAIN, "local_num_key_value_heads": 2},
            "local_num_key_value_heads=2; legal: of such fields num_key_value_heads, ",
        ),
    ],
)
def test_a_bad_config_is_refused(tmp_path: Path, document: object, said: str) -> None:
    path = config(tmp_path, document)
    with pytest.raises(ConfigError) as refused:
        read_config(path)
    assert str(refused.value).startswith(str(path))
    assert said in str(refused.value)
    result = run("--config", str(path), *SIZES)
    assert result.exit_code == 2
    assert said in result.output


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("{", encoding="utf-8")
    result = run("--config", str(path), *SIZES)
    assert result.exit_code == 2
    assert f"{path} is not readable as JSON" in result.output


def test_a_config_is_planned_like_the_model_that_it_describes(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        {
            "num_attention_heads": 64,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "num_hidden_layers": 94,
        },
    )
    given = document("--config", str(path), *SIZES)
    built_in = document("--model", "qwen3-235b-a22b", *SIZES)
    assert given["groups"] == built_in["groups"]


def test_a_shape_is_what_the_reader_returns(tmp_path: Path) -> None:
    assert isinstance(hf_config.read_config(config(tmp_path, PLAIN)), ModelShape)
