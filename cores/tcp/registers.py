"""The TCP engine's register block, and its programmable part as one struct."""

from amaranth import unsigned
from amaranth.lib import data

from ..csr import Register, RegisterBlock
from .connect import connect_registers
from .inspect import inspect_registers

__all__ = ["COOKIE_COUNTERS", "COUNTERS", "ICMP_COUNTERS", "counters", "programmable"]
__all__ += ["settings_layout", "tcp_block"]

#: Event counters: name and description. Engines raise strobes of these names.
COUNTERS = {
    "syn_rx": "SYN segments received",
    "accepted": "sessions made",
    "established": "handshakes completed",
    "refused_full": "SYNs dropped because every session was taken or reserved",
    "refused_half_open": "SYNs dropped because too many handshakes were under way",
    "unknown": "segments for no session and no listening port",
    "rst_rx": "sessions reset by the peer",
    "rst_tx": "RST segments sent",
    "retransmits": "segments sent again",
    "rto": "retransmission time-outs",
    "fast_retransmits": "fast retransmissions begun",
    "dup": "segments with nothing new",
    "out_of_order": "segments dropped because something before them is missing",
    "kept": "segments kept although something before them is missing",
    "out_of_window": "segments dropped because they, or their ACK, lie outside the window",
    "challenge_acks": "challenge ACKs (RFC 5961)",
    "zero_window_probes": "probes of a closed window sent",
    "keepalive_probes": "keep-alive probes sent",
    "timeouts": "sessions given up because the peer did not answer",
    "time_wait_reused": "TIME-WAIT sessions replaced by a newer SYN, or recycled early",
    "tx_overrun": "sessions aborted because a service broke the transmit contract",
    "service_errors": "transmit or free requests for a session that is not the service's",
    "pool_dry": "payloads dropped because no pool segment was free",
    "aborts": "sessions aborted by their service or by abort_all",
    "evicted": "sessions ended, longest idle first, because a service was refused one",
}
#: Those of an engine that heeds ICMP errors. The first three are of sessions that they belong to.
ICMP_COUNTERS = {
    "icmp_mss": "ICMP errors that lowered the MSS of a session",
    "icmp_aborts": "ICMP errors that ended an attempt to connect",
    "icmp_soft": "ICMP errors that changed nothing",
    "icmp_ignored": "ICMP errors of no session, or of nothing that is under way",
}
#: Those of an engine that sends SYN cookies. What one stands for is not a SYN that was dropped.
COOKIE_COUNTERS = {
    "cookies_sent": "SYNs answered by a cookie",
    "cookies_taken": "sessions made of a cookie that came back",
}
#: Those of an engine whose services have places.
PLACE_COUNTERS = {"places_short": "times that a session had to wait for a place at its service"}


def counters(config):
    """The event counters of an engine: name and description."""
    more = ICMP_COUNTERS if config.icmp else {}
    more = more | PLACE_COUNTERS if config.places else more
    return COUNTERS | more | (COOKIE_COUNTERS if config.cookies else {})


def programmable(config):
    """Width, value after reset and description of each register that ``config`` gives a value."""
    slots = min(17, config.sessions.bit_length())
    return {
        "rto_min": (16, config.rto_min, "smallest retransmission time-out, ticks"),
        "rto_initial": (16, config.rto_initial, "retransmission time-out before any sample"),
        "syn_retries": (4, config.syn_retries, "SYN-ACK retransmissions before giving up"),
        "retries": (4, config.retries, "time-outs in a row before giving up"),
        "keepalive_retries": (4, config.keepalive_retries, "keep-alive probes before giving up"),
        "keepalive_idle": (22, config.keepalive_idle, "silence before a keep-alive probe, ticks"),
        "keepalive_interval": (22, config.keepalive_interval, "time between probes, ticks"),
        "user_timeout": (22, config.user_timeout, "longest time without progress, ticks"),
        "time_wait": (22, config.time_wait, "length of TIME-WAIT, ticks"),
        "half_open_limit": (17, config.half_open_limit, "sessions that may be in SYN-RCVD"),
        "evict_idle": (22, config.evict_idle, "idle time after which a session may be ended"),
        **{
            f"reserve_{k}": (slots, config.reserved, f"session slots reserved for service {k}")
            for k in range(len(config.ports))
        },
        **{
            f"port_{k}": (16, port, f"local TCP port of service {k}")
            for k, port in enumerate(config.ports)
        },
    }


def tcp_block(config):
    """The register block ``"tcp"``."""
    n = len(config.ports)
    registers = [
        Register("enable", "rw", 1, "1: new connections are accepted; 0: drain", reset=1),
        Register("abort_all", "rw", 1, "1: every session is reset, one after the other"),
        Register("listen", "rw", n, "a bit per service: its port is open", reset=(1 << n) - 1),
        Register("services", "ro", 8, "number of service ports"),
        Register("idle", "ro", 1, "1: no session, nothing under way"),
        Register("sessions", "ro", 32, "session slots"),
        Register("sessions_used", "ro", 32, "session slots in use"),
        *(
            Register(f"used_{k}", "ro", 32, f"session slots in use by service {k}")
            for k in range(n)
        ),
        *(
            Register(f"places_free_{k}", "ro", 32, f"free places at service {k}")
            for k in range(n if config.places else 0)
        ),
        *(
            [Register("sessions_high", "ro", 32, "no session from this number on was ever used")]
            if config.cache
            else []
        ),
        Register("half_open", "ro", 32, "sessions in SYN-RCVD"),
        Register("segments_free", "ro", 32, "free segments of the receive pool"),
        Register("descriptors_free", "ro", 32, "free transmit descriptors"),
    ]
    registers += [
        Register(name, "rw", width, description, reset=reset)
        if config.programmable
        else Register(name, "ro", width, description)
        for name, (width, reset, description) in programmable(config).items()
    ]
    registers += [
        Register(
            f"isn_key_{k}",
            "rw",
            32,
            "secret key of initial sequence numbers; write random bits at start",
            reset=config.isn_key >> 32 * k & 0xFFFFFFFF,
        )
        for k in range(4)
    ]
    registers += connect_registers(config) + inspect_registers(config)
    registers += [
        Register(name, "ro", config.counter_width, description)
        for name, description in counters(config).items()
    ]
    return RegisterBlock("tcp", tuple(registers), "TCP offload engine")


def settings_layout(config):
    """Struct of the programmable registers, as the engines see them."""
    fields = {"enable": 1, "abort_all": 1, "listen": len(config.ports)}
    fields |= {name: width for name, (width, _, _) in programmable(config).items()}
    return data.StructLayout({name: unsigned(width) for name, width in fields.items()})
