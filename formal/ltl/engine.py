"""Proof of ``Ltl`` in ``cores/ltl/engine.py``: what joins its parts.

Every part is the solver's: its outputs are anything, in every cycle. Then each input of each part
must be the output, the register or the field that docs/network.md means, each counter must count
its event and nothing else, time must tick every ``tick_cycles`` cycles while enabled, and a pause
must be asked for and ended at the thresholds. The parts have proofs of their own (``ltl_*``).

Not proved: a reset while running; other numbers of channels and connections.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Cat, Const, Cover, Elaboratable, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out
from trebuchet.cores.ltl.config import TIME_BITS, LtlConfig
from trebuchet.cores.ltl.registers import COUNTERS

from ..kit.internals import mark_used
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .parts import opened

__all__ = ["PROOFS"]

SMALL = LtlConfig(
    width=32, connections=3, vcs=2, slots=4, window=2, max_message=12, buffer_beats=4, seq_bits=4
)
PARTS = ("Ingress", "Sender", "Framer", "Parser", "Receiver", "Deliver", "Responder", "Commands")
PARTS += ("RateControl", "Limiter", "PfcReceiver", "PfcSender", "PacketArbiter", "StreamFifo")

#: docs/network.md and the registers' descriptions: off, IANA's private port, 1 us at 156 MHz.
RESETS = {"enable": 0, "port": 49530, "tick_cycles": 156, "retries": 7, "rto": 50, "credit": 4}
RESETS |= {"peer_port": 49530, "cnp_interval": 50, "rate_control": 0, "rate_line": 65535}
RESETS |= {"rate_minimum": 65, "rate_additive": 65, "rate_hyper": 325, "rate_gain": 8}
RESETS |= {"alpha_ticks": 55, "rate_ticks": 60, "rate_beats": 312500, "rate_recovery": 5}
RESETS |= {"limit_rate": 0, "limit_minimum": 256, "limit_slope": 5, "pfc": 0, "pfc_class": 3}
RESETS |= {"pfc_quantum": 8, "pfc_xoff": 1536, "pfc_xon": 1024, "dscp": 0}


class AnyPart(wiring.Component):
    """Has the ports of a part; its outputs are the solver's."""

    def __init__(self, part):
        mark_used(part)
        super().__init__(part.signature)

    def elaborate(self, platform):
        m = Module()
        for _, member, value in self.signature.flatten(self):
            if member.flow == Out:
                raw = Value.cast(value)
                m.d.comb += raw.eq(AnySeq(len(raw)))
        return m


class _Port:
    def __init__(self, bits, width):
        self.addr, self.data, self.en = Signal(bits), Signal(width), Signal()


class AnyStore(Elaboratable):
    def __init__(self, *, shape, depth, init, attrs=None):
        self.depth, bits = depth, (depth - 1).bit_length()
        self.write, self.read = _Port(bits, shape), _Port(bits, shape)

    def write_port(self):
        return self.write

    def read_port(self):
        return self.read

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.read.data.eq(AnySeq(len(self.read.data)))
        return m


