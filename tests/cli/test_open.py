"""A trace is handed to the Perfetto UI, whole, once, and to nothing else."""

import contextlib
import gzip
import hashlib
import http.client
import http.server
import io
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from torchdiag.errors import TorchdiagError
from torchdiag.report.serve import ORIGIN, PORT, TraceServer

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
NAME = "tra ce+%25#1.json"
QUOTED = "/tra%20ce%2B%2525%231.json"
CONTENT = os.urandom(3_000_000)


class Serving:
    """A server of CONTENT as NAME, and whether it has ended."""

    def __init__(self, keep: bool = False) -> None:
        self.server = TraceServer(0)
        self.port = self.server.server_port
        self.file = io.BytesIO()
        self.thread = threading.Thread(target=self._run, args=(keep,), daemon=True)

    def _run(self, keep: bool) -> None:
        with self.path.open("rb") as file, self.server:
            self.server.serve(file, NAME, keep=keep)

    def start(self, path: Path) -> "Serving":
        self.path = path
        path.write_bytes(CONTENT)
        self.thread.start()
        return self

    def ended(self, within_s: float) -> bool:
        self.thread.join(within_s)
        return not self.thread.is_alive()

    def ask(self, method: str, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, headers={key.replace("_", "-"): value for key, value in headers.items()})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving().start(tmp_path / "content")
    yield serving
    if not serving.ended(0):
        serving.ask("GET", QUOTED)
        assert serving.ended(10)


def test_the_file_is_given_to_perfetto_and_the_server_ends(serving: Serving) -> None:
    answer, body = serving.ask("GET", QUOTED, Origin=ORIGIN, Sec_Fetch_Site="cross-site")
    assert answer.status == 200
    assert body == CONTENT
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert answer.headers["Content-Length"] == str(len(CONTENT))
    assert answer.headers["Content-Encoding"] is None
    assert serving.ended(5)


def test_keep_goes_on(tmp_path: Path) -> None:
    serving = Serving(keep=True).start(tmp_path / "content")
    for _ in range(2):
        assert serving.ask("GET", QUOTED)[1] == CONTENT
    assert not serving.ended(0.3)


def test_head_and_preflight_do_not_end_it(serving: Serving) -> None:
    answer, body = serving.ask("HEAD", QUOTED, Origin=ORIGIN)
    assert (answer.status, body) == (200, b"")
    assert answer.headers["Content-Length"] == str(len(CONTENT))
    answer, _ = serving.ask("OPTIONS", QUOTED, Origin=ORIGIN, Access_Control_Request_Private_Network="true")
    assert answer.status == 204
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert answer.headers["Access-Control-Allow-Private-Network"] == "true"
    assert not serving.ended(0.3)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/../",
        "/../" + QUOTED[1:],
        "/.%2e/",
        QUOTED + "/",
        QUOTED + "?x",
        "/etc/passwd",
        "/content",
        "//",
        "*",
        "/%00",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
def test_any_other_path_is_not_found(serving: Serving, method: str, path: str) -> None:
    answer, body = serving.ask(method, path, Origin=ORIGIN)
    assert (answer.status, body) == (404, b"")
    assert answer.headers["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE"])
def test_any_other_method_is_not_allowed(serving: Serving, method: str) -> None:
    answer, _ = serving.ask(method, QUOTED, Origin=ORIGIN)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert not serving.ended(0.2)


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://ui.perfetto.dev"},
        {"Origin": ORIGIN + ".evil.example"},
        {"Sec_Fetch_Site": "cross-site"},  # an image or a script of another page
        {"Host": "evil.example:{}"},  # a name that was pointed here
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
    ],
)
def test_anyone_else_is_refused(serving: Serving, method: str, headers: dict[str, str]) -> None:
    answer, body = serving.ask(method, QUOTED, **{key: text.format(serving.port) for key, text in headers.items()})
    assert (answer.status, body) == (403, b"")
    assert answer.headers["Access-Control-Allow-Origin"] is None
    assert not serving.ended(0.2)


def test_localhost_is_this_machine_too(serving: Serving) -> None:
    assert serving.ask("HEAD", QUOTED, Host=f"localhost:{serving.port}")[0].status == 200


