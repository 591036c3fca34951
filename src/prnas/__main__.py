"""`python -m prnas`."""

from prnas.cli import main

if __name__ == "__main__":
    main()
