"""`python -m tidegate` is the same as the command `tidegate`."""

from tidegate.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
