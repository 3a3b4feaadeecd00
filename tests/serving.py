"""HTTP servers of this machine, for tests of clients."""

import http.server
import threading
from contextlib import contextmanager

__all__ = ["serving", "serving_by"]


@contextmanager
def serving(body, code=200):
    """Serve ``body`` with status ``code`` as `/status`; yield the address, ``HOST:PORT``."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(code if self.path == "/status" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with serving_by(Handler) as address:
        yield address


@contextmanager
def serving_by(handler):
    """Serve by ``handler``, of :mod:`http.server`; yield the address, ``HOST:PORT``."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
