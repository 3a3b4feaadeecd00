"""Proof of ``LinkConfig`` in ``cores/router/contract.py`` and of what the others refuse.

The solver picks a case of a list: parameters that are right must be taken and give the numbers and
layouts of the contract's tables; parameters that are wrong in one way must be refused with
``ValueError``, the nearest right ones not.

Not proved: parameters that are not on the list.
"""

from warnings import catch_warnings, simplefilter

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Const, Cover, Elaboratable, Signal, UnusedElaboratable

from ...cores.router import adapter, arbiter, buffer, network, router, routing
from ...cores.router.contract import LinkConfig
from ..kit.proof import Mutant, Proof
from ..stream import new_harness

__all__ = ["PROOFS"]

RIGHT = {
    "vcs": 2,
    "flit_width": 8,
    "phit_width": 4,
    "dest_width": 3,
    "user_width": 1,
    "buffer_flits": 6,
    "reserved": 2,
}
#: A parameter, values that are taken, values that are not.
LIMITS = (
    ("vcs", (1, 3), (0, 4, True, 2.0)),
    ("flit_width", (4, 12), (0, -4, 6, "8")),
    ("phit_width", (1, 2, 8, None), (0, 3, 16)),
    ("dest_width", (1, 2), (0, -1)),
    ("user_width", (0, 5), (-1,)),
    ("buffer_flits", (4, 5, 7), (3, 2, 0)),
    ("reserved", (1, 3), (0, 4)),
)
#: VCs, places, reserved places: places that are shared.
SHARED = {(1, 2, 1): 1, (2, 4, 2): 0, (2, 6, 2): 2, (3, 16, 3): 7, (2, 16, 3): 10}


def _taken(make):
    """Whether parameters are taken; None if they are refused in another way."""
    with catch_warnings():
        simplefilter("ignore", UnusedElaboratable)
        try:
            make()
        except ValueError:
            return False
        except Exception:
            return None
        return True


def _layout(view):
    return {name: (field.offset, field.width) for name, field in view}


def _cases(contract):
    """Whether each case is as it should be."""
    config = contract.LinkConfig
    for name, good, bad in LIMITS:
        for value in (*good, *bad):
            taken = _taken(lambda n=name, v=value: config(**RIGHT | {n: v}))
            yield taken is (value in good and not isinstance(value, bool | float))
    yield _taken(lambda: config(vcs=1, buffer_flits=2, reserved=1))
    yield _taken(lambda: config(vcs=1, buffer_flits=1, reserved=1)) is False
    for (vcs, places, reserved), shared in SHARED.items():
        yield config(vcs=vcs, buffer_flits=places, reserved=reserved).shared == shared
    for flit, phit, phits in ((8, 8, 1), (8, None, 1), (8, 4, 2), (9, 3, 3)):
        yield config(flit_width=flit, phit_width=phit).phits == phits
    for vcs, width in ((1, 1), (2, 1), (3, 2), (4, 2), (5, 3)):
        made = config(**RIGHT | {"vcs": vcs, "buffer_flits": 16})
        fields, at = {"user": 1, "dest": 3, "vc": width, "head": 1, "tail": 1}, {}
        for data, layout in ((8, made.flit_layout), (4, made.phit_layout)):
            at, offset = {}, 0
            for name, bits in ({"data": data} | fields).items():
                at[name] = (offset, bits)
                offset += bits
            yield _layout(layout) == at and layout.size == offset
    yield "user" not in _layout(config(user_width=0).flit_layout)
    default = config()
    names = ("vcs", "flit_width", "phit_width", "dest_width", "buffer_flits", "reserved")
    yield [getattr(default, name) for name in names] == [2, 64, 64, 2, 16, 3]
    yield default.user_width == 0


def _refusals():
    """What the other constructors must refuse."""
    right = LinkConfig(**RIGHT)
    packets = {"flit_width": 32, "user_width": adapter.user_width(32)}

    def way(out):
        return lambda port, vc, dest: out if (port, vc, dest) == (1, 1, 2) else None

    yield adapter.user_width(32) == 3 and adapter.user_width(64) == 4
    for make in (
        lambda: router.Router(1, right),
        lambda: router.Router(2.0, right),
        *(lambda out=out: router.Router(2, right, way(out)) for out in ((2, 0), (-1, 0), (0, 2))),
        lambda: network.Network(routing.mesh(3, 3), right),
        lambda: arbiter.RoundRobin(0),
        lambda: buffer.ElasticBuffer(0, 2, 1, 1),
        lambda: buffer.ElasticBuffer(1, 1, 1, 1),
        lambda: buffer.ElasticBuffer(1, 2, 0, 1),
        lambda: adapter.PacketsToFlits(LinkConfig(**packets | {"user_width": 2})),
        lambda: adapter.FlitsToPackets(LinkConfig(**packets | {"user_width": 4})),
        lambda: adapter.PacketsToFlits(LinkConfig(**packets | {"flit_width": 24})),
    ):
        yield _taken(make) is False


class ContractProof(Elaboratable):
    def __init__(self, contract):
        self.cases = [*_cases(contract), *_refusals()]

    def elaborate(self, platform):
        m = new_harness()
        chosen, past = Signal(8), Signal(8)
        m.d.comb += chosen.eq(AnySeq(8))
        m.d.sync += past.eq(chosen)
        for k, right in enumerate(self.cases):
            with m.If(chosen == k):
                m.d.comb += Assert(Const(bool(right), 1))
        m.d.comb += Cover((past == 0) & (chosen == len(self.cases) - 1))
        return m


PROOFS = (
    Proof(
        name="router_contract",
        core="cores.router.contract.LinkConfig",
        says="parameters are taken or refused as documented; places and fields as in the tables",
        module="trebuchet.cores.router.contract",
        build=ContractProof,
        depth=1,
        cover_depth=3,
        mutants=(
            Mutant(
                "shares_the_reserve",
                "self.buffer_flits - self.vcs * self.reserved",
                "self.buffer_flits - self.vcs",
            ),
            Mutant(
                "one_place_less",
                "max(2, self.vcs * self.reserved)",
                "max(2, self.vcs * self.reserved - 1)",
            ),
            Mutant(
                "few_vc_bits",
                "max(1, (self.vcs - 1).bit_length())",
                "max(1, self.vcs.bit_length() - 1)",
            ),
            Mutant(
                "any_phit",
                "if self.flit_width % self.phit_width:",
                "if self.flit_width < self.phit_width:",
            ),
        ),
        assumes="nothing",
        not_proved="parameters that are not on the list",
    ),
)
