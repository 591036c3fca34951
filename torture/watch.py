"""A burst of bad clients against a live report on this machine, bounded in number and in time.

`python -m torture.watch --rounds 20` serves a made-up run, attacks it again and again, and says how
many threads and handles are left over: none should be.
"""

import argparse
import contextlib
import secrets
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import cast

from prnas.commands import watch_server
from prnas.commands.watch_server import LiveReport, WatchServer
from tests.synthetic_runs import write_search

SECONDS = 5.0  # that a client waits at most

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
    for one in clients:
        one.start()
    for one in clients:
        one.join(3 * SECONDS)
    assert not any(one.is_alive() for one in clients), "a client was never let go"
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
        for place in range(len(request)):
            connection.sendall(request[place : place + 1])
            time.sleep(0.2)
            if time.monotonic() > end:
                got.append(NEVER_CUT)
                return


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture.watch", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--rounds", type=int, default=10)
    wanted = parser.parse_args()
    print(f"seed {wanted.seed}")
    watch_server.SECONDS = 2.0
    with tempfile.TemporaryDirectory() as folder:
        report = LiveReport(write_search(Path(folder) / "run", cycles=2), print)
        server = WatchServer("127.0.0.1", 0, report, lambda: None)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        port = cast(int, server.server_port)
        before = threading.active_count()
        for number in range(wanted.rounds):
            start = time.monotonic()
            got = burst(port, malformed=300, slow=50, seed=wanted.seed + number)
            time.sleep(2 * watch_server.SECONDS)
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
                connection.sendall(GOOD)
                served = b" 200 " in connection.recv(100)
            left = threading.active_count() - before
            print(f"round {number}: {time.monotonic() - start:.1f} s, served {served}, left {left}")
            if (
                not served or NEVER_CUT in got or left > 1
            ):  # the good client's own may still be ending
                return 1
        server.shutdown()
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
