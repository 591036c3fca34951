"""A burst of bad clients against a live report on this machine, bounded in number and in time.

python -m torture.watch [--rounds 10] [--seed N]

Serves a made-up run and attacks it again and again; no thread and no handle may be left over.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, cast

import psutil

from prnas.report import server as watch_server
from prnas.report.server import LiveReport, WatchServer
from tests.support.synthetic_runs import write_search
from torture.torturer import torturer

SECONDS = 5.0  # that a client waits at most
MANY, SLOW = 300, 50  # clients in a burst

NEVER_CUT = b"a slow client was never cut off"
GOOD = b"GET /data.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
MALFORMED = [
    b"",
    b"\r\n\r\n",
    b"\0" * 100,
    b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(50),  # TLS
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    b"GET /../secret HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /%2e%2e/secret HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\na: " + b"b" * 70_000 + b"\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nx",
    b"PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
    b"CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    GOOD * 50,
]


def burst(port: int, malformed: int, slow: int, seed: int = 0) -> bytes:
    """So many clients at once; what the malformed ones got back. Slow ones stay until cut off."""
    random = Random(seed)
    got: list[bytes] = []
    clients = [
        threading.Thread(target=_send, args=(port, _request(random), got, False))
        for _ in range(malformed)
    ]
    clients += [threading.Thread(target=_send, args=(port, GOOD, got, True)) for _ in range(slow)]
    random.shuffle(clients)
    for client in clients:
        client.start()
    for client in clients:
        client.join(3 * SECONDS)
    assert not any(client.is_alive() for client in clients), "a client was never let go"
    return b"".join(got)


def _request(random: Random) -> bytes:
    request = random.choice(MALFORMED)
    if random.random() < 0.3:
        request = request[: random.randrange(len(request) + 1)] + random.randbytes(20)
    return request


def _send(port: int, request: bytes, got: list[bytes], slow: bool) -> None:
    with (
        contextlib.suppress(OSError),  # cut off, which is what it is for
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection,
    ):
        if not slow:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            got.append(connection.recv(100_000))
            return
        end = time.monotonic() + SECONDS
        for index in range(len(request)):
            connection.sendall(request[index : index + 1])
            time.sleep(0.2)
            if time.monotonic() > end:
                got.append(NEVER_CUT)
                return


def torture(folder: Path, random: Random, rounds: int) -> dict[str, Any]:
    """So many bursts; after each, a good client is served and nothing is left over."""
    watch_server.SECONDS = 2.0
    report = LiveReport(write_search(folder / "run", cycles=2), print)
    server = WatchServer("127.0.0.1", 0, report, lambda: None)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    port = cast(int, server.server_port)
    before = _held()
    seconds: list[float] = []
    for _ in range(rounds):
        start = time.monotonic()
        got = burst(port, malformed=MANY, slow=SLOW, seed=random.randrange(10**6))
        seconds.append(time.monotonic() - start)
        assert NEVER_CUT not in got
        _wait_until(lambda: _is_served(port), "a good client is not served any more")
        _wait_until(lambda: _is_within(_held(), before), f"more than {before}: {_held()}")
    server.shutdown()
    server.server_close()
    return {
        "bursts": rounds,
        "  malformed clients in each": MANY,
        "  slow clients in each": SLOW,
        "  seconds until all were let go, at most": f"{max(seconds):.1f}",
        "threads and handles left over": 0,
    }


def _held() -> tuple[int, int]:
    """Threads and handles of this process, server and clients alike."""
    return threading.active_count(), psutil.Process().num_fds()


def _is_within(held: tuple[int, int], most: tuple[int, int]) -> bool:
    return all(number <= limit for number, limit in zip(held, most, strict=True))


def _is_served(port: int) -> bool:
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection,
    ):
        connection.sendall(GOOD)
        return b" 200 " in connection.recv(100)
    return False


def _wait_until(happens: Callable[[], bool], problem: str) -> None:
    end = time.monotonic() + 3 * SECONDS
    while not happens():
        assert time.monotonic() < end, problem
        time.sleep(0.05)


if __name__ == "__main__":
    torturer(__doc__, torture, rounds=10)
