"""Carries out the register block's commands: opens and closes connections."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Commands"]


class Commands(wiring.Component):
    """One command at a time, to all who keep a table.

    ================  ====  ====================================================================
    ``command``       In    the register of that name
    ``fields``        In    entry for the send or the receive table
    ``peer_fields``   In    the other end
    ``send``          Out   for the sender
    ``receive``       Out   for the receiver
    ``opened``        Out   receive connections that were opened, for the responder
    ``peer_en`` …     Out   for the framer
    ``busy``          Out   a command is under way; another one now is lost
    ``wrong``         Out   for one cycle: the index was of no connection, nothing was done
    ================  ====  ====================================================================

    A command takes some cycles, or until the frame that comes in has ended. Registers must not
    change while ``busy``. *Reset*: nothing under way.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "command": In(32),
                "fields": In(config.command_layout),
                "peer_fields": In(config.peer_layout),
                "send": Out(stream.Signature(config.command_layout)),
                "receive": Out(stream.Signature(config.command_layout)),
                "opened": Out(stream.Signature(config.connection_layout)),
                "peer_en": Out(1),
                "peer_addr": Out(config.connection_layout.width + 1),
                "peer": Out(config.peer_layout),
                "busy": Out(1),
                "wrong": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        self.held = held = Signal(32)
        index = held[16:]
        ports = (self.send, self.receive, self.opened)
        for port in ports:
            with m.If(port.ready):
                m.d.sync += port.valid.eq(0)
        for port in (self.send, self.receive):
            m.d.comb += [
                port.payload.eq(self.fields),
                port.payload.open.eq(held[1]),
                port.payload.connection.eq(index),
            ]
        m.d.comb += [
            self.opened.payload.eq(index),
            self.peer.eq(self.peer_fields),
            self.peer_addr.eq(Cat(index[: config.connection_layout.width], held[2])),
        ]
        with m.FSM(name="commands") as self.fsm:
            m.d.comb += self.busy.eq(~self.fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.sync += held.eq(self.command)
                with m.If(self.command[0]):
                    m.next = "START"
            with m.State("START"):
                m.next = "WAIT"
                with m.If(index >= config.connections):
                    m.d.comb += self.wrong.eq(1)
                    m.next = "IDLE"
                with m.Else():
                    m.d.comb += self.peer_en.eq(held[1])
                    m.d.sync += [
                        self.send.valid.eq(~held[2]),
                        self.receive.valid.eq(held[2]),
                        self.opened.valid.eq(held[2] & held[1]),
                    ]
            with m.State("WAIT"):
                with m.If(~Cat(port.valid for port in ports).any()):
                    m.next = "IDLE"
        return m
