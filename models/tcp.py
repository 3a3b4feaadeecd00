"""Naive models of the TCP engine's arithmetic."""

from dataclasses import dataclass

__all__ = [
    "COOKIE_SIZES",
    "RttState",
    "after",
    "cookie_mss",
    "rtt_update",
    "speck64_128",
    "syn_cookie",
]

_M32 = (1 << 32) - 1

#: What a SYN cookie can say of the peer's MSS.
COOKIE_SIZES = (536, 1220, 1440, 1460)


def after(a, b):
    """Whether sequence number ``a`` comes after ``b`` (RFC 9293, 3.4: modulo 2**32)."""
    return 0 < (a - b) & _M32 < 1 << 31


@dataclass(frozen=True)
class RttState:
    """Estimates of RFC 6298 in ticks: SRTT times 8, RTTVAR times 4; None before any sample."""

    srtt8: int | None = None
    rttvar4: int | None = None

    def rto(self, minimum, initial, maximum):
        """Retransmission time-out (RFC 6298, 2) for a clock granularity of one tick."""
        if self.srtt8 is None or self.rttvar4 is None:
            return initial
        return min(max(self.srtt8 // 8 + max(1, self.rttvar4), minimum), maximum)


def rtt_update(state, sample):
    """State after a round trip of ``sample`` ticks, gains 1/8 and 1/4 (RFC 6298, 2.2 and 2.3)."""
    if state.srtt8 is None:
        return RttState(8 * sample, 2 * sample)
    error = sample - state.srtt8 // 8
    return RttState(state.srtt8 + error, state.rttvar4 - state.rttvar4 // 4 + abs(error))


def _rotate(value, count):
    return (value << count | value >> (32 - count)) & _M32


def speck64_128(block, key, rounds=27):
    """Speck64/128 (ePrint 2013/404, section 4): 64-bit ``block``, 128-bit ``key``, as integers."""
    x, y = block >> 32, block & _M32
    k, *l = ((key >> 32 * i) & _M32 for i in range(4))
    for i in range(rounds):
        x = ((_rotate(x, 24) + y) & _M32) ^ k
        y = _rotate(y, 3) ^ x
        l.append(((_rotate(l[i], 24) + k) & _M32) ^ i)
        k = _rotate(k, 3) ^ l[-1]
    return x << 32 | y


def syn_cookie(key, ip, port, service, slot, mss, first):
    """The sequence number that stands for a SYN (RFC 4987, 3.6); ``mss`` 536 at least.

    ``first``: the peer's sequence number behind its SYN.
    """
    block = ip << 32 | port << 16 | service << 13 | slot % (1 << 13)
    size = max(k for k, least in enumerate(COOKIE_SIZES) if mss >= least)
    mixed = speck64_128(block, key) ^ first ^ first % 32 << 27
    return (mixed & 0xFFFF_FFE0) | slot % 4 << 3 | size << 1


def cookie_mss(key, ip, port, service, slots, ack, seq):
    """The MSS that came with the cookie, sent in one of ``slots``, that a segment acknowledges.

    None if it acknowledges none, or does not begin at the stream's first byte.
    """
    number = (ack - 1) & _M32
    mss = COOKIE_SIZES[number >> 1 & 3]
    good = any(syn_cookie(key, ip, port, service, slot, mss, seq) == number for slot in slots)
    return mss if good else None


def join_runs(runs, begin, end, ahead, places):
    """Runs kept beyond gaps when text from ``begin`` to ``end`` has come, and where its run ends.

    Runs are pairs of distances from RCV.NXT, newest first (RFC 2018, 4); the text is in none of
    them afterwards if it is not ``ahead``. They are None if it is, and there is no place for it:
    there are ``places``, and if that is one, it has the nearer.
    """
    touching = [r for r in runs if r[0] <= end and begin <= r[1]]
    rest = [r for r in runs if r not in touching]
    whole = (min([begin, *(r[0] for r in touching)]), max([end, *(r[1] for r in touching)]))
    if ahead and places == 1 and rest and end < rest[0][0]:
        rest = []
    after = ([whole] if ahead else []) + rest
    return (after if len(after) <= places else None), whole[1]
