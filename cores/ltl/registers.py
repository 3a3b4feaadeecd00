"""Registers of the LTL engine; docs/network.md says how connections are set up with them."""

from ..csr import Field, Register, RegisterBlock, counter
from .config import UDP_PORT

__all__ = ["COUNTERS", "LTL_BLOCK"]

COUNTERS = (
    counter("frames_sent", "DATA frames sent, repeated ones included"),
    counter("frames_resent", "DATA frames sent again"),
    counter("messages_acked", "messages that a peer has acknowledged, or whose connection is gone"),
    counter("messages_delivered", "messages handed to an output"),
    counter("acks_sent", "ACK frames sent"),
    counter("nacks", "NACKs that made a connection send again"),
    counter("timeouts", "time-outs of connections"),
    counter("probes", "PROBE frames sent to peers without credit"),
    counter("failures", "connections that failed"),
    counter("oversize", "messages of roles that were too long, dropped"),
    counter("damaged", "messages of roles with an error mark, dropped"),
    counter("unopened", "messages of roles for a connection that is not open, dropped"),
    counter("limited", "DATA frames that the bandwidth limiter dropped"),
    counter("foreign", "received frames that are no LTL frames for us, dropped"),
    counter("corrupt", "received frames with MAC error, wrong IPv4 checksum or CRC, dropped"),
    counter("malformed", "received frames of wrong version, kind or length, dropped"),
    counter("unknown", "received frames for a connection that is not open, dropped"),
    counter("other_incarnation", "received frames of another incarnation of a connection, dropped"),
    counter("stale", "ACK frames of closed connections, or for what was never sent, ignored"),
    counter("duplicates", "DATA frames that had been delivered before, dropped"),
    counter("out_of_order", "DATA frames that came too early, dropped"),
    counter("no_room", "DATA frames for which the output had no room, dropped"),
    counter("marked", "frames with the congestion experienced mark"),
    counter("ack_overflow", "received ACKs, or ACKs to be sent, dropped because too many waited"),
    counter("cnps", "congestion notifications received"),
    counter("pfc_received", "PFC frames received"),
    counter("pfc_sent", "PFC frames sent"),
    counter("command_errors", "commands with an index of no connection, ignored"),
)

LTL_BLOCK = RegisterBlock(
    "ltl",
    (
        Register("enable", "rw", 1, "1: send messages; 0: nothing new is sent, time stands still"),
        Register("port", "rw", 16, "UDP port, ours and in every received frame", UDP_PORT),
        Register("dscp", "rw", 6, "DSCP of every frame sent"),
        Register("tick_cycles", "rw", 16, "clock cycles of a timer tick", 156),
        Register("retries", "rw", 8, "time-outs in a row before the one that is a failure", 7),
        Register("peer_mac", "rw", 48, "other end of a connection: MAC address, first byte lowest"),
        Register("peer_ip", "rw", 32, "its IPv4 address"),
        Register("peer_port", "rw", 16, "its UDP port", UDP_PORT),
        Register("peer_connection", "rw", 16, "its number for the connection"),
        Register("incarnation", "rw", 16, "of the connection; never the same twice in a row"),
        Register("rto", "rw", 16, "time-out of a send connection in ticks", 50),
        Register("vc", "rw", 8, "output of a receive connection"),
        Register(
            "credit",
            "rw",
            8,
            "messages that may wait in a receive connection's output buffer; of a send connection: "
            "that value at the other end",
            4,
        ),
        Register(
            "command",
            "stb",
            32,
            "opens or closes an entry of a table, with the registers above",
            0,
            (
                Field("go", 0, 1, "must be 1"),
                Field("open", 1, 1, "1: open, 0: close"),
                Field("receive", 2, 1, "1: receive table, 0: send table"),
                Field("index", 16, 16, "entry"),
            ),
        ),
        Register("busy", "ro", 1, "a command is under way; do not write another"),
        Register(
            "failure",
            "ro",
            17,
            "the next connection that failed",
            0,
            (Field("index", 0, 16), Field("valid", 16, 1)),
        ),
        Register("failure_next", "stb", 1, "1: it has been read"),
        Register("stored", "ro", 16, "messages in the unacknowledged-frame store"),
        *COUNTERS,
    ),
    "low-latency transport between boards",
)
