"""An agent's checkpoints: one folder per iteration, whole or absent. Knows nothing about what is in them."""

from __future__ import annotations

__all__ = ["Checkpoints", "write_folder"]

import shutil
from collections.abc import Callable
from pathlib import Path

from decentral.disk import disk_error, sync_folder
from decentral.errors import DecentralError, RunError

_KEPT = 2


class Checkpoints:
    """The folders ``00000``, ``00001``, ... below one folder; number k holds the agent after k iterations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, iteration: int, write: Callable[[Path], None]) -> None:
        """Lets ``write`` fill a new folder, and puts it in its place when it is whole. Raises RunError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_folder(self._place(iteration), write)

    def saved(self) -> list[int]:
        """Returns the iterations that can be loaded, in order."""
        return sorted(int(path.name) for path in self.folder.glob("[0-9]*") if path.is_dir() and path.name.isdigit())

    def path(self, iteration: int) -> Path:
        """Returns the folder of one iteration. Raises RunError if it is not there."""
        place = self._place(iteration)
        if not place.is_dir():
            if not self.saved():
                raise RunError(
                    f"checkpoint {iteration} is missing in {str(self.folder)!r}, which has none yet: let the run begin "
                    "with `decentral train --resume`"
                )
            have = ", ".join(map(str, self.saved()))
            raise RunError(
                f"checkpoint {iteration} is missing in {str(self.folder)!r} (there: {have}): start the run anew with "
                "another --out"
            )
        return place

    def prune(self, committed: int) -> None:
        """Removes what is older than the checkpoint before ``committed``."""
        for iteration in self.saved():
            if iteration <= committed - _KEPT:
                shutil.rmtree(self._place(iteration), ignore_errors=True)

    def _place(self, iteration: int) -> Path:
        return self.folder / f"{iteration:05d}"


def write_folder(place: Path, write: Callable[[Path], None]) -> None:
    """Lets ``write`` fill an empty folder beside ``place``, syncs it, and renames it to ``place``, replacing that.

    Raises RunError if it cannot be written, and whatever DecentralError ``write`` raises; ``place`` is then as it was.
    """
    beside, old = place.with_name(f".{place.name}.tmp"), place.with_name(f".{place.name}.old")
    try:
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        write(beside)
        for path in [beside, *beside.rglob("*")]:
            sync_folder(path)
        if place.exists():
            shutil.rmtree(old, ignore_errors=True)
            place.rename(old)
        beside.rename(place)
        sync_folder(place.parent)
        shutil.rmtree(old, ignore_errors=True)
    except DecentralError:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise disk_error(place, error) from error
    except Exception as error:  # a library's own way to say that the disk is full
        shutil.rmtree(beside, ignore_errors=True)
        raise RunError(
            f"cannot write {str(place)!r}: {type(error).__name__}: {error}; if the disk is full, make room and go on "
            f"with `decentral train --resume` and the run's folder"
        ) from error
