"""``MemoryGate`` ends what was begun, in order."""

import pytest
from streams import MemoryRequester, MemoryResponder, make_rng, run, seeds, stream_checker
from trebuchet.cores.roles.gate import MemoryGate
from trebuchet.cores.roles.loopback.role import LoopbackRole
from trebuchet.cores.roles.slot import RoleSlot


@seeds(4)
def test_gate_ends_in_order(seed):
    """A requester stops in mid-burst: what it asked for is finished with unstrobed bytes."""
    dut = MemoryGate(32, 2)
    rng = make_rng(seed, "gate")
    memory = bytearray(1 << 10)
    requester = MemoryRequester(dut.i)  # never stalls: it is not reset here, as a role would be

    async def main(ctx):
        for i in range(6):
            requester.start_write(64 * i, b"\x55" * 64, tag=i % 4)
            requester.start_read(512 + 64 * i, 16, tag=i % 4)
        await ctx.tick().repeat(rng.randint(1, 200))
        ctx.set(dut.stop, 1)
        while not ctx.get(dut.idle):
            await ctx.tick()
        await ctx.tick()
        assert not responder.busy
        for burst in responder.log:
            if burst.write:
                written = memory[burst.addr : burst.addr + 64]
                count = sum(strb == 15 for strb in burst.strb)
                assert written == b"\x55" * 4 * count + bytes(64 - 4 * count)

    responder = MemoryResponder(dut.o, memory, rng=make_rng(seed, "memory"))
    checkers = [stream_checker(dut.o.cmd, "cmd")]
    run(dut, main, requester, responder, *checkers, limit=5000, seed=seed)


def test_bad_outstanding():
    role = LoopbackRole()
    role.outstanding = 0
    with pytest.raises(ValueError, match="Attribute 'outstanding' of role 'x' must be 1 to 255"):
        RoleSlot(role, "x")
