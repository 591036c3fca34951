"""The live report under malformed and slow requests, as `python -m torture.watch` sends them."""

import threading
import time
from pathlib import Path

import pytest

from prnas.report import server as watch_server
from prnas.report.server import LiveReport, WatchServer
from tests.support.live_watch import answers, ask, handles, wait_for
from tests.support.synthetic_runs import write_search
from torture.watch import NEVER_CUT, burst


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="handles are counted on Linux")
def test_it_survives_a_burst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 malformed requests and 50 slow ones at once; then all is as it was before."""
    monkeypatch.setattr(watch_server, "SECONDS", 1.0)
    report = LiveReport(write_search(tmp_path / "run", cycles=1), print)
    server = WatchServer("127.0.0.1", 0, report, lambda: None)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        assert ask(server.server_port)[0] == 200
        threads, open_before = threading.active_count(), handles()
        start = time.monotonic()
        got = burst(server.server_port, malformed=300, slow=50)
        assert NEVER_CUT not in got
        assert b"evil" not in got  # nothing of a request comes back
        wait_for(lambda: answers(server.server_port), start + 20)
        wait_for(lambda: threading.active_count() <= threads, start + 20)
        wait_for(lambda: handles() <= open_before, start + 20)
        # Every slot is free again: as many clients as ever are served at once.
        for _ in range(watch_server.MOST_CONNECTIONS + 1):
            wait_for(lambda: answers(server.server_port), start + 25)
    finally:
        server.shutdown()
        server.server_close()
