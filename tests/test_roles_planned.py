"""Roles of a plan: their options and needs, roles outside the tree, and what is refused."""

import sys

import pytest
from trebuchet.cores.roles.catalog import PlannedRole, load_role
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.shell import Shell
from trebuchet.cores.shell_config import ShellConfig
from trebuchet.models import role_folders
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.plan import Plan, RoleEntry
from trebuchet.soc.plans import plan_label, plan_of, sim_board

OWN = """
from dataclasses import dataclass

from trebuchet.cores.roles.loopback.role import Wire
from trebuchet.cores.roles.packet_role import PacketRole

from .limit import LIMIT

__all__ = ["ShortConfig", "ShortRole"]


@dataclass(frozen=True)
class ShortConfig:
    most: int = LIMIT

    def __post_init__(self):
        if not 0 < self.most <= LIMIT:
            raise ValueError(f"most must be 1 to {LIMIT}, not {self.most}")


class ShortRole(PacketRole):
    Config = ShortConfig

    def __init__(self, width=32, tag_width=2, *, most=LIMIT):
        super().__init__(Wire(width), width, tag_width, range(1, most + 1))
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a role of the user's, forgotten afterwards."""
    monkeypatch.setattr(role_folders, "_own", {})
    folder = tmp_path / "mine" / "short"
    folder.mkdir(parents=True)
    (folder / "role.py").write_text(OWN)
    (folder / "limit.py").write_text("LIMIT = 64\n")
    yield folder
    for name in [name for name in sys.modules if name.startswith(role_folders.OWN_PACKAGE)]:
        del sys.modules[name]


def planned(text):
    return PlannedRole(RoleEntry.parse(text))


def test_options_reach_the_role():
    config = ShellConfig(plan=Plan.of_roles("ecg:pipelines=2,preset=second,stream=true"))
    ((slot,),) = config.make_slots()
    assert len(slot.role.lanes) == 2
    assert slot.role.preset.name == "second"
    assert config.job_kinds == (JobKind.STREAM,)
    region = config.memory["scratch_ecg"]
    assert region.size == config.tcp.sessions << 11
    assert region.base % 2048 == 0
    assert config.tag_width >= planned("ecg:pipelines=2,stream=true").needs.tag_width == 2


def test_instances_are_slots_with_registers_of_their_own():
    shell = Shell(ShellConfig(plan=Plan.of_roles("loopback:instances=3", "benchmark")))
    names = {name for name in shell.signature.members if name.startswith("csr_")}
    assert {"csr_loopback_0", "csr_loopback_1", "csr_loopback_2", "csr_benchmark"} <= names


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nothing", "there is no role 'nothing'; there are: .*ecg.*; make it with: trebuchet role"),
        (
            "ecg:speed=3",
            "role 'ecg' has no option 'speed'; it has: preset, pipelines, buffers, str",
        ),
        ("verilog_example:x=1", "role 'verilog_example' has no option 'x'; it has: none"),
        ("ecg:pipelines=many", "role 'ecg': option pipelines must be of type int, not 'many'"),
        ("ecg:stream=1", "role 'ecg': option stream must be of type bool, not 1"),
        ("ecg:pipelines=65", "role 'ecg': pipelines must be 1 to 64, not 65"),
        ("ecg:buffers=3,name=a", "role 'a': buffers must be 1 or 2, not 3"),
        ("ecg:preset=third", "role 'ecg': preset must be faithful or second, not 'third'"),
        ("matmul:macs=3", "role 'matmul': Number of MACs must be a power of two from 4 to 64, not"),
        ("ecg:instances=2,loadable=true", "role 'ecg': instances must be 1 for a role that client"),
    ],
)
def test_what_cannot_be_is_one_line(text, says):
    with pytest.raises(TrebuchetError, match=f"^{says}") as caught:
        planned(text)
    assert "\n" not in str(caught.value)


def test_a_role_outside_the_tree(own):
    """By its folder, or by that of several; its own modules are found beside it."""
    plan = plan_of([f"{own}:most=16"])
    assert plan == Plan.of_roles("short:most=16")
    shell = Shell(ShellConfig(plan=plan))
    assert "csr_short" in shell.signature.members
    assert load_role("short") is load_role("short")
    with pytest.raises(TrebuchetError, match="^role 'short': most must be 1 to 64, not 65$"):
        planned("short:most=65")
    role_folders._own.clear()
    assert plan_of(["short"], folders=[own.parent]) == Plan.of_roles("short")
    assert own / "limit.py" in role_folders.own_role_files()
    assert sim_board(Plan.of_roles("short")).plan.roles[0].kind == "short"


def test_roles_that_cannot_be_loaded(own):
    (own / "role.py").write_text("1 / 0\n")
    plan = plan_of([str(own)])
    with pytest.raises(TrebuchetError, match="^role 'short' cannot be loaded from .*: ZeroDiv"):
        ShellConfig(plan=plan)
    with pytest.raises(TrebuchetError, match="^there is no role in '.*nowhere': neither role.py"):
        plan_of(["./nowhere"])
    named = own.parent / "ecg"
    own.rename(named)
    with pytest.raises(TrebuchetError, match="^role 'ecg' in .* must have another name"):
        plan_of([str(named)])


def test_the_simulated_board_has_room_for_a_roles_operands():
    board = sim_board(Plan.of_roles("matmul", "ecg:stream=true"))
    assert (board.segment_bytes, board.sessions) == (1 << 17, 16)
    board = sim_board(Plan.of_roles("matmul:n=16,macs=4"))
    assert (board.segment_bytes, board.sessions) == (32768, 64)


def test_labels_tell_plans_apart():
    plans = [
        Plan(),
        Plan.of_roles("ecg"),
        Plan.of_roles("ecg:stream=true"),
        Plan.of_roles("ecg", "loopback"),
    ]
    labels = [plan_label(plan) for plan in plans]
    assert labels[1] == "ecg"
    assert len(set(labels)) == len(plans)


def test_options_of_a_command(tmp_path):
    assert plan_of() is None
    assert plan_of(["none"]) == Plan()
    plan = plan_of(["ecg"], ["4000=smp:ecg", "80=http", "8080=page"])
    assert [service.port for service in plan.services] == [80, 4000, 8080]
    with pytest.raises(TrebuchetError, match="^a plan's file says roles and services; leave out"):
        plan_of(["ecg"], path=tmp_path / "plan.toml")
    with pytest.raises(ValueError, match="^a shell with firmware must have services http, page$"):
        ShellConfig(plan=plan_of(["ecg"], ["4000=smp:ecg"]))
