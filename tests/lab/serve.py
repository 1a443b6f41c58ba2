"""Serve the lab's repositories over TLS under their real host names, and over plain HTTP."""

from __future__ import annotations

import functools
import http.server
import ssl
import sys
import threading
from pathlib import Path


class Handler(http.server.SimpleHTTPRequestHandler):
    """The folder of the host name that was asked for."""

    protocol_version = "HTTP/1.1"

    def translate_path(self, path: str) -> str:
        """Return the file below the folder that is named as the host."""
        host = (self.headers.get("Host") or "").partition(":")[0]
        return super().translate_path(f"/{host}{path}")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the server's output is nobody's."""


def main(folder: Path) -> None:
    """Serve until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls/server.crt", folder / "tls/server.key")
    handler = functools.partial(Handler, directory=str(folder))
    plain = http.server.ThreadingHTTPServer(("127.0.0.1", 80), handler)
    secure = http.server.ThreadingHTTPServer(("127.0.0.1", 443), handler)
    # The handshake happens in the request's own thread, so that a client that stalls holds up nobody.
    secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    secure.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
