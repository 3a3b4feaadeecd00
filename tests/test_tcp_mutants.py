"""The regression tests fail on engines that have the faults: each mutant plants one.

A mutant is a pattern in one part of ``cores/tcp`` and what replaces it, as in the proofs
(``formal/kit/proof.py``). The named test, run on it, must raise an AssertionError.
"""

import importlib

import pytest
import tcp_bench
import test_tcp_close as close
import test_tcp_engine as engine
import test_tcp_flow as flow
import test_tcp_regressions as data
import test_tcp_regressions_life as life
from trebuchet.formal.kit.proof import Mutant, mutated, mutated_tree

pytestmark = pytest.mark.slow

PACKAGE = "trebuchet.cores.tcp"


def plant(where, name, old, new, test, *arguments, context=()):
    mutant = Mutant(name, old, new, where=f"{PACKAGE}.{where}", context=context)
    return pytest.param(mutant, test, arguments, id=name)


MUTANTS = [
    plant(
        "transmit",
        "A1 retransmission reads the first session's memory",
        "self.address.eq(Cat((r.first + self.slot)[:2], session))",
        "self.address.eq(Cat((r.first + self.slot)[:2], 0))",
        data.test_a01_retransmission_across_the_buffer_end_of_session_3,
        0,
    ),
    plant(
        "receive",
        "A2 no verdict for the payload of a RST",
        "with m.If(owed):",
        "with m.If(owed & ~seg.flags.rst):",
        data.test_a02_each_payload_has_one_verdict,
        0,
        context="owed.eq(seg.length != 0)",
    ),
    plant(
        "classifier",
        "A3 sequence numbers compared without sign",
        "behind = off[31]",
        "behind = seg.seq < r.rcv_nxt",
        data.test_a03_segment_beyond_the_wrap_is_ahead,
        context="off.eq(seg.seq - r.rcv_nxt)",
    ),
    plant(
        "record_update",
        "A4 any ACK rearms the timer",
        "with m.If(j.ack_all & (r.phase == Phase.OPEN)):\n"
        "    m.d.comb += [w.deadline.eq(self.settings.keepalive_idle), ...]",
        "with m.If(r.phase == Phase.OPEN):\n    m.d.comb += [w.deadline.eq(self.rto), ...]",
        data.test_a04_lost_fast_retransmission_is_followed_by_a_time_out,
    ),
    plant(
        "transmit",
        "A6 a probe carries no byte",
        "self.length.eq(self.want != 0), self.fin.eq(self.want == 0)",
        "self.length.eq(0), self.fin.eq(self.want == 0)",
        flow.test_zero_window_probes,
        0,
    ),
    plant(
        "classifier",
        "A6 nobody is heard from beyond a closed window",
        "self.shut & f.ack",
        "self.shut & f.ack & 0",
        flow.test_acks_from_beyond_a_closed_window_count,
        0,
    ),
    plant(
        "record_update",
        "A8 an ACK that does not cover the FIN ends LAST-ACK",
        "with m.If(r.fin_queued & j.ack_all & r.fin_told):",
        "with m.If(r.fin_queued & r.fin_told):",
        close.test_last_ack_needs_the_ack_of_the_fin,
        0,
    ),
    plant(
        "handshake",
        "A9 the peer's MSS is ignored",
        "self.mss.eq(Mux(seg.mss > config.mss, config.mss, seg.mss))",
        "self.mss.eq(config.mss)",
        engine.test_mss_of_the_peer,
        100,
        100,
    ),
    plant(
        "handshake",
        "A11 initial sequence numbers without a secret",
        "self.hash + clock[8:]",
        "clock[8:]",
        life.test_a11_a_board_that_was_reset_begins_elsewhere,
    ),
    plant(
        "receive",
        "A12 acknowledged before it is written",
        "with m.If(update.store): ...",
        "with m.If(update.store):\n"
        "    m.d.comb += [w.ack_due.eq(1), w.rcv_pub.eq(update.end)]\n"
        "    ...",
        flow.test_ack_only_after_the_write,
        context="w.apply(update.update)",
    ),
    plant(
        "segment",
        "A14 RST with the wrong number",
        "m.d.sync += o.seq.eq(segment.ack)",
        "m.d.sync += o.seq.eq(segment.seq)",
        engine.test_no_session_draws_rst,
        0,
    ),
    plant(
        "record_update",
        "A16 a repeated SYN gets another number",
        "m.d.comb += w.syn_due.eq(1)",
        "m.d.comb += [w.syn_due.eq(1), w.snd_una.eq(self.update.record.snd_una + 1)]",
        engine.test_syn_repeated_keeps_isn,
        0,
    ),
]


def _tiers(mutants):
    """The last with the others of `make test`, by way of example; all in the nightly tier."""
    for mutant in mutants:
        marks = [] if mutant is mutants[-1] else [pytest.mark.nightly]
        yield pytest.param(*mutant.values, id=mutant.id, marks=marks)


@pytest.mark.parametrize("mutant", [case.values[0] for case in MUTANTS], ids=lambda m: m.name)
def test_each_mutant_matches_one_place(mutant):
    mutated_tree(mutant, f"{PACKAGE}.engine")


@pytest.mark.parametrize(("mutant", "test", "arguments"), _tiers(MUTANTS))
def test_a_regression_fails_on_an_engine_with_the_fault(mutant, test, arguments, monkeypatch):
    module = mutated(importlib.import_module(f"{PACKAGE}.engine"), mutant)
    # The copy of the package has a class of configurations of its own.
    monkeypatch.setattr(
        tcp_bench, "TcpEngine", lambda config: module.TcpEngine(module.TcpConfig(**vars(config)))
    )
    # What never comes need not be waited for as long as usual.
    monkeypatch.setattr(tcp_bench.World.until, "__defaults__", (60,))
    monkeypatch.setitem(tcp_bench.World.run.__kwdefaults__, "limit", 6_000)
    with pytest.raises(AssertionError):
        test(*arguments)
