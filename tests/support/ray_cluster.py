"""A real Ray cluster of this machine, in processes of its own, for as long as it is wanted."""

import importlib.util
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

NEEDED = "PRNAS_NEED_RAY"  # Set: a missing Ray is a failure, not a skip.
_CLUSTER = """
import sys, ray
from prnas.studies.ray_driver import LOOPBACK, STORE
ray.init(
    "local", num_cpus=2, num_gpus=0, object_store_memory=STORE, include_dashboard=False,
    log_to_driver=False, logging_level="ERROR", _node_ip_address=LOOPBACK,
)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""


def need_ray() -> None:
    if importlib.util.find_spec("ray") is None:
        if os.environ.get(NEEDED):
            pytest.fail("Ray is missing: pip install ray", pytrace=False)
        pytest.skip("Ray is not installed: pip install ray")


@contextmanager
def ray_cluster() -> Iterator[tuple[str, dict[str, str]]]:
    """Its address, and the environment variables with its key."""
    key = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:  # Short
        own = {
            "RAY_TMPDIR": folder,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_memory_monitor_refresh_ms": "0",
            "RAY_kill_child_processes_on_worker_exit": "false",
        }
        with subprocess.Popen(
            [sys.executable, "-c", _CLUSTER],
            env={**os.environ, **key, **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), key
