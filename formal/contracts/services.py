"""The ready/valid contract of the components in ``cores/services``.

What is left out, and why, is in ``tests/test_prove_contracts.py``.

Not proved: what :mod:`trebuchet.formal.kit.contracts` says; other sizes than those named.
"""

from amaranth.hdl import Assert, Assume, Signal

from ..kit.contracts import contract, steady
from ..kit.proof import Mutant

__all__ = ["PROOFS"]

TAKES_BACK = Mutant("takes_back", "with m.If(port.ready):", "with m.If(1):")


def _service_waits(*states):
    def more(m, dut, inside):
        service = dut.service
        m.d.comb += Assert(inside.state(*states) | ~(service.tx.valid | service.free.valid))

    return more


LEAVES = Mutant("leaves_too_soon", "with m.If(~svc.tx.valid & ~svc.free.valid):", "with m.If(1):")


# --- readers of memory, and writers ---


def _answers_for_reads(m, rdata, cmd, most):
    """Read data come only for what was asked for, a beat each; returns how many are to come."""
    owed = Signal(range(most + 2))
    m.d.sync += owed.eq(owed + (cmd.valid & cmd.ready) - (rdata.valid & rdata.ready))
    m.d.comb += Assume(~rdata.valid | (owed != 0))
    return owed


def _smp_header(m, dut, inside):
    owed = _answers_for_reads(m, dut.mem_rdata, dut.mem_cmd, 4)
    steady(m, dut.mem_cmd.valid, dut.base)
    with m.If(inside.state("TAKE")):
        m.d.comb += Assert(inside["to_take"] == inside["to_issue"] + owed)
        m.d.comb += Assert(inside["to_take"] != 0)
    with m.Else():
        m.d.comb += Assert((inside["to_issue"] == 0) & (owed == 0))


def _response_copier(m, dut, inside):
    steady(m, ~inside.state("IDLE"), dut.addr, dut.length)


PROOFS = (
    contract(
        "services.discard.Discard",
        lambda cls: cls(2),
        (TAKES_BACK, LEAVES),
        size="2 sessions",
        more=_service_waits("WAIT"),
        cover_depth=12,
    ),
    contract(
        "services.responder.Responder",
        lambda cls: cls(2),
        (
            Mutant(
                "takes_back",
                "with m.If(port.ready):",
                "with m.If(1):",
                where="trebuchet.cores.services.discard",
            ),
            Mutant(
                "addr_of_the_day",
                "svc.tx.payload.close.eq(1)",
                "svc.tx.payload.close.eq(svc.event.valid)",
                where="trebuchet.cores.services.discard",
            ),
        ),
        size="2 sessions",
        more=_service_waits("WAIT"),
        cover_depth=12,
    ),
    contract(
        "services.smp_header.SmpHeaderReader",
        lambda cls: cls(32, 9),
        (
            Mutant("walks_on", "with m.If(cmd.valid & cmd.ready):", "with m.If(cmd.valid):"),
            Mutant("flickers", "(to_issue != 0)", "((to_issue != 0) & ~self.mem_rdata.valid)"),
        ),
        size="32, 512 bytes",
        more=_smp_header,
        assumes="the stream rules; read data only as asked for; `base` kept while it reads",
    ),
    contract(
        "services.mailbox_copy.RequestCopier",
        lambda cls: cls(32, 9),
        (
            Mutant(
                "gives_up",
                'with m.If(self.mem_cmd.ready):\n                    m.next = "TAKE"',
                'with m.If(1):\n                    m.next = "TAKE"',
            ),
            Mutant(
                "walks_on",
                "m.d.sync += skip.eq(place[:log2n])",
                "m.d.sync += place.eq(place + 4)",
            ),
        ),
        size="32, 512 bytes",
    ),
    contract(
        "services.mailbox_copy.ResponseCopier",
        lambda cls: cls(32),
        (
            Mutant("gives_up", "with m.If(self.mem_wdata.ready):", "with m.If(1):"),
            Mutant(
                "withdraws",
                'with m.If(self.mem_cmd.ready):\n                    m.next = "DATA"',
                'with m.If(1):\n                    m.next = "DATA"',
            ),
        ),
        more=_response_copier,
        cover_depth=8,
        assumes="the stream rules; `addr` and `length` are kept until `done`",
    ),
)