class EngineProof(Elaboratable):
    def __init__(self, cores):
        self.cores, self.dut = cores, cores.Ltl(SMALL)

    def elaborate(self, platform):
        self.m = m = new_harness()
        dut, cores = self.dut, self.cores
        stubs = {
            name: lambda *args, part=getattr(cores, name): AnyPart(part(*args)) for name in PARTS
        }
        m.submodules.dut = inside = opened(dut, platform, cores, Memory=AnyStore, **stubs)
        self.s, self.csr = inside.submodules, dut.csr
        for register in cores.LTL_BLOCK.registers:
            if register.access in ("rw", "stb"):
                free(m, getattr(dut.csr, register.name))
        free(m, dut.mac, dut.ip, dut.rx.valid, dut.rx.payload, dut.tx.ready)
        for v in range(SMALL.vcs):
            free(m, dut.send[v].valid, dut.send[v].payload, dut.deliver[v].ready)
        self._streams()
        self._wires()
        self._registers()
        self._pace()
        self._pause()
        self._time()
        self._counters()
        return m

    def _same(self, *pairs):
        for a, b in pairs:
            a, b = Value.cast(a), Value.cast(b)
            self.m.d.comb += Assert(a == b)

    def _flows(self, a, b):
        """Stream ``a`` goes to stream ``b``."""
        self._same((b.valid, a.valid), (b.payload, a.payload), (a.ready, b.ready))

    def _streams(self):
        s, dut = self.s, self.dut
        for v in range(SMALL.vcs):
            self._flows(dut.send[v], s.ingress.i[v])
            self._flows(s.ingress.commit[v], s.sender.commit[v])
            self._flows(s.deliver.o[v], dut.deliver[v])
        for a, b in (
            (s.receiver.response, s.responses.i),
            (s.responses.o, s.sender.response),
            (s.sender.frame, s.framer.frames),
            (s.responder.frame, s.framer.control),
            (s.receiver.request, s.responder.request),
            (s.deliver.done, s.responder.done),
            (s.commands.send, s.sender.command),
            (s.commands.receive, s.receiver.command),
            (s.commands.opened, s.responder.opened),
            (dut.rx, s.parser.rx),
            (s.framer.tx, s.arbiter.i[0]),
            (s.pfc_tx.o, s.arbiter.i[1]),
            (s.arbiter.o, dut.tx),
        ):
            self._flows(a, b)

    def _wires(self):
        s, dut, csr = self.s, self.dut, self.csr
        store = s.store
        self._same(
            (s.ingress.release, s.sender.release),
            (s.ingress.release_valid, s.sender.release_valid),
            *(
                (getattr(s.receiver, n), getattr(s.parser, n))
                for n in ("lookup", "about", "header", "body", "data", "last", "end", "good")
            ),
            *(
                (getattr(s.deliver, n), getattr(s.receiver, n))
                for n in ("valid", "beat", "vc", "commit", "words", "connection")
            ),
            *((s.receiver.level[v], s.deliver.level[v]) for v in range(SMALL.vcs)),
            *(
                (getattr(s.framer, n), getattr(s.commands, n))
                for n in ("peer_en", "peer_addr", "peer")
            ),
            (s.receiver.entry_addr, s.responder.entry_addr),
            (s.responder.entry, s.receiver.entry),
            (s.responder.total, s.receiver.total),
            (s.framer.kill, s.sender.kill),
            (s.framer.killed, s.sender.pace_connection),
            (s.parser.max_length, SMALL.max_message),
            (store.write.addr, s.ingress.addr),
            (store.write.data, s.ingress.data),
            (store.write.en, s.ingress.en),
            (store.read.addr, s.framer.store_addr),
            (store.read.en, s.framer.store_en),
            (s.framer.store_data, store.read.data),
            (dut.started, s.framer.started),
            (dut.acked, s.responses.i.valid & s.responses.i.ready),
            (s.framer.dscp, csr.dscp),
            *((part.mac, dut.mac) for part in (s.parser, s.framer, s.pfc_tx)),
            *((part.ip, dut.ip) for part in (s.parser, s.framer)),
            *((part.port, csr.port) for part in (s.parser, s.framer)),
        )
        assert store.depth == SMALL.slots << SMALL.slot_bits

    def _registers(self):
        s, csr = self.s, self.csr
        fields, peer = s.commands.fields, s.commands.peer_fields
        self._same(
            (s.commands.command, csr.command),
            *(
                (fields[n], getattr(csr, n)[: len(fields[n])])
                for n in ("incarnation", "rto", "vc", "credit")
            ),
            (peer.mac, csr.peer_mac),
            (peer.ip, csr.peer_ip),
            (peer.port, csr.peer_port),
            (peer.remote, csr.peer_connection),
            (peer.incarnation, csr.incarnation),
            (csr.busy, s.commands.busy),
            (csr.failure[:16], s.sender.failure.payload),
            (csr.failure[16], s.sender.failure.valid),
            (s.sender.failure.ready, csr.failure_next),
            (csr.stored, s.ingress.used),
            (s.sender.retries, csr.retries),
            (s.receiver.cnp_interval, csr.cnp_interval),
        )

        # What registers hold after a reset, where it matters.
        known = {r.name: r.reset for r in self.cores.LTL_BLOCK.registers}
        for name, value in RESETS.items():
            self.m.d.comb += Assert(Const(known[name], 32) == value)

    def _pace(self):
        s, csr = self.s, self.csr
        rate, limiter, sender = s.rate, s.limiter, s.sender
        parameters = {"line": "rate_line", "minimum": "rate_minimum", "gain": "rate_gain"}
        parameters |= {"additive": "rate_additive", "hyper": "rate_hyper"}
        parameters |= {"alpha_ticks": "alpha_ticks", "rate_ticks": "rate_ticks"}
        parameters |= {"rate_beats": "rate_beats", "recovery": "rate_recovery"}
        self._same(
            *((rate.parameters[a], getattr(csr, b)) for a, b in parameters.items()),
            (rate.enable, csr.rate_control),
            (rate.now, sender.now),
            (rate.connection, sender.pace_connection),
            (rate.start, sender.pace_start),
            (sender.pace_done, rate.done),
            (sender.pace_allow, rate.allow),
            (rate.spend, sender.spend),
            (rate.beats, sender.spend_beats),
            (rate.cnp, sender.cnp),
            (rate.opened, sender.opened),
            (rate.view, csr.rate_view[: len(rate.view)]),
            (csr.rate_now, rate.rate),
            (csr.alpha_now, rate.alpha),
            (limiter.rate, csr.limit_rate),
            (limiter.minimum, csr.limit_minimum),
            (limiter.slope, csr.limit_slope),
            (sender.drop, limiter.drop),
            (limiter.spend, sender.spend),
            (limiter.beats, sender.spend_beats),
        )

    def _pause(self):
        m, s, csr, dut = self.m, self.s, self.csr, self.dut
        paused = s.pfc_rx.paused & csr.pfc[0]
        self._same(
            (csr.paused, paused),
            (s.framer.paused, paused),
            (s.sender.hold, ~csr.enable | paused),
            (s.pfc_rx.valid, dut.rx.valid & dut.rx.ready),
            (s.pfc_rx.beat, dut.rx.payload),
            *((part.priority, csr.pfc_class) for part in (s.pfc_rx, s.pfc_tx)),
            *((part.quantum, csr.pfc_quantum) for part in (s.pfc_rx, s.pfc_tx)),
        )
        levels, asks = s.deliver.level, Signal(name="asks_for_a_pause")
        full, low = Signal(), Signal()
        m.d.sync += [
            full.eq(Cat(level >= csr.pfc_xoff for level in levels).any()),
            low.eq(Cat(level < csr.pfc_xon for level in levels).all()),
        ]
        with m.If(~csr.pfc[1] | low):
            m.d.sync += asks.eq(0)
        with m.Elif(full):
            m.d.sync += asks.eq(1)
        m.d.comb += Assert(s.pfc_tx.xoff == asks)
        m.d.comb += Cover(asks & ~full)

    def _time(self):
        m, s, csr = self.m, self.s, self.csr
        now, count = Signal(TIME_BITS, name="time"), Signal(16, name="cycles")
        ends = count >= csr.tick_cycles
        m.d.sync += [count.eq(count + 1)]
        with m.If(ends):
            m.d.sync += [count.eq(1), now.eq(now + csr.enable)]
        m.d.comb += [Assert(self.dut.divider == count), Assert(self.dut.now == now)]
        self._same((s.sender.now, now), (s.receiver.now, now))
        m.d.comb += Cover((now == 2) & (csr.tick_cycles == 3))

    def _counters(self):
        m, s, csr = self.m, self.s, self.csr
        acks = s.responder.frame
        sender = {"frames_sent": "sent", "frames_resent": "resent", "nacks": "nacks"}
        sender |= {n: n for n in ("timeouts", "probes", "failures", "unopened", "limited", "stale")}
        receiver = {"messages_delivered": "delivered", "other_incarnation": "incarnation"}
        receiver |= {n: n for n in ("unknown", "duplicates", "out_of_order", "no_room", "marked")}
        events = {name: s.sender.events[event] for name, event in sender.items()}
        events |= {name: s.receiver.events[event] for name, event in receiver.items()}
        events |= {
            "messages_acked": s.sender.release_valid,
            "acks_sent": acks.valid & acks.ready,
            "oversize": s.ingress.oversize,
            "damaged": s.ingress.damaged,
            "foreign": s.parser.foreign,
            "corrupt": s.parser.corrupt,
            "malformed": s.parser.malformed,
            "ack_overflow": s.receiver.events.ack_overflow | s.responder.lost,
            "cnps": s.sender.cnp,
            "pfc_received": s.pfc_rx.received,
            "pfc_sent": s.pfc_tx.sent,
            "command_errors": s.commands.wrong,
        }
        assert set(events) == {register.name for register in COUNTERS}
        for name, event in events.items():
            count, past, was = getattr(csr, name), Signal(32, name=f"{name}_past"), Signal()
            m.d.sync += [past.eq(count), was.eq(event)]
            m.d.comb += Assert(Value.cast(count) == (past + was)[:32])
        m.d.comb += Cover((csr.nacks == 3) & (csr.stale == 1))


