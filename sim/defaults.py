"""What the tops of the simulator have in common: their addresses, and a page that they answer."""

__all__ = ["IP", "MAC", "PAGE", "addresses"]

#: Addresses of the simulated board, and the harness's defaults.
MAC = "02:00:00:00:00:02"
IP = "192.0.2.2"

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
_PAGE_BYTES = 1024


def _page():
    """An answer of 1 KiB with its header: the object of the paper's transactions."""
    head = _HEAD + b"Content-Length: %d\r\n\r\n"
    length = _PAGE_BYTES - len(head % 100)
    text = b"Trebuchet throws this page from its memory. " * 30
    return head % length + text[:length]


#: What the fabric top answers on TCP port 8080.
PAGE = _page()


def addresses():
    """MAC and IP address as the registers have them."""
    mac = int.from_bytes(bytes.fromhex(MAC.replace(":", "")), "little")
    return mac, int.from_bytes(bytes(map(int, IP.split("."))), "big")
