"""`prnas`, and `python -m prnas`."""

import sys

RUNS = ("search", "retrain", "study", "fit")


def main() -> None:
    """The console command; signals are taken seriously from the first import on."""
    from prnas.runs import signals

    sys.argv[0] = "prnas"  # A run notes this, and not the path of the script.
    signals.guard(runs=any(word in RUNS for word in sys.argv[1:2]))
    signals.follow_parent()
    try:
        from prnas.cli import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:
        if signals.interrupted:  # whoever was being imported made another error of it
            sys.exit(130)
        raise
    finally:
        signals.leave_from_now()


if __name__ == "__main__":
    main()
