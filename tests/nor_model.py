"""A serial NOR flash, byte by byte, for tests of the SPI controller and of the firmware on top."""

SECTOR = 4096
PAGE = 256


class NorModel:
    """Commands 03, 9F, 05, 06, 04, 02, 20; a command begins with :meth:`select`.

    Of more than 16 MiB: 13, 12 and 21, with addresses of four bytes, in the place of 03, 02, 20.

    Attributes
    ----------
    data : bytearray
        Contents.
    polls : int
        Reads of the status during which a write is still under way.
    protected : bool
        Fault: writes are ignored.
    power : int or None
        Fault: after so many more programmed bytes nothing is written any more.
    erased, programmed : int
        Sectors and bytes so far.
    """

    ID = b"\xef\x40\x14"

    def __init__(self, size=1 << 20, polls=2):
        self.data = bytearray(b"\xff" * size)
        self.polls = polls
        self.protected, self.power = False, None
        self.erased = self.programmed = 0
        self.busy = 0
        self.enabled = self.selected = False
        self.taken = []
        wide = size > 1 << 24
        self._bytes = 4 if wide else 3
        self._read, self._write, self._erase = (0x13, 0x12, 0x21) if wide else (0x03, 0x02, 0x20)

    def select(self, selected):
        """Chip select; its end carries out what was asked for."""
        if self.selected and not selected:
            self._execute()
        if selected and not self.selected:
            self.taken = []
        self.selected = selected

    def answer(self):
        """The byte that goes out while the next one comes."""
        if not self.selected or not self.taken:
            return 0xFF
        command, count = self.taken[0], len(self.taken)
        if command == 0x05:
            status = (self.busy > 0) | self.enabled << 1
            self.busy = max(0, self.busy - 1)
            return status
        if self.busy:
            return 0xFF
        if command == 0x9F:
            return self.ID[count - 1] if count <= 3 else 0xFF
        first = 1 + self._bytes
        if command == self._read and count >= first:
            return self.data[(self._address() + count - first) % len(self.data)]
        return 0xFF

    def take(self, byte):
        """A byte came."""
        if self.selected:
            self.taken.append(byte)

    def exchange(self, byte):
        """A byte each way."""
        out = self.answer()
        self.take(byte)
        return out

    def _address(self):
        return int.from_bytes(bytes(self.taken[1 : 1 + self._bytes]), "big")

    def _execute(self):
        if not self.taken or self.busy:
            return
        command, count = self.taken[0], len(self.taken)
        if command in (0x06, 0x04) and count == 1:
            self.enabled = command == 0x06
        elif command == self._erase and count == 1 + self._bytes and self._may_write():
            start = self._address() // SECTOR * SECTOR % len(self.data)
            if self.power != 0:
                self.data[start : start + SECTOR] = b"\xff" * SECTOR
                self.erased += 1
        elif command == self._write and count > 1 + self._bytes and self._may_write():
            self._program(self._address(), self.taken[1 + self._bytes :])

    def _may_write(self):
        was, self.enabled = self.enabled, False
        if not was or self.protected:
            return False
        self.busy = self.polls
        return True

    def _program(self, address, contents):
        page = address // PAGE * PAGE
        for i, byte in enumerate(contents):
            if self.power == 0:
                return
            if self.power is not None:
                self.power -= 1
            self.data[(page + (address + i) % PAGE) % len(self.data)] &= byte
            self.programmed += 1
