"""The array of multiply-accumulate lanes: operands in, rows of sums out."""

from amaranth import Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ...stream import check_data_width
from .lane import ACC_DELAY, BLOCK_RAM, LANE_DELAY, MacLane

__all__ = ["GROUP", "MacArray", "Shape", "StepLayout", "StoreLayout"]

#: Lanes that share one copy of the operand registers.
GROUP = 4


class Shape:
    """Sizes of a multiplier of ``n`` by ``n`` matrices with ``macs`` lanes and a given data path.

    Attributes: ``n``, ``macs``, ``width``; ``words``, words a beat; ``tiles``, passes over a row
    of A; ``groups`` of lanes; ``sweep_beats``, beats of result of a sweep; ``sweep``, cycles from
    one sweep to the next; ``pair_beats`` and ``result_beats`` of one multiplication.
    """

    def __init__(self, n=64, macs=32, width=32):
        self.width = check_data_width(width)
        if n not in (4, 8, 16, 32, 64):
            raise ValueError(f"Order of the matrices must be 4, 8, 16, 32 or 64, not {n!r}")
        if macs not in [1 << i for i in range(2, n.bit_length())]:
            raise ValueError(f"Number of MACs must be a power of two from 4 to {n}, not {macs!r}")
        self.n, self.macs = n, macs
        self.words = width // 32
        self.tiles = n // macs
        self.groups = macs // GROUP
        self.sweep_beats = macs // self.words
        # The last beat of a sweep must have left the chain before the next sweep's first is in it.
        self.sweep = max(n, self.sweep_beats + self.groups - 1)
        self.pair_beats = 2 * n * n // self.words
        self.result_beats = n * n // self.words
        self.pair_bytes, self.result_bytes = 8 * n * n, 4 * n * n

    @property
    def k_bits(self):
        return (self.n - 1).bit_length()

    @property
    def tile_bits(self):
        return (self.tiles - 1).bit_length()


