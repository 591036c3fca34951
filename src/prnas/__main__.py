"""`prnas`, and `python -m prnas`."""

import sys


def main() -> None:
    """The console command; Ctrl-C is taken seriously from the first import on."""
    try:
        from prnas.cli import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
