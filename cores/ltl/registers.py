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
        Register("rto", "rw", 16, "time-out of a send connection in ticks, at most 32767", 50),
        Register("vc", "rw", 8, "output of a receive connection"),
        Register(
            "credit",
            "rw",
            8,
            "messages that may wait in a receive connection's output buffer; of a send connection: "
            "what may be sent before the first answer",
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
        Register("cnp_interval", "rw", 16, "ticks between two CNPs of a connection, at least", 50),
        Register("rate_control", "rw", 1, "1: DC-QCN sets the pace of send connections"),
        Register(
            "rate_line", "rw", 16, "the line rate, like all rates in 1/65536 beat a cycle", 65535
        ),
        Register("rate_minimum", "rw", 16, "no connection becomes slower", 65),
        Register("rate_additive", "rw", 16, "R_AI", 65),
        Register("rate_hyper", "rw", 16, "R_HAI", 325),
        Register("rate_gain", "rw", 4, "g = 2 ** -gain", 8),
        Register("alpha_ticks", "rw", 16, "period of the timer of alpha", 55),
        Register("rate_ticks", "rw", 16, "period of the timer of increase", 60),
        Register("rate_beats", "rw", 24, "beats after which the byte counter expires", 312500),
        Register("rate_recovery", "rw", 4, "F, stages of fast recovery", 5),
        Register("rate_view", "rw", 16, "send connection whose rate the next two show"),
        Register("rate_now", "ro", 16, "its current rate R_C"),
        Register("alpha_now", "ro", 16, "its alpha, in 1/65536"),
        Register("limit_rate", "rw", 16, "bandwidth limit of all DATA frames; 0: none"),
        Register(
            "limit_minimum", "rw", 16, "beats beyond it from which on frames are dropped", 256
        ),
        Register("limit_slope", "rw", 4, "chance of a drop is beats above * 2 ** slope / 65536", 5),
        Register(
            "pfc",
            "rw",
            2,
            "priority flow control",
            0,
            (Field("obey", 0, 1, "pauses of our class"), Field("send", 1, 1, "pauses to others")),
        ),
        Register("pfc_class", "rw", 3, "class of all LTL frames", 3),
        Register("pfc_quantum", "rw", 8, "clock cycles of 512 bit times", 8),
        Register(
            "pfc_xoff", "rw", 16, "beats in an output's buffer at which to ask for a pause", 1536
        ),
        Register("pfc_xon", "rw", 16, "beats in every output's buffer below which it ends", 1024),
        Register("paused", "ro", 1, "our class is paused"),
        Register("stored", "ro", 16, "messages in the unacknowledged-frame store"),
        *COUNTERS,
    ),
    "low-latency transport between boards",
)
