"""`prnas watch` as a server: what it serves, what it refuses, how it ends."""

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from prnas.report import server as watch_server
from prnas.report.server import LiveReport, WatchServer, trusted_host
from prnas.runs.records import CycleRecord
from tests.support.command_line import bad
from tests.support.live_watch import Watching, answers, ask, grow, wait_for, watching
from tests.support.synthetic_runs import (
    search_records,
    training_records,
    write_search,
    write_training,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watching]:
    folder = write_search(tmp_path_factory.mktemp("runs") / "a run", cycles=2)
    (folder.parent / "secret").write_text("secret")
    with watching(str(folder), "--port", "0") as found:
        yield found


def test_it_serves_the_page_and_its_data(server: Watching) -> None:
    assert "127.0.0.1" in server.url
    status, headers, body = ask(server.port)
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert "connect-src 'self'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert b'"live":true' in body
    status, headers, body = ask(server.port, "/data.json")
    assert status == 200
    assert json.loads(body)["runs"][0]["name"] == "a run"
    assert json.loads(body)["runs"][0]["done"] == 6
    status, again, nothing = ask(server.port, "/data.json", If_None_Match=headers["ETag"])
    assert (status, nothing) == (304, b"")
    assert again["ETag"] == headers["ETag"]
    status, headers, nothing = ask(server.port, "/data.json", "HEAD")
    assert (status, nothing) == (200, b"")
    assert headers["Content-Length"] == str(len(body))


@pytest.mark.parametrize(
    "path",
    [
        *("/records.jsonl", "/config.yaml", "/../secret", "/..%2fsecret", "//etc/passwd"),
        *("/data.json?x=1", "/?x", "/index.html", "*", "http://127.0.0.1/", "/a" * 3000),
    ],
    ids=lambda path: path[:20],
)
def test_no_other_path(server: Watching, path: str) -> None:
    status, _, body = ask(server.port, path)
    assert status == 404
    assert b"secret" not in body
    assert path.encode() not in body  # nothing of a request comes back


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"])
def test_no_other_method(server: Watching, method: str) -> None:
    assert ask(server.port, "/data.json", method)[0] == 405


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:9000", 200),  # through a tunnel
        ("[::1]:80", 200),
        ("evil.example", 421),
        ("evil.example:80", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("", 421),
    ],
)
def test_foreign_hosts_are_refused(server: Watching, host: str, status: int) -> None:
    assert ask(server.port, "/data.json", Host=host)[0] == status


def test_hosts() -> None:
    assert trusted_host(["my-machine:8777"], "my-machine")
    assert trusted_host(["0.0.0.0:8777"], "0.0.0.0")  # noqa: S104
    assert trusted_host(["192.0.2.7:8777"], "0.0.0.0")  # noqa: S104
    assert trusted_host(["[::1]:8777"], "127.0.0.1")
    assert trusted_host(["[2001:db8::1]"], "2001:db8::1")
    for foreign in ("8.8.8.8", "[::1]evil.example", "localhost:1@evil.example", "localhost:x", ""):
        assert not trusted_host([foreign], "127.0.0.1"), foreign
    assert not trusted_host(["evil.example"], "0.0.0.0")  # noqa: S104
    assert not trusted_host(["other:8777"], "my-machine")
    assert not trusted_host([], "127.0.0.1")
    assert not trusted_host(["127.0.0.1", "127.0.0.1"], "127.0.0.1")


def test_rubbish_and_giants_are_refused(server: Watching) -> None:
    for request, status in (
        (b"GET / HTTP/1.1\r\n\r\n", b"421"),  # no host at all
        (b"\x00\xff\x16\x03\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 500 + b"\r\n", b"431"),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"414"),
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(request)
            assert status in connection.recv(200).partition(b"\r\n")[0]
    assert ask(server.port)[0] == 200  # and it goes on


def test_slow_and_many_clients_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_server, "SECONDS", 1.0)
    monkeypatch.setattr(watch_server, "MOST_CONNECTIONS", 3)
    report = LiveReport(write_search(tmp_path / "run", cycles=1), print)
    server = WatchServer("127.0.0.1", 0, report, lambda: None)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        slow = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(3)]
        for one in slow:
            one.sendall(b"GET / HT")
        time.sleep(0.2)
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as late:
            assert late.recv(10) == b""  # one too many: closed at once
        for one in slow:
            one.settimeout(5)
            assert one.recv(10) == b""  # too slow: closed in the end
            one.close()
        time.sleep(0.2)
        assert ask(server.server_port)[0] == 200
    finally:
        server.shutdown()
        server.server_close()


