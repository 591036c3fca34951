"""`prnas watch`: the report of a run or a study, live, on this machine."""

import errno
import ipaddress
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from prnas.commands.options import WatchOptions
from prnas.io.errors import UserError
from prnas.report.server import Live, LiveReport, WatchServer
from prnas.studies.folder import is_study
from prnas.terminal.output import show

PORT = 8777  # The default, if it is free.


def run(folder: Path, options: WatchOptions) -> None:
    """Serve until Ctrl-C."""
    host, port = options.host, options.port
    study = is_study(folder)
    what = "study" if study else "run"
    report: Live
    if study:
        from prnas.studies.live_page import LiveStudy

        report = LiveStudy(folder, _say)
    else:
        report = LiveReport(folder, _say)
    said_end = report.ended

    def tick() -> None:
        nonlocal said_end
        report.data()
        if report.ended and not said_end:
            said_end = True
            _say(f"the {what} has ended; its report stays here until Ctrl-C")

    server = _listen(host, port, report, tick)
    shown = f"[{host}]" if ":" in host else host
    _say(f"watching {folder}: http://{shown}:{server.server_port}/ (Ctrl-C ends)")
    if report.ended:
        _say(f"the {what} has ended; nothing new will come")
    if not _is_loopback(host):
        _say("note: whoever can reach this address can see the report")
    # A shell starts background processes with SIGINT ignored, so both handlers are set here.
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, _interrupt) for number in numbers}
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        _say(f"stopped watching; the {what} itself is untouched")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        server.server_close()


def _say(text: str) -> None:
    show(text)
    sys.stdout.flush()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _listen(host: str, port: int | None, report: Live, tick: Callable[[], None]) -> WatchServer:
    try:
        try:
            return WatchServer(host, PORT if port is None else port, report, tick)
        except OSError as error:
            if port is not None or error.errno != errno.EADDRINUSE:
                raise
            return WatchServer(host, 0, report, tick)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such address"
        raise UserError(
            f"cannot listen on {host}, port {PORT if port is None else port}: {reason}. "
            f"--port 0 takes any free port; --host is an address of this machine"
        ) from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