def StoreLayout(shape):
    """One beat of operand and its place: row ``row``, beat ``beat`` of it, of matrix B or A."""
    return data.StructLayout(
        {
            "data": unsigned(shape.width),
            "half": unsigned(1),
            "b": unsigned(1),
            "row": unsigned(shape.k_bits),
            "beat": unsigned((shape.n // shape.words - 1).bit_length()),
        }
    )


def StepLayout(shape):
    """One step of a sweep: ``a[row][k] * b[k][tile * macs + lane]`` in all lanes."""
    return data.StructLayout(
        {
            "half": unsigned(1),
            "row": unsigned(shape.k_bits),
            "tile": unsigned(shape.tile_bits),
            "k": unsigned(shape.k_bits),
        }
    )


class MacArray(wiring.Component):
    """``macs`` lanes that multiply a row of A by ``macs`` columns of B in n cycles, a *sweep*.

    Parameters
    ----------
    shape : Shape
        Sizes.

    ============  ====  ==========================================================================
    member        dir   meaning
    ============  ====  ==========================================================================
    ``store``     In    :func:`StoreLayout`: a beat of operand for one of the two halves
    ``store_en``  In    ``store`` is to be stored
    ``step``      In    :func:`StepLayout`: a step of a sweep; ``k`` counts from 0 to n - 1
    ``step_en``   In    ``step`` is to be done
    ``o``         Out   a beat of result: words of the row of C, in ascending order
    ``o_en``      Out   ``o`` is there for this one cycle
    ============  ====  ==========================================================================

    The beats of a sweep come in order, within ``n + 9 + sweep_beats + 2 * groups`` cycles of its
    first step. Sweeps begin at least ``shape.sweep`` cycles apart; steps of a sweep follow
    each other without gap. A step may read what was stored in an earlier cycle. Throughput: a
    step and a store a cycle. Nothing can be held up: who gives a step must have room for its beats.
    Reset: forgets steps under way, keeps what is stored. Bad input: see these rules.
    """

    def __init__(self, shape):
        self.shape = shape
        super().__init__(
            {
                "store": In(StoreLayout(shape)),
                "store_en": In(1),
                "step": In(StepLayout(shape)),
                "step_en": In(1),
                "o": Out(shape.width),
                "o_en": Out(1),
            }
        )

    # Everything goes through a chain of registers from group to group of lanes, so that no wire
    # spans the device: each group works one cycle after its neighbour. Sums go back the other
    # way, through a chain of beats that every group loads when it has finished.
    def elaborate(self, platform):
        m = Module()
        shape = self.shape
        a = self._row_store(m)
        flags = Signal(2 * (LANE_DELAY + 1))
        k = self.step.k
        first, final = self.step_en & (k == 0), self.step_en & (k == shape.n - 1)
        m.d.sync += flags.eq(Cat(first, final, flags))

        # What group 0 gets. Cycle 0 of a lane is two cycles after `step`: here, and in the group.
        address = Signal(1 + shape.tile_bits + shape.k_bits, reset_less=True)
        m.d.sync += address.eq(Cat(self.step.k, self.step.tile, self.step.half))
        inputs = {
            "address": address,
            "a": a,
            "first": flags[2 * ACC_DELAY],
            "load": flags[2 * LANE_DELAY + 1],
            "store": self.store,
            "store_en": self.store_en & self.store.b,
        }
        groups = []
        for g in range(shape.groups):
            m.submodules[f"group{g}"] = group = LaneGroup(shape, g)
            m.d.comb += [getattr(group, name).eq(value) for name, value in inputs.items()]
            inputs = {name: getattr(group, name + "_later") for name in inputs}
            groups.append(group)
        for group, above in zip(groups, groups[1:], strict=False):
            m.d.comb += [group.i.eq(above.o), group.i_en.eq(above.o_en)]
        m.d.comb += [self.o.eq(groups[0].o), self.o_en.eq(groups[0].o_en)]
        return m

    def _row_store(self, m):
        """Both halves of A, a bank for each word of a beat; returns a[row][k], 3 cycles late."""
        shape = self.shape
        store, step = self.store, self.step
        word_bits = (shape.words - 1).bit_length()
        words = []
        at, at_later = Signal(word_bits, reset_less=True), Signal(word_bits, reset_less=True)
        m.d.sync += [at.eq(step.k[:word_bits]), at_later.eq(at)]
        for i in range(shape.words):
            m.submodules[f"a{i}"] = bank = Memory(
                shape=unsigned(32), depth=2 * shape.result_beats, init=[], attrs=BLOCK_RAM
            )
            write, read = bank.write_port(), bank.read_port()
            word = Signal(32, name=f"a_word{i}", reset_less=True)
            m.d.comb += [
                write.en.eq(self.store_en & ~store.b),
                write.addr.eq(Cat(store.beat, store.row, store.half)),
                write.data.eq(store.data.word_select(i, 32)),
                read.addr.eq(Cat(step.k[word_bits:], step.row, step.half)),
            ]
            m.d.sync += word.eq(read.data)
            words.append(word)
        a = Signal(32, reset_less=True)
        m.d.sync += a.eq(Cat(words).word_select(at_later, 32))
        return a


class LaneGroup(wiring.Component):
    """Four lanes, their copy of the operand registers and their part of the result chain.

    Part ``index`` of a :class:`MacArray`. ``x_later`` is ``x`` a cycle later, for the next group;
    ``load`` puts the lanes' sums into the chain, which otherwise moves on one beat a cycle.
    """

    def __init__(self, shape, index):
        self.shape, self.index = shape, index
        chained = {
            "address": 1 + shape.tile_bits + shape.k_bits,
            "a": 32,
            "first": 1,
            "load": 1,
            "store": StoreLayout(shape),
            "store_en": 1,
        }
        self.chained = chained
        super().__init__(
            {name: In(kind) for name, kind in chained.items()}
            | {name + "_later": Out(kind) for name, kind in chained.items()}
            | {"i": In(shape.width), "i_en": In(1), "o": Out(shape.width), "o_en": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        shape = self.shape
        for name, kind in self.chained.items():
            late = Signal(kind, name=name, reset_less=name in ("address", "a", "store"))
            m.d.sync += late.eq(getattr(self, name))
            m.d.comb += getattr(self, name + "_later").eq(late)
        store = self.store_later
        tile_beats = shape.sweep_beats
        place = store.beat[: (tile_beats - 1).bit_length()]  # in the tile
        tile = store.beat[(tile_beats - 1).bit_length() :]
        beats = GROUP // shape.words
        sums = []
        for i in range(GROUP):
            m.submodules[f"lane{i}"] = lane = MacLane(2 * shape.tiles * shape.n)
            mine = self.index * beats + i // shape.words
            m.d.comb += [
                lane.w_en.eq(self.store_en_later & (place == mine)),
                lane.w_addr.eq(Cat(store.row, tile, store.half)),
                lane.w_data.eq(store.data.word_select(i % shape.words, 32)),
                lane.r_addr.eq(self.address_later),
                lane.a.eq(self.a_later),
                lane.first.eq(self.first_later),
            ]
            sums.append(lane.acc)
        self._chain(m, [Cat(sums[i : i + shape.words]) for i in range(0, GROUP, shape.words)])
        return m

    def _chain(self, m, sums):
        above, above_en = self.i, self.i_en
        for i, beat in reversed(list(enumerate(sums))):
            here = Signal(self.shape.width, name=f"beat{i}", reset_less=True)
            here_en = Signal(name=f"beat{i}_en")
            m.d.sync += [here.eq(above), here_en.eq(above_en)]
            with m.If(self.load_later):
                m.d.sync += [here.eq(beat), here_en.eq(1)]
            above, above_en = here, here_en
        m.d.comb += [self.o.eq(above), self.o_en.eq(above_en)]