def test_a_fetch_that_breaks_off_does_not_count(serving: Serving, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(("127.0.0.1", serving.port)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(f"GET {QUOTED} HTTP/1.1\r\nHost: 127.0.0.1:{serving.port}\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    assert not serving.ended(0.3)
    assert serving.ask("GET", QUOTED)[1] == CONTENT
    assert serving.ended(5)
    assert capfd.readouterr().err == ""


def test_a_silent_connection_does_not_hold_it_up(serving: Serving) -> None:
    with socket.create_connection(("127.0.0.1", serving.port)):
        assert serving.ask("GET", QUOTED)[1] == CONTENT
        assert serving.ended(5)


def test_the_link_survives_perfettos_decoding() -> None:
    with TraceServer(0) as server:
        link = server.link(NAME)
        assert link.startswith(f"{ORIGIN}/#!/?url=http://127.0.0.1:{server.server_port}/")
        assert server.link("trace.json.gz").endswith(f"url=http://127.0.0.1:{server.server_port}/trace.json.gz")
    (url,) = parse_qs(urlsplit(link).fragment.partition("?")[2])["url"]
    assert urlsplit(url).path == QUOTED
    assert unquote(urlsplit(url).path) == "/" + NAME


def test_a_taken_port_is_said_with_what_to_do() -> None:
    with TraceServer(0) as server, pytest.raises(TorchdiagError, match=f"port {server.server_port} .* is taken.*ss -l"):
        TraceServer(server.server_port)


# The command.


@contextlib.contextmanager
def opened(path: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            pytest.skip(f"port {PORT} is taken on this machine")
    command = [sys.executable, "-m", "torchdiag", "open", str(path), "--no-browser", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def link_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def fetch(path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=10)
    connection.request("GET", path, headers={"Origin": ORIGIN})
    return connection.getresponse().read()


EVENTS = '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a%sb", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2}]}'


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_sound_trace_is_served_as_it_is(tmp_path: Path, pack: "type[bytes]") -> None:
    path = tmp_path / "my trace.json"
    path.write_bytes(pack((EVENTS % "").encode()))
    with opened(path) as process:
        assert link_of(process) == f"{ORIGIN}/#!/?url=http://127.0.0.1:{PORT}/my%2520trace.json"
        assert fetch("/my%20trace.json") == path.read_bytes()
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_damaged_trace_is_served_repaired(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress((EVENTS % "\\x").encode()[:-2]))
    before = path.read_bytes()
    with opened(path) as process:
        assert link_of(process).endswith("/trace.repaired.json.gz")
        document = json.loads(gzip.decompress(fetch("/trace.repaired.json.gz")))
        assert len(document["traceEvents"]) == 1
        assert process.wait(10) == 0
        assert process.stderr is not None
        said = process.stderr.read()
    assert "repaired" in said
    assert "bad-escape" in said
    assert path.read_bytes() == before


def test_a_second_one_is_told_that_the_port_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(EVENTS % "")
    with opened(path, "--keep") as process:
        link_of(process)
        command = [sys.executable, "-m", "torchdiag", "open", str(path), "--no-browser"]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode == 2
        assert f"port {PORT} of 127.0.0.1 is taken" in second.stderr
        assert "Traceback" not in second.stderr
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130


# A real browser.

PAGE = """<!doctype html><script>
fetch("http://127.0.0.1:%d%s")
  .then(answer => answer.arrayBuffer())
  .then(data => crypto.subtle.digest("SHA-256", data))
  .then(hash => [...new Uint8Array(hash)].map(byte => byte.toString(16).padStart(2, "0")).join(""))
  .catch(error => "refused: " + error)
  .then(outcome => fetch("/outcome", {method: "POST", body: outcome}))
</script>"""


class Site:
    """An https server for a page, which tells it what it could read."""

    def __init__(self, folder: Path, page: str) -> None:
        key, certificate = folder / "key.pem", folder / "certificate.pem"
        make = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=ui.perfetto.dev",
        ]
        subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
        self.outcomes: list[str] = []
        self.told = threading.Event()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(page.encode() if self.path == "/" else b"")

            def do_POST(self) -> None:
                site.outcomes.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self._answer(b"")
                site.told.set()

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def outcome_in_browser(self, host: str, folder: Path) -> str:
        """What the page says when a browser shows it as https://`host`, a public site."""
        port = self.server.server_port
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
        flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        flags += [f"--user-data-dir={folder / 'profile'}", "--ignore-certificate-errors"]
        flags += [f"--host-resolver-rules=MAP {host}:443 127.0.0.1:{port}"]
        # The page is to count as one from the internet; and the user as having allowed it to reach this machine.
        flags += [
            f"--ip-address-space-overrides=127.0.0.1:{port}=public",
            "--disable-features=LocalNetworkAccessChecks",
        ]
        browser = subprocess.Popen(
            [CHROMIUM, *flags, f"https://{host}/"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            assert self.told.wait(60), "the browser did not run the page"
        finally:
            browser.terminate()
            browser.wait(20)
            self.server.shutdown()
            self.server.server_close()
        return self.outcomes[0]


in_a_browser = pytest.mark.skipif(not CHROMIUM or not shutil.which("openssl"), reason="needs Chromium and openssl")


@in_a_browser
def test_perfettos_page_reads_the_file_in_chromium(serving: Serving, tmp_path: Path) -> None:
    site = Site(tmp_path, PAGE % (serving.port, QUOTED))
    assert site.outcome_in_browser("ui.perfetto.dev", tmp_path) == hashlib.sha256(CONTENT).hexdigest()
    assert serving.ended(10)


@in_a_browser
def test_another_page_may_not_read_it_in_chromium(serving: Serving, tmp_path: Path) -> None:
    site = Site(tmp_path, PAGE % (serving.port, QUOTED))
    assert site.outcome_in_browser("evil.example", tmp_path).startswith("refused: ")
    assert not serving.ended(0.2)


@in_a_browser
def test_perfettos_page_may_not_read_anything_else_in_chromium(serving: Serving, tmp_path: Path) -> None:
    site = Site(tmp_path, PAGE % (serving.port, "/../"))
    assert site.outcome_in_browser("ui.perfetto.dev", tmp_path).startswith("refused: ")
    assert not serving.ended(0.2)