def test_a_client_without_a_thread_takes_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine out of threads refuses some clients; it must not refuse all of them ever after."""
    monkeypatch.setattr(watch_server, "MOST_CONNECTIONS", 2)
    report = LiveReport(write_search(tmp_path / "run", cycles=1), print)
    server = WatchServer("127.0.0.1", 0, report, lambda: None)
    start = threading.Thread.start
    tired = True

    def no_more(thread: threading.Thread) -> None:
        if tired and thread is not serving:
            raise RuntimeError("can't start new thread")
        start(thread)

    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    monkeypatch.setattr(threading.Thread, "start", no_more)
    serving.start()
    try:
        for _ in range(4):
            assert not answers(server.server_port)
        tired = False
        wait_for(lambda: answers(server.server_port), time.monotonic() + 5)
    finally:
        server.shutdown()
        server.server_close()


def test_it_follows_a_run_through_a_resume(tmp_path: Path) -> None:
    records = search_records()
    folder = write_search(tmp_path / "run", cycles=2)
    file = folder / "records.jsonl"
    said: list[str] = []
    report = LiveReport(folder, said.append)

    def epochs() -> int:
        return json.loads(report.data()[0])["runs"][0]["done"]

    assert epochs() == 6
    whole = file.read_text(encoding="utf-8")
    with file.open("a") as more:
        more.write('{"type":"epo')  # a line that is being written
    assert epochs() == 6
    cut = whole.index("\n", len(whole) // 3) + 1
    file.write_text(whole[:cut], encoding="utf-8")  # a resumed run goes back
    assert epochs() < 6
    grow(folder, records[whole[:cut].count("\n") :])
    assert epochs() == 20
    assert report.ended
    with file.open("a") as more:
        more.write("rubbish\n")
    assert epochs() == 20  # what was known is still shown
    assert len(said) == 1
    assert "records.jsonl, line" in said[0]
    assert epochs() == 20
    assert len(said) == 1  # told once


def test_it_says_when_the_run_ends_and_stops_cleanly(tmp_path: Path) -> None:
    folder = write_search(tmp_path / "run", cycles=8)
    records = search_records()
    known = [i for i, one in enumerate(records) if isinstance(one, CycleRecord)][7] + 1
    with watching(str(folder), "--port", "0") as server:
        grow(folder, records[known:])
        assert "the run has ended" in server.line()
        assert ask(server.port)[0] == 200
        server.process.send_signal(signal.SIGINT)
        assert "stopped watching" in server.line()
        assert server.process.wait(10) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


def test_seeds_together(tmp_path: Path) -> None:
    for seed in (0, 1, 10):
        write_training(tmp_path / "group" / f"seed-{seed}", seed)
    with watching(str(tmp_path / "group"), "--port", "0") as server:
        runs = json.loads(ask(server.port, "/data.json")[2])["runs"]
        assert [run["seed"] for run in runs] == [0, 1, 10]
        assert "ended" in server.line()


def test_a_group_ends_with_its_last_seed(tmp_path: Path) -> None:
    """Seeds are trained one after the other: a folder that comes later is shown too."""
    group = tmp_path / "group"
    first = write_training(group / "seed-0", 0, end=False)
    (group / "group.json").write_text('{"format":"prnas-retrain-group","version":1,"seeds":[0,1]}')
    report = LiveReport(group, print)
    *_, end = training_records(0)
    grow(first, [end])
    page = json.loads(report.data()[0])
    assert [run["ended"] for run in page["runs"]] == [True]
    assert not page["ended"]
    assert not report.ended
    second = write_training(group / "seed-1", 1, end=False)
    (group / "seed-2").mkdir()  # not yet a run
    page = json.loads(report.data()[0])
    assert [run["name"] for run in page["runs"]] == ["seed-0", "seed-1"]
    assert page["title"] == "group"
    assert dict(page["head"]["facts"])["Seeds"] == "0, 1 (1 of 2 finished)"
    assert ["Go on if it stopped", f"prnas retrain --resume {group}"] in page["head"]["commands"]
    *_, end = training_records(1)
    grow(second, [end])
    page = json.loads(report.data()[0])
    assert page["ended"]
    assert report.ended
    commands = dict(page["head"]["commands"])
    assert commands["Repeat it with all seeds"] == (
        f"prnas retrain {group} {group}/config.yaml --seeds 2"
    )
    assert "Go on if it stopped" not in commands
    (group / "group.json").write_text("rubbish")  # it only informs
    assert LiveReport(group, print).ended


def test_one_broken_seed_hides_no_other(tmp_path: Path) -> None:
    first = write_training(tmp_path / "group" / "seed-0", 0, end=False)
    said: list[str] = []
    report = LiveReport(tmp_path / "group", said.append)
    broken = write_training(tmp_path / "group" / "seed-1", 1)
    (broken / "records.jsonl").write_text("rubbish\n")
    *_, end = training_records(0)
    grow(first, [end])
    page = json.loads(report.data()[0])
    assert [run["ended"] for run in page["runs"]] == [True, False]
    assert len(said) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "there is no run's folder nowhere"),
        (["."], "is not a run's folder: it has no config.yaml"),
        (["run", "--port", "70000"], "--port: must be from 0"),
        (["run", "--port", "many"], "a whole number is needed"),
        (["run", "--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid"),
        (["broken"], "broken/records.jsonl, line 1"),
        (["odd"], "odd/config.yaml"),
        ([], "run"),
    ],
)
def test_mistakes(tmp_path: Path, arguments: list[str], said: str) -> None:
    write_search(tmp_path / "run", cycles=1)
    (write_search(tmp_path / "broken", cycles=1) / "records.jsonl").write_text("[]\n")
    (write_search(tmp_path / "odd", cycles=1) / "config.yaml").write_text("- 1\n")
    assert said.lower() in " ".join(bad("watch", *arguments, cwd=tmp_path).split()).lower()


def test_a_taken_port(tmp_path: Path) -> None:
    write_search(tmp_path / "run", cycles=1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port}" in bad("watch", "run", "--port", port, cwd=tmp_path)
