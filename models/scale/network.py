"""The data centre as discrete events (SimPy): LTL round trips through three tiers of switches.

Only the ports that a probe's path takes come into being, when it first takes them, each with a
process for the traffic of others; so a quarter of a million hosts cost nothing. Time is in ns.

A message goes host, TOR (, pod switch (, spine switch, pod switch), TOR), host; its ACK takes the
same way back. Each hop is an egress port (queue, serialisation), a cable and the next switch.
Cut-through switches hand a frame on after its header, so its length counts once; behind a
store-and-forward switch it counts again.
"""

import random
from collections.abc import Generator
from dataclasses import dataclass

import simpy

from .parameters import TIERS, Parameters, Shell

__all__ = ["Network", "Pair", "Port", "round_trips"]

Process = Generator[simpy.Event, None, None]

#: Bytes after which a cut-through switch knows where a frame goes.
_HEADER = 64
#: Between probes of one pair, in ns: long against any queue, so that trips are of an idle LTL.
_PAUSE = 20_000.0


class Port:
    """An egress port: two classes, the higher one first, none preempted; and others' traffic.

    Frames of the low class are not kept one by one: a burst is a stretch of time in which one
    follows the other. A frame of the high class waits for the end of the one on the wire and for
    those of its class that came before; the low stretch then ends later.
    """

    def __init__(
        self, env: simpy.Environment, rng: random.Random, p: Parameters, load: float, cable: float
    ) -> None:
        self.env, self.p = env, p
        self.cable = cable * p.ns_per_m
        self.frame = p.wire_ns(p.background_bytes)
        self.high = 0.0  # the high class is served until then
        self.low = self.low_phase = 0.0  # the low one until then; when one of its frames began
        if load > 0:
            env.process(self._others(rng, load))

    def _others(self, rng: random.Random, load: float) -> Process:
        p = self.p
        gap = p.burst_frames * self.frame / load
        while True:
            yield self.env.timeout(rng.expovariate(1 / gap))
            # Geometric, at least one frame.
            frames = 1
            while rng.random() > 1 / p.burst_frames:
                frames += 1
            if rng.random() < p.own_class:
                self._book(frames * self.frame)
            else:
                now = max(self.env.now, self.high)
                if self.low <= now:
                    self.low = self.low_phase = now
                self.low += frames * self.frame

    def _book(self, duration: float) -> float:
        """Serve the high class for ``duration``; returns when that begins."""
        now = self.env.now
        begin = max(now, self.high)
        if begin < self.low and self.high <= now:
            # A frame of the low class is on the wire: up to its end.
            begin = now + self.frame - (now - self.low_phase) % self.frame
        self.high = begin + duration
        if self.low > begin:
            self.low += duration
            self.low_phase = self.high
        return begin

    def send(self, duration: float) -> float:
        """Queue a frame of the high class; returns how long until its first bit leaves."""
        return self._book(duration) - self.env.now


@dataclass(frozen=True)
class Pair:
    """Two hosts, each as (pod, TOR, host), and the tier that joins them."""

    tier: str
    source: tuple[int, int, int]
    target: tuple[int, int, int]


@dataclass(frozen=True)
class _Hop:
    """An egress port's name, its kind, and the switch behind it (None: a host)."""

    port: tuple[object, ...]
    kind: str
    switch: str | None


