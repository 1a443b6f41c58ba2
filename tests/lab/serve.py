"""Serve the lab's repositories over TLS under their real host names, and over plain HTTP; with the troubles that a test asks for."""

from __future__ import annotations

import contextlib
import functools
import http.server
import shutil
import ssl
import sys
import threading
import time
from pathlib import Path
from typing import Any

TROUBLE = Path("/run/lab/network")
"""Holds "WORD PART" while something is wrong: the word says what, and only addresses that contain the part are hit."""
_VARIANTS = ("expired", "foreign", "weak")
"""Releases that lie beside the repository and are served in the place of the good one."""


def trouble(address: str) -> str:
    """Return the word that holds for an address now, or ""."""
    try:
        word, _, part = TROUBLE.read_text(encoding="utf-8").strip().partition(" ")
    except OSError:
        return ""
    return word if part in address else ""


class Handler(http.server.SimpleHTTPRequestHandler):
    """The folder of the host name that was asked for."""

    protocol_version = "HTTP/1.1"
    root = Path()

    def translate_path(self, path: str) -> str:
        """Return the file below the folder that is named as the host."""
        host = (self.headers.get("Host") or "").partition(":")[0]
        word = trouble(path)
        if word in _VARIANTS and path.endswith("InRelease"):
            return str(self.root / "variants" / word)
        return super().translate_path(f"/{host}{path}")

    def do_GET(self) -> None:
        """Answer, or fail as the test wants."""
        word = trouble(self.path)
        if word == "refuse":
            self.close_connection = True
            return
        if word:
            # A list that has not changed would not be looked at.
            del self.headers["If-Modified-Since"]
        if word == "missing" or (word == "unsigned" and self.path.endswith(("InRelease", "Release.gpg"))):
            self.send_error(404)
            return
        super().do_GET()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file whole, changed, or not to its end."""
        word = trouble(self.path)
        if word not in ("cut", "stall", "hash"):
            shutil.copyfileobj(source, outputfile)
            return
        data = source.read()
        half = len(data) // 2
        if word == "hash":
            outputfile.write(data[:half] + bytes((data[half] ^ 1,)) + data[half + 1 :])
            return
        outputfile.write(data[:half])
        self.close_connection = True
        while word == "stall" and trouble(self.path) == "stall":
            time.sleep(0.05)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the server's output is nobody's."""


class Server(http.server.ThreadingHTTPServer):
    """A server that bears with clients that are killed."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


def main(folder: Path) -> None:
    """Serve until killed."""
    context, wrong = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls/server.crt", folder / "tls/server.key")
    wrong.load_cert_chain(folder / "tls/wrong.crt", folder / "tls/wrong.key")

    def choose(connection: Any, name: str | None, _: ssl.SSLContext) -> None:
        if trouble("") == "certificate":
            connection.context = wrong

    context.sni_callback = choose
    Handler.root = folder
    handler = functools.partial(Handler, directory=str(folder))
    plain = Server(("127.0.0.1", 80), handler)
    secure = Server(("127.0.0.1", 443), handler)
    # The handshake happens in the request's own thread, so that a client that stalls holds up nobody.
    secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):
        secure.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
