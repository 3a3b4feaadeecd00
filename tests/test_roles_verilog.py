"""Roles in plain Verilog: the example against its model, in its slot; synthesised; bad files."""

import pytest
from streams import make_rng, random_bytes, seeds
from trebuchet.bench.area import area
from trebuchet.cores.csr import Register, RegisterBlock
from trebuchet.cores.roles.loopback.role import Wire
from trebuchet.cores.roles.packet_role import PacketRole
from trebuchet.cores.roles.slot import RoleSlot
from trebuchet.cores.roles.verilog import VerilogBody, VerilogRole
from trebuchet.cores.roles.verilog_example.role import AdlerRole
from trebuchet.models import roles
from trebuchet.models.status import Status
from trebuchet.sim.build import build
from trebuchet.sim.roles import Job, Write, role_source, run_jobs

HARD = {"stall": 0.2, "memory_stall": 0.2, "latency": (3, 60), "reorder": True}


@pytest.fixture(scope="module")
def adler():
    return build(role_source(RoleSlot(AdlerRole(64), "adler", 64)))


@pytest.mark.slow
@seeds(3)
def test_example_equals_its_model(adler, seed):
    rng = make_rng(seed, "jobs")
    jobs = [
        Job(random_bytes(rng, 0, rng.choice([3, 40, 3000])), room=rng.choice([3, 4, 100]))
        for _ in range(200)
    ]
    run = run_jobs(adler, jobs, seed=seed, **HARD)
    for job, answer in zip(jobs, run.answers, strict=True):
        assert (answer.status, answer.result) == roles.adler(job.operand, job.room)
    summed = [len(job.operand) for job in jobs if job.room >= 4]
    assert run.registers["bytes"] == sum(summed)
    assert run.registers["jobs"] == len(jobs)
    assert run.registers["errors"] == len(jobs) - len(summed)


@pytest.mark.slow
@seeds(3)
def test_example_is_reset_alone(adler, seed):
    rng = make_rng(seed, "operations")
    operations = []
    for _ in range(100):
        operations.append(Job(random_bytes(rng, 1, 300), room=4))
        if rng.random() < 0.3:
            operations.append(Write("reset", wait=rng.randrange(600), idle=False))
    run = run_jobs(adler, operations, seed=seed, **HARD)
    jobs = [op for op in operations if isinstance(op, Job)]
    statuses = set()
    for job, answer in zip(jobs, run.answers, strict=True):
        statuses.add(answer.status)
        if answer.status == Status.OK:
            assert answer.result == roles.adler(job.operand, 4)[1]
    assert statuses == {Status.OK, Status.ABORTED}


def test_example_is_synthesised():
    """With its Verilog; a part that were missing would be a cell of unknown cost."""
    found = area(AdlerRole(128), "ecp5")
    assert 200 < found["LUT4"] < 1000


BODY = """\
module invert (
    input clk, input rst,
    input i_valid, output i_ready, input [31:0] i_data, input [1:0] i_empty,
    input i_first, input i_last, input i_error,
    output o_valid, input o_ready, output [31:0] o_data, output [1:0] o_empty,
    output o_first, output o_last, output o_error,
    input [7:0] csr_mask
);
    assign o_valid = i_valid;
    assign i_ready = o_ready;
    assign o_data = i_data ^ {4{csr_mask}};
    assign {o_empty, o_first, o_last, o_error} = {i_empty, i_first, i_last, i_error};
endmodule
"""


def test_body_of_a_packet_role(tmp_path):
    """Its ports are all there: 32 XORs more than those of a wire."""
    (tmp_path / "invert.v").write_text(BODY)
    block = RegisterBlock("invert", (Register("mask", "rw", 8, reset=0xFF),))
    body = VerilogBody(tmp_path / "invert.v", "invert", 32, block)
    role = PacketRole(body)
    assert role.verilog_files == body.verilog_files
    assert "csr" in role.signature.members
    assert area(role, "ecp5")["LUT4"] >= area(PacketRole(Wire(32)), "ecp5")["LUT4"] + 32


def test_bad_files(tmp_path):
    path = tmp_path / "role.v"
    with pytest.raises(ValueError, match="Verilog file must exist, which '.*role.v' does not"):
        VerilogRole(path, "role")
    path.write_text("// module role\nmodule other(input clk);\nendmodule\n")
    with pytest.raises(ValueError, match=r"role.v' must contain module 'role'"):
        VerilogRole(path, "role")
