"""`prnas doctor`: versions, devices, folders and extras; what works here, and what does not."""

import sys

from prnas.commands.options import DoctorOptions
from prnas.commands.run_options import RUNS
from prnas.runs.diagnosis import healthy
from prnas.runs.examination import examine
from prnas.terminal.doctor_view import show_diagnosis
from prnas.terminal.output import show_json

UNHEALTHY = 1  # the exit code


def run(options: DoctorOptions) -> None:
    facts = examine(options.runs or RUNS, options.data_root)
    if options.as_json:
        show_json(facts.to_json())
    else:
        show_diagnosis(facts)
    if not healthy(facts):
        sys.exit(UNHEALTHY)
