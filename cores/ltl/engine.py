"""The LTL engine: messages in, messages out, frames between.

Sources: cloud-scale-acceleration, section V.A and figure 9; docs/network.md (LTL).
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from ..arbiter import PacketArbiter
from ..buffers import NO_COLLISIONS, StreamFifo
from ..csr import CsrSignature, fields
from ..stream import PacketSignature
from .commands import Commands
from .config import TIME_BITS, LtlConfig
from .deliver import Deliver
from .framer import Framer
from .ingress import Ingress
from .limiter import Limiter
from .parser import Parser
from .pfc import PfcReceiver, PfcSender
from .rate import PARAMETERS, RateControl
from .receive import Receiver
from .registers import LTL_BLOCK
from .respond import Responder
from .send import Sender

__all__ = ["Ltl"]


class Ltl(wiring.Component):
    """Reliable, ordered messages between boards over UDP/IPv4.

    ============  ==========  ==================================================================
    ``send``      In, array   messages of roles, one stream a virtual channel: a packet stream
                              whose beats carry ``connection``, an entry of the send table
    ``deliver``   Out, array  messages for roles, one stream a virtual channel, with the entry of
                              the receive table that they came by
    ``rx``        In          whole Ethernet frames without FCS; ``ready`` is always 1
    ``tx``        Out         the same
    ``mac``       In          this board's address, first byte on the wire in bits 7..0
    ``ip``        In          this board's address as a number
    ``csr``       In          :data:`~.registers.LTL_BLOCK`
    ``started``   Out         for one cycle: the first beat of a header is at ``tx`` (to measure)
    ``acked``     Out         for one cycle: a good ACK frame has been received (to measure)
    ============  ==========  ==================================================================

    A message of a connection is delivered once, in order and unchanged, or the connection fails,
    which ``csr.failure`` tells. How, and what is on the wire: docs/network.md.

    *Latency*: 20 cycles from a message's last beat to its header, 9 from a frame's last beat to
    its message. *Throughput*: with payloads of 8 beats and more ``tx`` never idles; ``rx`` takes
    a beat every cycle. *Back-pressure*: ``send`` waits while the store or the connection's window
    is full; ``deliver`` and ``tx`` may wait at will. *Reset*: all connections closed, ready after
    ``max(connections, slots)`` cycles. *Bad input*: every reason to drop has a counter.
    """

    def __init__(self, config=None):
        self.config = config = LtlConfig() if config is None else config
        message = stream.Signature(config.message_layout)
        super().__init__(
            {
                "send": In(message).array(config.vcs),
                "deliver": Out(message).array(config.vcs),
                "rx": In(PacketSignature(config.width)),
                "tx": Out(PacketSignature(config.width)),
                "mac": In(48),
                "ip": In(32),
                "csr": In(CsrSignature(LTL_BLOCK)),
                "started": Out(1),
                "acked": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, csr = self.config, self.csr
        m.submodules.ingress = ingress = Ingress(config)
        m.submodules.sender = sender = Sender(config)
        m.submodules.framer = framer = Framer(config)
        m.submodules.parser = parser = Parser(config)
        m.submodules.receiver = receiver = Receiver(config)
        m.submodules.deliver = deliver = Deliver(config)
        m.submodules.responder = responder = Responder(config)
        m.submodules.commands = commands = Commands(config)
        m.submodules.responses = responses = StreamFifo(config.response_layout, 16)
        for v in range(config.vcs):
            connect(m, flipped(self.send[v]), ingress.i[v])
            connect(m, ingress.commit[v], sender.commit[v])
            connect(m, deliver.o[v], flipped(self.deliver[v]))
            m.d.comb += receiver.level[v].eq(deliver.level[v])
        for a, b in (
            (receiver.response, responses.i),
            (responses.o, sender.response),
            (sender.frame, framer.frames),
            (responder.frame, framer.control),
            (receiver.request, responder.request),
            (deliver.done, responder.done),
            (commands.send, sender.command),
            (commands.receive, receiver.command),
            (commands.opened, responder.opened),
        ):
            connect(m, a, b)
        connect(m, flipped(self.rx), parser.rx)
        self._store(m, ingress, framer)
        for a, b, names in (
            (sender, ingress, "release release_valid"),
            (parser, receiver, "lookup about header body data last end good"),
            (receiver, deliver, "valid beat vc commit words connection"),
            (commands, framer, "peer_en peer_addr peer"),
        ):
            m.d.comb += [getattr(b, name).eq(getattr(a, name)) for name in names.split()]
        m.d.comb += [
            receiver.entry_addr.eq(responder.entry_addr),
            responder.entry.eq(receiver.entry),
            responder.total.eq(receiver.total),
            framer.kill.eq(sender.kill),
            framer.killed.eq(sender.pace_connection),
            parser.max_length.eq(config.max_message),
            self.started.eq(framer.started),
            self.acked.eq(responses.i.valid & responses.i.ready),
        ]
        for part in (parser, framer):
            m.d.comb += [part.mac.eq(self.mac), part.ip.eq(self.ip), part.port.eq(csr.port)]
        m.d.comb += framer.dscp.eq(csr.dscp)
        self._time(m, sender, receiver)
        paused, pause_counts = self._pause(m, framer, deliver)
        self._pace(m, sender)
        m.d.comb += [
            framer.paused.eq(paused),
            sender.hold.eq(~csr.enable | paused),
            sender.retries.eq(csr.retries),
        ]
        self._registers(m, commands, sender, ingress)
        self._count(m, ingress, sender, framer, parser, receiver, responder, commands)
        self._add_up(m, pause_counts)
        return m

    def _store(self, m, ingress, framer):
        """The unacknowledged-frame store."""
        config = self.config
        m.submodules.store = store = Memory(
            shape=config.width,
            depth=config.slots << config.slot_bits,
            init=[],
            attrs=NO_COLLISIONS,
        )
        write, read = store.write_port(), store.read_port()
        m.d.comb += [
            write.addr.eq(ingress.addr),
            write.data.eq(ingress.data),
            write.en.eq(ingress.en),
            read.addr.eq(framer.store_addr),
            read.en.eq(framer.store_en),
            framer.store_data.eq(read.data),
        ]

    def _time(self, m, sender, receiver):
        now, divider = Signal(TIME_BITS), Signal(16)
        self.now, self.divider = now, divider
        with m.If(divider >= self.csr.tick_cycles):
            m.d.sync += [divider.eq(1), now.eq(now + self.csr.enable)]
        with m.Else():
            m.d.sync += divider.eq(divider + 1)
        m.d.comb += [sender.now.eq(now), receiver.now.eq(now)]
        m.d.comb += receiver.cnp_interval.eq(self.csr.cnp_interval)

    def _registers(self, m, commands, sender, ingress):
        csr = self.csr
        failure = fields(csr, "failure")
        m.d.comb += [
            commands.command.eq(csr.command),
            commands.fields.incarnation.eq(csr.incarnation),
            commands.fields.rto.eq(csr.rto),
            commands.fields.vc.eq(csr.vc),
            commands.fields.credit.eq(csr.credit),
            commands.peer_fields.mac.eq(csr.peer_mac),
            commands.peer_fields.ip.eq(csr.peer_ip),
            commands.peer_fields.port.eq(csr.peer_port),
            commands.peer_fields.remote.eq(csr.peer_connection),
            commands.peer_fields.incarnation.eq(csr.incarnation),
            csr.busy.eq(commands.busy),
            failure.index.eq(sender.failure.payload),
            failure.valid.eq(sender.failure.valid),
            sender.failure.ready.eq(csr.failure_next),
            csr.stored.eq(ingress.used),
        ]

    def _count(self, m, ingress, sender, framer, parser, receiver, responder, commands):
        sent, got = sender.events, receiver.events
        ack_moves = responder.frame.valid & responder.frame.ready
        for name, event in {
            "frames_sent": sent.sent,
            "frames_resent": sent.resent,
            "messages_acked": sender.release_valid,
            "messages_delivered": got.delivered,
            "acks_sent": ack_moves,
            "nacks": sent.nacks,
            "timeouts": sent.timeouts,
            "probes": sent.probes,
            "failures": sent.failures,
            "oversize": ingress.oversize,
            "damaged": ingress.damaged,
            "unopened": sent.unopened,
            "limited": sent.limited,
            "foreign": parser.foreign,
            "corrupt": parser.corrupt,
            "malformed": parser.malformed,
            "unknown": got.unknown,
            "other_incarnation": got.incarnation,
            "stale": sent.stale,
            "duplicates": got.duplicates,
            "out_of_order": got.out_of_order,
            "no_room": got.no_room,
            "marked": got.marked,
            "ack_overflow": got.ack_overflow | responder.lost,
            "cnps": sender.cnp,
            "command_errors": commands.wrong,
        }.items():
            self._add_up(m, {name: event})

    def _add_up(self, m, events):
        for name, event in events.items():
            count = getattr(self.csr, name)
            m.d.sync += count.eq(count + event)

    def _pace(self, m, sender):
        """DC-QCN and the bandwidth limiter."""
        csr = self.csr
        m.submodules.rate = rate = RateControl(self.config)
        m.submodules.limiter = limiter = Limiter()
        for name in PARAMETERS:
            register = name if name.endswith(("ticks", "beats")) else f"rate_{name}"
            m.d.comb += rate.parameters[name].eq(getattr(csr, register))
        m.d.comb += [
            rate.enable.eq(csr.rate_control),
            rate.now.eq(sender.now),
            rate.connection.eq(sender.pace_connection),
            rate.start.eq(sender.pace_start),
            sender.pace_done.eq(rate.done),
            sender.pace_allow.eq(rate.allow),
            rate.spend.eq(sender.spend),
            rate.beats.eq(sender.spend_beats),
            rate.cnp.eq(sender.cnp),
            rate.opened.eq(sender.opened),
            rate.view.eq(csr.rate_view),
            csr.rate_now.eq(rate.rate),
            csr.alpha_now.eq(rate.alpha),
            limiter.rate.eq(csr.limit_rate),
            limiter.minimum.eq(csr.limit_minimum),
            limiter.slope.eq(csr.limit_slope),
            sender.drop.eq(limiter.drop),
            limiter.spend.eq(sender.spend),
            limiter.beats.eq(sender.spend_beats),
        ]

    def _pause(self, m, framer, deliver):
        """PFC both ways; returns whether we are paused, and events to count."""
        csr, width = self.csr, self.config.width
        m.submodules.pfc_rx = receiver = PfcReceiver(width)
        m.submodules.pfc_tx = sender = PfcSender(width)
        m.submodules.arbiter = arbiter = PacketArbiter(width, 2)
        connect(m, framer.tx, arbiter.i[0])
        connect(m, sender.o, arbiter.i[1])
        connect(m, arbiter.o, flipped(self.tx))
        for part in (receiver, sender):
            m.d.comb += [part.priority.eq(csr.pfc_class), part.quantum.eq(csr.pfc_quantum)]
        m.d.comb += [
            receiver.valid.eq(self.rx.valid & self.rx.ready),
            receiver.beat.eq(self.rx.payload),
            sender.mac.eq(self.mac),
        ]
        above, below = Signal(self.config.vcs), Signal(self.config.vcs)
        m.d.sync += [
            above.eq(Cat(level >= csr.pfc_xoff for level in deliver.level)),
            below.eq(Cat(level < csr.pfc_xon for level in deliver.level)),
        ]
        with m.If(~fields(csr, "pfc").send | below.all()):
            m.d.sync += sender.xoff.eq(0)
        with m.Elif(above.any()):
            m.d.sync += sender.xoff.eq(1)
        paused = receiver.paused & fields(csr, "pfc").obey
        m.d.comb += csr.paused.eq(paused)
        return paused, {"pfc_received": receiver.received, "pfc_sent": sender.sent}
