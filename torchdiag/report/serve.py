"""One file handed to the Perfetto UI, and to nothing else, over HTTP on this machine.

Perfetto's content security policy lets its page fetch from 127.0.0.1:9001. Any page a browser shows can send
requests to that address, so who asks is checked: by `Origin` and `Sec-Fetch-Site` (other pages), and by `Host` (a
foreign name that was pointed at 127.0.0.1).
"""

import errno
import os
import socket
import socketserver
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, BinaryIO, cast
from urllib.parse import quote, unquote_to_bytes

from torchdiag.errors import TorchdiagError

ORIGIN = "https://ui.perfetto.dev"
ADDRESS = "127.0.0.1"
PORT = 9001
_BLOCK = 1 << 20
_FAREWELL_S = 10.0


class TraceServer(ThreadingHTTPServer):
    """Listens from its making on; `serve` answers.

    Raises TorchdiagError when the port is taken.
    """

    daemon_threads = True

    def __init__(self, port: int = PORT) -> None:
        try:
            super().__init__((ADDRESS, port), _Request)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise TorchdiagError(
                f"port {port} of {ADDRESS} is taken, and the Perfetto UI may read from no other: end the program "
                f"that listens there (`ss -ltnp 'sport = :{port}'` names it), or wait until another "
                "`torchdiag open` has handed over its trace"
            ) from error
        self.file: BinaryIO | None = None
        self.name = b""
        self.size = 0
        self._fetches = 0
        self._sending = 0
        self._changed = threading.Condition()

    def server_bind(self) -> None:
        """Bind without asking the name service what 127.0.0.1 is called."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def serve(self, file: BinaryIO, name: str, *, keep: bool = False) -> None:
        """Hand out `file` as `/name` until it was fetched once to its end; with `keep` until interrupted."""
        self.file, self.name, self.size = file, os.fsencode(name), os.fstat(file.fileno()).st_size
        answering = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        answering.start()
        try:
            with self._changed:
                self._changed.wait_for(lambda: not keep and self._fetches > 0 and not self._sending)
        finally:
            self.shutdown()
            answering.join()

    def link(self, name: str) -> str:
        """The address that makes Perfetto fetch the file.

        Perfetto decodes its argument once, and the browser sends what is left: the name is quoted twice.
        """
        url = f"http://{ADDRESS}:{self.server_port}/{quote(os.fsencode(name))}"
        return f"{ORIGIN}/#!/?url={quote(url, safe=':/')}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no error."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def transfer(self, connection: socket.socket) -> None:
        """Send the whole file and wait until the other side has taken it."""
        with self._changed:
            self._sending += 1
        fetched = False
        try:
            fetched = self._sent(connection)
        finally:
            with self._changed:
                self._sending -= 1
                self._fetches += fetched
                self._changed.notify_all()

    def _sent(self, connection: socket.socket) -> bool:
        descriptor, place = cast(BinaryIO, self.file).fileno(), 0
        while place < self.size:
            data = os.pread(descriptor, min(_BLOCK, self.size - place), place)
            if not data:
                return False
            connection.sendall(data)
            place += len(data)
        # What was sent may still be on its way: it has arrived once the other side, told that this was all, hangs up.
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(_FAREWELL_S)
        while connection.recv(_BLOCK):
            pass
        return True


class _Request(BaseHTTPRequestHandler):
    """One connection with one request; the answer closes it."""

    server: TraceServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version = "torchdiag"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the file."""
        if self._accepted():
            self._send_file_head()
            self.server.transfer(self.connection)

    def do_HEAD(self) -> None:
        """Send what the file is."""
        if self._accepted():
            self._send_file_head()

    def do_OPTIONS(self) -> None:
        """Answer the question a browser may ask before it lets a public page reach this machine."""
        if not self._accepted():
            return
        self._begin(HTTPStatus.NO_CONTENT)
        self.send_header("Access-Control-Allow-Methods", "GET, HEAD")
        self.send_header("Access-Control-Allow-Private-Network", "true")
        self.end_headers()

    def _refuse_method(self) -> None:
        if self._accepted():
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_TRACE = do_CONNECT = _refuse_method  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: who reads the trace is told by whoever started the server."""

    def _accepted(self) -> bool:
        """Whether this request is for the file and from someone who may have it; otherwise it is answered here."""
        if self._is_foreign():
            self._refuse(HTTPStatus.FORBIDDEN)
        elif unquote_to_bytes(self.path.encode("latin-1")) != b"/" + self.server.name:
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            return True
        return False

    def _is_foreign(self) -> bool:
        if self.headers.get("Host", "").lower() not in self._own_names():
            return True
        origin = self.headers.get("Origin")
        if origin is None:
            # Typed into the address bar, or no browser at all. An image or a script of another page has no Origin.
            return self.headers.get("Sec-Fetch-Site", "none") != "none"
        return origin != ORIGIN

    def _own_names(self) -> tuple[str, str]:
        return f"{ADDRESS}:{self.server.server_port}", f"localhost:{self.server.server_port}"

    def _begin(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", ORIGIN)
        self.send_header("Cache-Control", "no-store")
        self._close()

    def _send_file_head(self) -> None:
        self._begin(HTTPStatus.OK)
        # Never Content-Encoding: Perfetto unpacks gzip itself, and counts bytes against Content-Length.
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(self.server.size))
        self.end_headers()

    def _refuse(self, status: HTTPStatus) -> None:
        self.send_response(status)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD, OPTIONS")
        self.send_header("Content-Length", "0")
        self._close()
        self.end_headers()

    def _close(self) -> None:
        self.send_header("Connection", "close")
        self.close_connection = True
