"""One thread a test process: pytest-xdist runs as many processes as there are cores."""

import torch

torch.set_num_threads(1)
