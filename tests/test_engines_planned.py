"""Engines in a plan: files, options of commands, faults in one line, and what is built."""

import re
from dataclasses import replace

import pytest
from trebuchet.boards import load_board
from trebuchet.boards.schema import BoardError
from trebuchet.cores.engines.catalog import PlannedEngine, load_engine
from trebuchet.cores.engines.contract import check_body, limits_of
from trebuchet.formal.kit.internals import mark_used
from trebuchet.models.engine_folders import engine_names
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.plan import EngineEntry, Plan, PlanError, RoleEntry, load_plan
from trebuchet.sim.tops import source
from trebuchet.soc.plans import plan_of, sim_board

FILE = """
[[engine]]
place = "outbound"
kind = "crc32c"

[[engine]]
place = "inbound"
kind = "crc32c"
check = true
"""


def test_a_file_and_options_say_the_same(tmp_path):
    path = tmp_path / "engines.toml"
    path.write_text(FILE)
    plan = load_plan(path)
    board = "colorlight_i9_bridge"
    texts = ["outbound=crc32c", "inbound=crc32c:check=true"]
    own = load_board(board).plan
    assert plan_of(engines=texts, board=board) == replace(own, engines=plan.engines)
    assert plan_of(["none"], engines=texts, board=board) == plan
    assert plan_of(engines=["none"], board=board) == own
    assert [engine.name for engine in plan.engines] == ["inbound_crc32c", "outbound_crc32c"]
    assert plan_of(path=path) == plan


@pytest.mark.parametrize("top", ["board", "fabric"])
def test_only_the_bridge_is_simulated_with_engines(top):
    plan = plan_of(engines=["outbound=crc32c"], board="sim")
    message = f"^engines lie in the bridge: the top must be bridge, not '{top}'$"
    with pytest.raises(TrebuchetError, match=message):
        source(top, plan)


def test_a_plan_without_engines_is_described_as_before():
    """So that builds, which are known by their hash, stay what they are."""
    assert "engines" not in Plan.of_roles("loopback").describe()
    plan = plan_of(engines=["outbound=crc32c"], board="colorlight_i9_bridge")
    assert plan.describe()["engines"] == [["outbound", "crc32c", {}]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("crc32c", "an engine must be PLACE=KIND or PLACE=KIND:KEY=VALUE, not 'crc32c'"),
        ("up=crc32c", "an engine's place must be one of inbound, outbound, not 'up'"),
        ("inbound=CRC", "an engine must be a lower-case name of at most 24 characters, not 'CRC'"),
        ("inbound=x:y", "must be PLACE= and KIND or KIND:KEY=VALUE,KEY=VALUE, not 'inbound=x:y'"),
    ],
)
def test_bad_texts(text, message):
    with pytest.raises(PlanError, match=re.escape(message)):
        EngineEntry.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inbound=none_such", "there is no engine 'none_such'; there are: crc32c"),
        ("inbound=crc32c:size=2", "engine 'inbound_crc32c' has no option 'size'; it has: check"),
        ("inbound=crc32c:check=2", "option check must be of type bool, not 2"),
    ],
)
def test_bad_engines(text, message):
    with pytest.raises(TrebuchetError, match=re.escape(message)):
        PlannedEngine(EngineEntry.parse(text))


def test_impossible_plans(tmp_path):
    twice = tuple(map(EngineEntry.parse, ["inbound=crc32c", "inbound=crc32c:check=true"]))
    with pytest.raises(PlanError, match="two engines of the plan are inbound"):
        Plan(engines=twice)
    role = RoleEntry(kind="loopback", name="inbound_crc32c")
    with pytest.raises(PlanError, match="a role has the name of engine 'inbound_crc32c'"):
        Plan((role,), engines=twice[:1])
    with pytest.raises(PlanError, match="engines must be a tuple of EngineEntry"):
        Plan(engines=("inbound=crc32c",))
    path = tmp_path / "engines.toml"
    path.write_text('[[engine]]\nkind = "crc32c"\n')
    with pytest.raises(PlanError, match="must have a place and a kind"):
        load_plan(path)
    with pytest.raises(TrebuchetError, match="leave out the options"):
        plan_of(path=path, engines=["none"])


def test_a_board_without_a_bridge_has_no_place_for_an_engine():
    plan = plan_of(engines=["outbound=crc32c"], board="colorlight_i9_bridge")
    message = "plan.engines must be none without bridge, not 'outbound_crc32c'"
    with pytest.raises(BoardError, match=message):
        load_board("colorlight_i9").variant(plan=plan)
    with pytest.raises(BoardError, match=message):
        sim_board(Plan(engines=plan.engines))
    assert sim_board(Plan(engines=plan.engines), bridge=True).bridge
    unknown = replace(plan, engines=(EngineEntry(place="inbound", kind="other"),))
    with pytest.raises(BoardError, match="plan.engines must be of crc32c, not 'other'"):
        load_board("colorlight_i9_bridge").variant(plan=unknown)


@pytest.mark.parametrize("name", engine_names())
@pytest.mark.parametrize("width", [32, 64, 128])
def test_each_engine_is_a_body(name, width):
    body = load_engine(name)(width)
    mark_used(body)
    check_body(body, width)
    assert limits_of(body).latency is not None
    assert limits_of(body).growth is not None
    assert body.signature.flip().flip() == body.signature


def test_examples_of_the_page(root, tmp_path):
    """The plan and the options of docs/engines.md are plans of a board with a bridge."""
    text = (root / "docs" / "engines.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "engines.toml"
    path.write_text(example)
    board = load_board("colorlight_i9_bridge").variant(plan=plan_of(path=path))
    lines = re.findall(r"^trebuchet .*--engine.*$", text, re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        plan = plan_of(engines=re.findall(r"--engine (\S+)", line), board=board.name)
        for entry in board.variant(plan=plan).plan.engines:
            PlannedEngine(entry)
    (entry,) = re.findall(r"`plan=(Plan\(.*?\))`", text)
    assert eval(entry, {"Plan": Plan, "EngineEntry": EngineEntry}).engines == plan.engines
