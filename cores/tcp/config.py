"""Parameters of the TCP engine: one dataclass, with presets."""

from dataclasses import dataclass, replace

from ..memory import ADDR_WIDTH
from ..stream import check_data_width
from .estimator import CONGESTION
from .index_layout import IndexLayout
from .service import SESSION_WIDTH

__all__ = ["FULL", "SMALL", "TINY", "TcpConfig"]


def _check(ok, what, expected, value):
    if not ok:
        raise ValueError(f"{what} must be {expected}, not {value!r}")


@dataclass(frozen=True)
class TcpConfig:
    """What is fixed when a :class:`~trebuchet.cores.tcp.engine.TcpEngine` is built.

    All times are in ticks (milliseconds of protocol time). Those marked (csr) are only the reset
    values of registers.

    Attributes
    ----------
    width, tag_width : int
        Data path and memory tags, as in the stream and memory contracts.
    sessions : int
        Session slots, a power of two, at least 2. Of 131,072 the last is not used.
    ports : tuple of int
        Local TCP port of each service port (csr); its length is the number of service ports.
    segments : int or None
        Segments in the receive pool; None: one a session.
    segment_log2 : int
        Bytes of a pool segment, as a power of two, 9 to 17 (20 with ``scaling``). The window is
        never larger than it.
    max_window : int
        Nor than this, 1024 to 65535, unless it is scaled. In a segment larger than the window its
        edge moves with what arrives, not only with what is consumed
        (:class:`~trebuchet.cores.tcp.window.WindowEdge`).
    scaling : bool
        Windows are scaled (RFC 7323) if the peer scales them, too: ours so far that the whole
        segment can be announced, the peer's so that up to 2 MiB may be under way to it.
    runs : int
        Runs of bytes a session keeps while something before them is missing, 1 to 4
        (:mod:`~trebuchet.cores.tcp.reassembly`).
    sack : bool
        ACKs tell peers that permit it which runs are kept (RFC 2018). With one run, what they tell
        may be given up for a nearer one, which a peer finds out by a time-out (RFC 2018, 8).
    pool_base : int
        Address of the pool, a multiple of the segment size.
    mss : int
        Largest payload sent and announced, 536 to 1460.
    rx_buffer : int
        Bytes of the parser's payload buffer, a power of two: what comes while the memory is busy
        waits there. No longer payload reaches the engine. It also sets :attr:`rx_segments`.
    half_open : int or None
        Sessions that may be in SYN-RCVD at once (csr); None: three quarters of what one service can
        have beside the reserves of the others, so that a flood leaves room for those established.
    reserve : int or None
        Session slots reserved for each service (csr), all together not more than there are; None:
        a quarter of all, divided by the services, at most 8 each
        (:class:`~trebuchet.cores.tcp.admission.Admission`).
    evict_idle : int
        Ticks that a session must have been idle for to be ended when a service is refused a slot
        (csr); 0: none is ended (:class:`~trebuchet.cores.tcp.evict.Evictor`).
    wheel : int
        Slots of the timer wheel, a power of two. Time-outs are exact to a tick as long as
        ``rto_min`` and the other times are not shorter than this.
    rto_min, rto_initial, rto_max : int
        Bounds of the retransmission time-out (RFC 6298); the first two csr.
    syn_retries, retries, keepalive_retries : int
        Expiries without an answer before a session is given up (csr), 1 to 15.
    keepalive_idle, keepalive_interval : int
        Silence before the first keep-alive probe and between probes (csr).
    user_timeout : int
        Longest time that data may wait without any progress (csr).
    time_wait : int
        Length of TIME-WAIT (csr).
    ack_delay : int
        Longest time that an ACK waits for a second segment or for data to go with, 0 to 500
        (RFC 9293, 3.8.6.3); 0: none waits.
    congestion : str
        Congestion control: ``"newreno"`` or, for links shared with nobody, ``"fixed"``
        (:mod:`~trebuchet.cores.tcp.estimator`).
    active : bool
        Connections can also be opened from this side (:mod:`~trebuchet.cores.tcp.connect`).
    icmp : bool
        ICMP errors are heeded: the MSS follows the path's MTU, and a port that is unreachable ends
        an attempt to connect (:mod:`~trebuchet.cores.tcp.icmp_error`).
    cookies : bool
        When no more handshakes may be under way, a SYN is answered by a SYN cookie instead of
        nothing (:mod:`~trebuchet.cores.tcp.cookie`).
    vlan : bool
        Frames with a VLAN tag are taken, and a session's go out with the tag of the segment that
        made it: its SYN, or the ACK of a cookie (:mod:`~trebuchet.cores.net.vlan`).
    inspect : bool
        Software can look at each session (:mod:`~trebuchet.cores.tcp.inspect`).
    trace : bool
        Where it is simulated, the engine prints what happens (:mod:`~trebuchet.cores.tcp.trace`).
    cache : int or None
        Sessions whose records are on chip at a time, a power of two; all others are in external
        memory (:mod:`~trebuchet.cores.tcp.cached`). None: all are in block RAM.
    places : int or None
        Sessions that each service can be at work for at a time, a power of two from 2 to
        ``sessions``: only they have rows in the services' tables
        (:mod:`~trebuchet.cores.tcp.service`, "Places"). None: services have a row for each session.
    state_base : int
        Address of the sessions' state in external memory, a multiple of 128: :attr:`state_size`
        bytes.
    isn_key : int
        128-bit key of the initial sequence numbers (csr); firmware writes a random one.
    isn_start : int
        Initial value of the clock that is added to them.
    counter_width : int
        Bits of an event counter.
    lut_ram : int
        Bits up to which a list of numbers, or the heads of one, lies in LUT RAM. As LUT RAM 64
        places of six bits are 50 LUTs; where block RAMs are scarce, say more.
    programmable : bool
        Those marked (csr) can be written. If not, their registers only tell the values, which
        saves registers, wires and the upper halves of many comparisons.
    """

    width: int = 32
    tag_width: int = 2
    sessions: int = 64
    ports: tuple[int, ...] = (7, 9, 80, 8000)
    segments: int | None = None
    segment_log2: int = 15
    max_window: int = 65535
    scaling: bool = False
    runs: int = 1
    sack: bool = False
    pool_base: int = 0
    mss: int = 1460
    rx_buffer: int = 4096
    half_open: int | None = None
    reserve: int | None = None
    evict_idle: int = 2_000
    wheel: int = 128
    rto_min: int = 200
    rto_initial: int = 1000
    rto_max: int = 60_000
    syn_retries: int = 5
    retries: int = 8
    keepalive_retries: int = 5
    keepalive_idle: int = 60_000
    keepalive_interval: int = 5_000
    user_timeout: int = 120_000
    time_wait: int = 1_000
    ack_delay: int = 0
    congestion: str = "newreno"
    isn_key: int = 0x0F0E0D0C_0B0A0908_07060504_03020100
    isn_start: int = 0
    counter_width: int = 32
    lut_ram: int = 256
    programmable: bool = True
    active: bool = False
    icmp: bool = False
    cookies: bool = False
    vlan: bool = False
    inspect: bool = False
    trace: bool = False
    cache: int | None = None
    places: int | None = None
    state_base: int = 0

    def __post_init__(self):
        check_data_width(self.width)
        n = self.sessions
        most = 1 << (SESSION_WIDTH if self.cache else SESSION_WIDTH - 1)
        _check(
            isinstance(n, int) and 2 <= n <= most and not n & (n - 1),
            "Number of sessions",
            f"a power of two from 2 to {most}",
            n,
        )
        c = self.cache
        _check(
            c is None or (isinstance(c, int) and 2 <= c <= n >= 8 and not c & (c - 1)),
            "Number of cached sessions",
            f"a power of two from 2 to {n}, of at least 8 sessions, or None",
            c,
        )
        p = self.places
        _check(
            p is None or (isinstance(p, int) and 2 <= p <= n and not p & (p - 1)),
            "Number of places",
            f"a power of two from 2 to {n}, or None",
            p,
        )
        _check(
            self.state_base % 128 == 0
            and 0 <= self.state_base <= (1 << ADDR_WIDTH) - self.state_size,
            "State base",
            "a multiple of 128 with the state inside the memory",
            self.state_base,
        )
        _check(1 <= len(self.ports) <= 8, "Number of services", "1 to 8", len(self.ports))
        for port in self.ports:
            _check(0 <= port < 1 << 16, "Port", "0 to 65535", port)
        _check(1 <= self.pool_segments <= n, "Number of segments", f"1 to {n}", self.segments)
        largest = 20 if self.scaling else 17
        allowed = f"2**9 to 2**{largest}"
        _check(9 <= self.segment_log2 <= largest, "Segment size", allowed, self.segment_log2)
        _check(1024 <= self.max_window <= 65535, "Largest window", "1024 to 65535", self.max_window)
        _check(
            self.pool_base % self.segment_size == 0
            and 0 <= self.pool_base <= (1 << ADDR_WIDTH) - self.pool_size,
            "Pool base",
            f"a multiple of {self.segment_size} with the pool inside the memory",
            self.pool_base,
        )
        _check(1 <= self.runs <= 4, "Kept runs", "1 to 4", self.runs)
        _check(536 <= self.mss <= 1460, "MSS", "536 to 1460", self.mss)
        _check(
            2048 <= self.rx_buffer <= 32768 and not self.rx_buffer & (self.rx_buffer - 1),
            "Receive buffer",
            "a power of two from 2048 to 32768",
            self.rx_buffer,
        )
        _check(1 <= self.half_open_limit <= n, "Half-open limit", f"1 to {n}", self.half_open)
        most = n // len(self.ports)
        _check(0 <= self.reserved <= most, "Reserve of a service", f"0 to {most}", self.reserve)
        _check(
            4 <= self.wheel <= 4096 and not self.wheel & (self.wheel - 1),
            "Wheel size",
            "a power of two from 4 to 4096",
            self.wheel,
        )
        for name in ("rto_min", "rto_initial", "rto_max"):
            _check(1 <= getattr(self, name) < 1 << 16, name, "1 to 65535", getattr(self, name))
        for name in ("syn_retries", "retries", "keepalive_retries"):
            _check(1 <= getattr(self, name) <= 15, name, "1 to 15", getattr(self, name))
        for name in ("keepalive_idle", "keepalive_interval", "user_timeout", "time_wait"):
            _check(1 <= getattr(self, name) < 1 << 22, name, "1 to 2**22 - 1", getattr(self, name))
        _check(0 <= self.evict_idle < 1 << 22, "evict_idle", "0 to 2**22 - 1", self.evict_idle)
        names = " or ".join(CONGESTION)
        _check(self.congestion in CONGESTION, "Congestion control", names, self.congestion)
        allowed = "0 with a cache" if self.cache else "0 to 500 ticks"  # its wheels know no `near`
        _check(
            0 <= self.ack_delay <= (0 if self.cache else 500), "ACK delay", allowed, self.ack_delay
        )
        _check(0 <= self.isn_key < 1 << 128, "ISN key", "a 128-bit integer", self.isn_key)
        _check(0 <= self.isn_start < 1 << 32, "ISN start", "a 32-bit integer", self.isn_start)
        _check(8 <= self.counter_width <= 32, "Counter width", "8 to 32", self.counter_width)
        _check(0 <= self.lut_ram <= 65536, "LUT RAM", "0 to 65536 bits", self.lut_ram)

    @property
    def session_bits(self):
        """Bits of a session number inside the engine."""
        return (self.sessions - 1).bit_length()

    @property
    def rows(self):
        """Numbers by which a service calls its sessions: their places, or their own."""
        return self.places or self.sessions

    @property
    def place_width(self):
        """Bits of the number of a place at a service."""
        return (self.places - 1).bit_length()

    @property
    def pool_segments(self):
        """Segments in the receive pool."""
        return self.sessions if self.segments is None else self.segments

    @property
    def half_open_limit(self):
        """Sessions that may be in SYN-RCVD at once, after reset."""
        if self.half_open is not None:
            return self.half_open
        return max(1, self.per_service * 3 // 4)

    @property
    def per_service(self):
        """Sessions that one service can have beside the reserves of the others, after reset."""
        return self.sessions - self.reserved * (len(self.ports) - 1)

    @property
    def usable(self):
        """Sessions that there can be: of 131,072 the last number stands for none."""
        return self.sessions - (self.session_bits == SESSION_WIDTH)

    @property
    def reserved(self):
        """Session slots reserved for each service, after reset."""
        if self.reserve is not None:
            return self.reserve
        return min(8, self.sessions // (4 * len(self.ports)))

    @property
    def payload_bits(self):
        """Bits of the length of a received payload."""
        return self.rx_buffer.bit_length()

    @property
    def rx_segments(self):
        """Received segments that may wait at the parser: one for each 256 bytes of its buffer.

        Many clients that open or close at once send bursts of segments without a payload. The
        queue is so wide that up to 512 places take the same block RAMs as 16.
        """
        return max(16, self.rx_buffer // 256)

    @property
    def segment_bits(self):
        """Bits of a pool segment's number."""
        return max(1, (self.pool_segments - 1).bit_length())

    @property
    def segment_size(self):
        """Bytes of one pool segment."""
        return 1 << self.segment_log2

    @property
    def pool_size(self):
        """Bytes of the receive pool, from :attr:`pool_base` on."""
        return self.pool_segments << self.segment_log2

    @property
    def state_size(self):
        """Bytes of the sessions' state, from :attr:`state_base` on (``line.py``)."""
        if self.cache is None:
            return 0
        layout = IndexLayout(self.sessions, self.index_base)
        numbers = self.sessions * self.width // 8
        return self.index_base + -(-layout.size // 64) * 64 + numbers - self.state_base

    @property
    def state_tag_width(self):
        """Tag bits of the memory port of the sessions' state, whose four users have one arbiter."""
        return max(2, self.tag_width) + 2 if self.cache else 0

    @property
    def list_count(self):
        """Lists of sessions: active, recycle, one for the events of each service."""
        return 2 + len(self.ports)

    @property
    def lists_base(self):
        """Address of the lists' middles, behind the records."""
        return self.state_base + 192 * self.sessions

    @property
    def wheels_base(self):
        """Address of the timer wheels' links, behind the lists."""
        return self.lists_base + 4 * self.list_count * self.sessions

    @property
    def index_base(self):
        """Address of the session index and the free numbers, behind the wheels."""
        return -(-(self.wheels_base + 8 * self.sessions) // 64) * 64

    @property
    def window(self):
        """Largest window announced, in bytes, if it is not scaled."""
        return min(self.segment_size, self.max_window)

    @property
    def shift(self):
        """Of the windows that we announce to a peer that scales them, too (RFC 7323, 2.3): so
        large that 15 bits say the whole segment."""
        return max(0, self.segment_log2 - 15) if self.scaling else 0

    @property
    def window_bits(self):
        """Bits that hold a window, ours or the peer's, and the bytes under way."""
        return 22 if self.scaling else 17

    @property
    def place_bits(self):
        """Low bits of a sequence number that tell places of one window, or two segments beside
        it, apart."""
        return self.window_bits + 1

    @property
    def sliding(self):
        """A segment holds more than a window: the edge moves with what arrives, too."""
        return self.segment_size > self.window

    @property
    def unread(self):
        """Bytes certain to come while none is consumed. Of a segment no larger than a window the
        last ones may stay closed, since the window opens by :attr:`update` or not at all; and those
        that a shifted window cannot say."""
        if self.sliding:
            return self.segment_size - (1 << self.shift) + 1
        return self.segment_size - self.update

    @property
    def update(self):
        """Bytes the window must be able to grow by to be announced (RFC 9293, 3.8.6.2.2)."""
        return min(self.mss, self.window // 2)


#: 64 sessions in block RAM.
TINY = TcpConfig()
#: 1,024 sessions in block RAM, for a data path of 64 bits.
SMALL = replace(TINY, width=64, sessions=1024, rx_buffer=32768, runs=4, sack=True)
#: 131,072 sessions in external memory, of which 1,024 at work are on chip.
FULL = replace(SMALL, sessions=131072, cache=1024, segments=1024, cookies=True, vlan=True)
