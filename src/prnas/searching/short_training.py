"""One short training as a job of its own: `python -m prnas.searching.short_training FILE`.

FILE has the job (`training_pool.job_of`). The score is written beside it; an exit code says why
there is none.
"""

import json
import sys
from pathlib import Path

from prnas.runs import signals

SCORE = ".score"  # instead of the suffix of the job's file
USER_ERROR = 2


def main(file: Path) -> int:
    # Heavy, and not before the process follows its parent.
    from prnas.io.atomic import write_atomically
    from prnas.io.errors import FormatError, UserError
    from prnas.runs.run import Stopped
    from prnas.searching.training_pool import score_of, scorer_of

    job = json.loads(file.read_text(encoding="utf-8"))
    with signals.stop_signals() as stopping:
        try:
            scorer = scorer_of(job)
            try:
                scorer.signals = stopping
                score = score_of(scorer, job)
            finally:
                scorer.close()
        except Stopped as stopped:
            return signals.EXIT + stopped.number
        except (UserError, FormatError) as problem:
            print(f"prnas: {problem}", file=sys.stderr)
            return USER_ERROR
    write_atomically(file.with_suffix(SCORE), json.dumps(score).encode())
    return 0


if __name__ == "__main__":
    signals.guard(runs=True)
    signals.follow_parent()
    sys.exit(main(Path(sys.argv[1])))
