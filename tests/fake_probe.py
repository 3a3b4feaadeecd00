"""A fake board with a trace core: what it samples is a script, read through its registers."""

from fake_registers import BASE, REGIONS, RegisterBoard, RegisterFile
from trebuchet.cores.probe.trace import STAMP_WIDTH, WINDOW, trace_block
from trebuchet.models.status import Status
from trebuchet.soc.csr_export import register_offsets

__all__ = ["DEPTH", "HZ", "SIGNALS", "ProbeBoard"]

DEPTH, HZ = 64, 1_000_000
SIGNALS = (
    *(("tx__valid", 1), ("tx__ready", 1), ("tx__payload__seq", 40)),
    *(("rx__valid", 1), ("count", 4)),
)
_AT = BASE + 0x1000
_ARM, _STOP, _REWIND = 1, 2, 4


class _Registers(RegisterFile):
    """Registers of a trace core whose capture is ``records``, from ``trigger`` to ``end``.

    ``met``: whether the trigger is met as soon as it is armed; else the capture has to be stopped.
    """

    def __init__(self, map_hash, commands):
        super().__init__(map_hash, commands)
        self.records, self.trigger, self.end, self.met = (), 0, 0, True
        self.disturbed = False
        self._next = 0
        self.on_read = self._read

    def get(self, line, default=None):
        answer = super().get(line, default)
        name, *numbers = line.split()
        if name == "poke" and int(numbers[0], 0) == self.at["control"]:
            self._control(int(numbers[1], 0))
        return answer

    def _control(self, bits):
        if bits & _ARM:
            self.words[self.at["state"]] = 6 if self.met else 1
        if bits & _STOP and self.words.get(self.at["state"]) == 1:
            self.words[self.at["state"]] = 4
        if bits & _REWIND:
            self._next = 0
        self.words[self.at["records"]] = len(self.records)
        for name, value in (("trigger_time", self.trigger), ("end_time", self.end)):
            self.words[self.at[name]] = value & 0xFFFF_FFFF
            self.words[self.at[name] + 4] = value >> 32

    def _read(self, address):
        size = 1 + -(-sum(width for _, width in SIGNALS) // 32)
        if self.at["window_0"] <= address <= self.at[f"window_{WINDOW - 1}"]:
            place, word = divmod(self._next, size)
            cycle, sample = self.records[place] if place < len(self.records) else (0, 0)
            stamp = cycle & (1 << STAMP_WIDTH) - 1
            words = (stamp, *(sample >> 32 * k & 0xFFFF_FFFF for k in range(size - 1)))
            self.words[address] = words[word]
            self._next += 1
        if address == self.at["position"]:
            place = self._next // size + self.disturbed
            self.words[address] = place % (2 * DEPTH)


class ProbeBoard(RegisterBoard):
    """A :class:`RegisterBoard` with the trace core's block; ``core`` is its registers."""

    def __init__(self, folder):
        block = trace_block(SIGNALS, DEPTH)
        super().__init__(folder, regions=[*REGIONS, (block, _AT)])
        commands = {"version": (Status.OK, f"0.2.0 on fake at {HZ} Hz\n")}
        self.registers = self.commands = _Registers(self.registers.map_hash, commands)
        offsets = register_offsets(block)
        self.registers.at = {name: _AT + offset for name, offset in offsets.items()}