class Network:
    """Ports by name, made when first used."""

    def __init__(self, env: simpy.Environment, p: Parameters, seed: int) -> None:
        self.env, self.p, self.seed = env, p, seed
        self.ports: dict[tuple[object, ...], Port] = {}
        self.rng = random.Random(f"{seed}/network")

    def port(self, hop: _Hop) -> Port:
        if hop.port not in self.ports:
            p = self.p
            load, cable = {
                "uplink": (0.0, p.host_cable),
                "host": (p.host_load, p.host_cable),
                "pod": (p.pod_load, p.pod_cable),
                "spine": (p.spine_load, p.spine_cable),
            }[hop.kind]
            rng = random.Random(f"{self.seed}/{hop.port}")
            self.ports[hop.port] = Port(self.env, rng, p, load, rng.uniform(*cable))
        return self.ports[hop.port]

    def path(self, tier: str, source: tuple[int, ...], target: tuple[int, ...]) -> list[_Hop]:
        """The hops of a flow; where there are several ways it keeps to one of them (ECMP)."""
        way = random.Random(f"{self.seed}/{source}/{target}")
        pod_switch = way.randrange(self.p.tor_uplinks)
        spine = way.randrange(self.p.pod_uplinks)
        hops = [_Hop(("host", source), "uplink", "tor")]
        if tier != "L0":
            hops.append(_Hop(("tor up", source[:2], pod_switch), "pod", "pod"))
            if tier == "L2":
                hops.append(_Hop(("pod up", source[0], pod_switch, spine), "spine", "spine"))
                hops.append(_Hop(("spine", pod_switch, spine, target[0]), "spine", "pod"))
            hops.append(_Hop(("pod down", target[0], pod_switch, target[1]), "pod", "tor"))
        return [*hops, _Hop(("tor down", target), "host", None)]

    def travel(self, hops: list[_Hop], size: int) -> Process:
        """A frame's way from a MAC to the last bit's arrival at the other."""
        p = self.p
        whole, head = p.wire_ns(size), p.wire_ns(min(size, _HEADER))
        for hop in hops:
            port = self.port(hop)
            yield self.env.timeout(port.send(whole) + port.cable)
            if hop.switch is None:
                yield self.env.timeout(whole)
            else:
                inside = self.rng.uniform(*getattr(p, f"{hop.switch}_latency"))
                yield self.env.timeout((head if hop.switch == "tor" else whole) + inside)


def _pairs(p: Parameters, tier: str, count: int, rng: random.Random) -> list[Pair]:
    def host(pod: int, tor: int, but: int | None = None) -> tuple[int, int, int]:
        return pod, tor, rng.choice([h for h in range(p.hosts_per_tor) if h != but])

    pairs = []
    for _ in range(count):
        pod, tor = rng.randrange(p.pods), rng.randrange(p.tors_per_pod)
        source = host(pod, tor)
        if tier == "L0":
            target = host(pod, tor, but=source[2])
        elif tier == "L1":
            target = host(pod, (tor + rng.randrange(1, p.tors_per_pod)) % p.tors_per_pod)
        else:
            other = (pod + rng.randrange(1, p.pods)) % p.pods
            target = host(other, rng.randrange(p.tors_per_pod))
        pairs.append(Pair(tier, source, target))
    return pairs


def round_trips(
    p: Parameters, shell: Shell, *, probes: int, pairs: int, seed: int = 1
) -> dict[str, list[list[float]]]:
    """Round trips in µs by tier: one list a pair, ``probes`` long.

    A pair's messages leave one after the other, far apart. The shells' part is what two of them
    back to back take (it has both directions' LTL engines in it), and the bridge that a frame
    passes on its way out and in of each board.
    """
    boards = (shell.rtt_cycles + 4 * shell.bridge_cycles) * 1e3 / p.clock_mhz + 2 * p.mac_phy
    result: dict[str, list[list[float]]] = {}
    for tier in TIERS:
        env = simpy.Environment()
        network = Network(env, p, seed)
        chosen = _pairs(p, tier, pairs, random.Random(f"{seed}/{tier}"))
        trips: list[list[float]] = [[] for _ in chosen]

        def probe(pair: Pair, out: list[float], env: simpy.Environment, net: Network) -> Process:
            forth = net.path(pair.tier, pair.source, pair.target)
            back = net.path(pair.tier, pair.target, pair.source)
            rng = random.Random(f"{seed}/{pair}")
            for _ in range(probes):
                yield env.timeout(_PAUSE * (0.5 + rng.random()))
                begin = env.now
                yield env.process(net.travel(forth, p.frame_bytes))
                yield env.process(net.travel(back, p.ack_bytes))
                out.append((env.now - begin + boards) / 1e3)

        running = [
            env.process(probe(pair, out, env, network))
            for pair, out in zip(chosen, trips, strict=True)
        ]
        env.run(simpy.AllOf(env, running))
        result[tier] = trips
    return result
