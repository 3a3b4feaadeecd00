"""CRC-32C (RFC 3720, appendix B.4), and what the engine of that name makes of a packet."""

__all__ = ["crc32c", "result"]

_POLYNOMIAL = 0x82F63B78  # reflected


def crc32c(data: bytes) -> int:
    """The CRC-32C of ``data``."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (_POLYNOMIAL if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def result(packet: bytes, error: bool = False, check: bool = False) -> tuple[bytes, bool]:
    """``(bytes, error)`` of the packet that leaves the engine."""
    if not check:
        return packet + crc32c(packet).to_bytes(4, "little"), error
    good = len(packet) >= 4 and crc32c(packet[:-4]).to_bytes(4, "little") == packet[-4:]
    return packet, error or not good
