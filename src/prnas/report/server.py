"""A small server for a live report. It knows two addresses of each page and trusts no request."""

import hashlib
import ipaddress
import re
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from prnas.io.errors import UserError
from prnas.report.html import escaped_json, policy, render
from prnas.report.page import page_data
from prnas.report.read_run import RunFollower, read_group, runs_in
from prnas.runs.names import REPORT

MOST_CONNECTIONS = 32
SECONDS = 15.0  # time limit of a request and its answer
DATA = "data.json"
HEADERS = {
    "Content-Security-Policy": f"{policy(live=True)}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Live(ABC):
    """A page that a server shows, and the data that change in it. Thread-safe.

    The folder is read at each request; the page is rendered anew when something has changed.
    """

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder, self._say = folder, say
        self._lock = threading.Lock()
        self._problem = ""

    @property
    def ended(self) -> bool:
        """Nothing more will come, not even another seed."""
        return self._data["ended"]

    def data(self) -> tuple[bytes, str]:
        """JSON, and a tag that changes with it."""
        with self._lock:
            self._read()
            return self._json, self._tag

    def page(self) -> bytes:
        with self._lock:
            self._read()
            return render(self._data, live=True).encode()

    @abstractmethod
    def subpage(self, folder: str) -> "Live | None":
        """The page in a folder of the address, such as '/row/seed-0', if there is one."""

    @abstractmethod
    def _update(self) -> None:
        """Look for news, and `_show` them."""

    def _read(self) -> None:
        try:
            self._update()
            self._problem = ""
        except (UserError, OSError) as error:
            # What was read before is still true; the file may be whole again the next time.
            if str(error) != self._problem:
                self._problem = str(error)
                self._say(f"note: {error}")

    def _show(self, data: dict[str, Any]) -> None:
        self._data = data
        self._json = escaped_json(data).encode()
        self._tag = f'"{hashlib.sha256(self._json).hexdigest()[:32]}"'


class LiveReport(Live):
    """The runs as they are now."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        super().__init__(folder, say)
        self._followers: dict[Path, RunFollower] = {}
        self._update()

    def subpage(self, folder: str) -> None:
        """A run has no pages beneath."""

    def _update(self) -> None:
        """Look for new records, and in a group for new runs: its seeds are trained in turn."""
        problems: list[UserError] = []
        before, self._followers = self._followers, {}
        try:
            for path in runs_in(self._folder):
                self._followers[path] = before.get(path) or RunFollower(path)
        except UserError as error:
            self._followers = {**before, **self._followers}
            problems.append(error)
        news = before.keys() != self._followers.keys()
        for follower in self._followers.values():
            try:
                news = follower.update() or news
            except UserError as error:
                problems.append(error)
        # What is wrong from the start is not served.
        if news and (before or not problems):
            views = [follower.view for follower in self._followers.values()]
            self._show(page_data(views, read_group(self._folder)))
        if problems:
            raise problems[0]


class WatchServer(ThreadingHTTPServer):
    """Serves a live report; `tick` is called every half second or so."""

    daemon_threads = True

    def __init__(self, host: str, port: int, report: Live, tick: Callable[[], None]) -> None:
        self.report, self._tick = report, tick
        self.host_name = host.lower()
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def service_actions(self) -> None:
        self._tick()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started: the slot is free again
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        # However slowly a client reads or writes, it is cut off in the end.
        timer = threading.Timer(SECONDS, _cut, (request,))
        timer.daemon = True
        try:
            timer.start()
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self.shutdown_request(request)  # Needed even if the timer could not be started.
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left in the middle is no news."""


def _cut(request: socket.socket) -> None:
    with suppress(OSError):  # it may be gone already
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: WatchServer  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version, sys_version = "prnas", ""
    timeout = SECONDS

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.command not in ("GET", "HEAD"):
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED)
        elif not trusted_host(self.headers.get_all("Host") or [], self.server.host_name):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
        elif (live := self._live()) is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            self._shown = live
            return True
        return False

    def _live(self) -> Live | None:
        """The page that an address names, itself or by its data: the report, or one beneath it."""
        folder, _, file = self.path.rpartition("/")
        if not folder:
            return self.server.report if file in ("", DATA) else None
        return self.server.report.subpage(folder) if file in (REPORT, DATA) else None

    def do_GET(self) -> None:
        if not self.path.endswith(f"/{DATA}"):
            self._answer(HTTPStatus.OK, self._shown.page(), "text/html; charset=utf-8")
            return
        body, tag = self._shown.data()
        if self.headers.get("If-None-Match") == tag:
            self._answer(HTTPStatus.NOT_MODIFIED, b"", None, ETag=tag)
        else:
            self._answer(HTTPStatus.OK, body, "application/json", ETag=tag)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _refuse(self, status: HTTPStatus) -> None:
        more = {"Allow": "GET, HEAD"} if status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        self._answer(status, f"{status.phrase}\n".encode(), "text/plain; charset=utf-8", **more)

    def _answer(self, status: HTTPStatus, body: bytes, kind: str | None, **more: str) -> None:
        self.send_response(status)
        for name, value in (HEADERS | more).items():
            self.send_header(name, value)
        if kind is not None:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Requests are not worth a line, and could write anything into the terminal."""


_HOST = re.compile(r"(\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[^\[\]:@/\s]+))(:[0-9]{1,5})?", re.ASCII)


def trusted_host(values: Sequence[str], listening: str) -> bool:
    """Whether a request names this machine: by the host it listens on, or a loopback address.

    A server that listens on all addresses does not know by which it is reached: then any address
    will do, but no other name. A web site that lets its own name point here (DNS rebinding) would
    come with that name.
    """
    match = _HOST.fullmatch(values[0].strip().lower()) if len(values) == 1 else None
    if match is None:
        return False
    host = match["six"] or match["name"]
    if host in ("localhost", listening):
        return True
    try:
        address = ipaddress.ip_address(host)
        return address.is_loopback or ipaddress.ip_address(listening).is_unspecified
    except ValueError:
        return False
