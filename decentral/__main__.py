"""Where the command starts. Caps this process's threads before anything can import torch."""

from __future__ import annotations

__all__ = ["main"]

import os

from decentral.threads import cap, share


def main() -> None:
    """Runs the command line and ends the process with its exit code.

    A process that a run started has its caps from there; any other takes all cores, without spinning.
    """
    given = os.environ.get("OMP_NUM_THREADS", "")
    cap(int(given) if given.isdigit() and int(given) else share(1))
    from decentral.commands import app

    app()


if __name__ == "__main__":
    main()