PROOFS = (
    Proof(
        name="ltl_engine",
        core="cores.ltl.engine.Ltl(2 channels, 3 connections), its parts anything",
        says="each input is the output or register that it should be; counters, time, thresholds",
        module="trebuchet.cores.ltl.engine",
        build=EngineProof,
        depth=2,
        cover_depth=9,
        mutants=(
            Mutant(
                "kills_by_frame",
                "framer.killed.eq(sender.pace_connection)",
                "framer.killed.eq(0)",
                2,
            ),
            Mutant(
                "no_hold_when_off",
                "sender.hold.eq(~csr.enable | paused)",
                "sender.hold.eq(paused)",
                2,
            ),
            Mutant("time_never_stops", "now.eq(now + self.csr.enable)", "now.eq(now + 1)", 6),
            Mutant("pauses_late", "level >= csr.pfc_xoff", "level > csr.pfc_xoff", 5),
            Mutant(
                "counts_another",
                '"duplicates": got.duplicates',
                '"duplicates": got.out_of_order',
                3,
            ),
            Mutant(
                "wrong_store_end",
                "read.addr.eq(framer.store_addr)",
                "read.addr.eq(ingress.addr)",
                2,
                context="write.en.eq(ingress.en)",
            ),
        ),
        assumes="nothing of the parts",
    ),
)
