"""The LTL engine: messages in, messages out, frames between.

Sources: cloud-scale-acceleration, section V.A and figure 9; docs/network.md (LTL).
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from ..buffers import NO_COLLISIONS, StreamFifo
from ..csr import CsrSignature
from ..stream import PacketSignature
from .commands import Commands
from .config import TIME_BITS, LtlConfig
from .deliver import Deliver
from .framer import Framer
from .ingress import Ingress
from .parser import Parser
from .receive import Receiver
from .registers import LTL_BLOCK
from .respond import Responder
from .send import Sender

__all__ = ["Ltl"]


class Ltl(wiring.Component):
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
        connect(m, framer.tx, flipped(self.tx))
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
        pace = Signal(4)
        m.d.sync += pace.eq(Cat(sender.pace_start, pace))
        m.d.comb += [sender.pace_done.eq(pace[2]), sender.pace_allow.eq(1)]
        m.d.comb += [sender.hold.eq(~csr.enable), sender.retries.eq(csr.retries)]
        self._registers(m, commands, sender, ingress)
        self._count(m, ingress, sender, framer, parser, receiver, responder, commands)
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
        with m.If(divider >= self.csr.tick_cycles):
            m.d.sync += [divider.eq(1), now.eq(now + self.csr.enable)]
        with m.Else():
            m.d.sync += divider.eq(divider + 1)
        m.d.comb += [sender.now.eq(now), receiver.now.eq(now)]

    def _registers(self, m, commands, sender, ingress):
        csr = self.csr
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
            csr.failure[:16].eq(sender.failure.payload),
            csr.failure[16].eq(sender.failure.valid),
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
            count = getattr(self.csr, name)
            m.d.sync += count.eq(count + event)
