"""Echo, discard and web server on the kernel's TCP; runs a command, ends with its exit code."""

import socket
import subprocess
import sys
import threading

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n" + bytes(range(256)) * 4


def echo(connection):
    while data := connection.recv(65536):
        connection.sendall(data)


def discard(connection):
    while connection.recv(65536):
        pass


def web(connection):
    request = b""
    while b"\r\n\r\n" not in request:
        request += connection.recv(4096)
    connection.sendall(ANSWER)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)


def wrong(connection):
    """An echo server with a fault: the 1000th byte comes back altered."""
    data = bytearray()
    while chunk := connection.recv(65536):
        data += chunk
        chunk = bytearray(chunk)
        start = len(data) - len(chunk)
        if start <= 1000 < len(data):
            chunk[1000 - start] ^= 1
        connection.sendall(chunk)


def serve(listener, service):
    def one(connection):
        with connection:
            try:
                service(connection)
            except OSError:
                return  # the client has reset the connection

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=one, args=(connection,), daemon=True).start()


def main(command):
    for port, service in ((7, echo), (9, discard), (80, web), (13, wrong)):
        listener = socket.create_server(("0.0.0.0", port), backlog=1024)
        threading.Thread(target=serve, args=(listener, service), daemon=True).start()
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
