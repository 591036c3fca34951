"""How a search chooses between the two ways to compute its supernet."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

import prnas
from prnas.nets.supernet import build_supernet
from prnas.runs.records import ExecutionRecord, read_records
from prnas.searching import execution
from prnas.searching.execution import TIMED, WARM_UP, ExecutionTrial, fused_works
from prnas.space.pools import Pools
from prnas.space.setting import INITIAL_POOL
