"""Images as text: the place where a vision encoder will attach, and a coarse grid until then.

Knows nothing about environments or views.
"""

from __future__ import annotations

__all__ = ["Picture", "as_image", "colour_grid"]

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

CELLS = 8
"""Rows and columns of the grid, at most."""
_SMALLEST = 16
"""Pixels: smaller arrays are boards, not images."""
_COLOURS = {
    ".": (0, 0, 0),
    "-": (128, 128, 128),
    "w": (255, 255, 255),
    "r": (220, 40, 40),
    "g": (40, 180, 40),
    "b": (50, 80, 230),
    "y": (240, 220, 50),
    "o": (240, 140, 30),
    "p": (160, 60, 200),
    "c": (60, 210, 220),
    "n": (120, 70, 30),
}
_MARKS = list(_COLOURS)
_VALUES = np.array(list(_COLOURS.values()), dtype=np.float64)


class Picture(Protocol):
    """How an image reads: a text for what it shows."""

    def __call__(self, image: npt.NDArray[np.uint8]) -> str:
        """Returns the text of a (height, width, channels) image, with 1, 3 or 4 channels."""
        ...


def as_image(value: Any, space: Any = None) -> npt.NDArray[np.uint8] | None:
    """Returns a value as (height, width, channels), if it is an image: bytes, at least 16 pixels on each side.

    Of rank 3, with 1, 3 or 4 channels, last or first; of rank 2 only where its space goes from 0 to 255, since boards
    have that rank too.
    """
    if not (isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim in (2, 3)):
        return None
    if value.ndim == 2:
        full = isinstance(space, spaces.Box) and bool(np.all(space.low == 0) and np.all(space.high == 255))
        return value[..., None] if full and min(value.shape) >= _SMALLEST else None
    for image in (value, np.moveaxis(value, 0, 2)):
        if min(image.shape[:2]) >= _SMALLEST and image.shape[2] in (1, 3, 4):
            return image
    return None


def colour_grid(image: npt.NDArray[np.uint8]) -> str:
    """Returns a grid of at most 8 x 8 letters, each the colour nearest to the mean of its part of the image.

    ``.`` black, ``-`` grey, w white, r red, g green, b blue, y yellow, o orange, p purple, c cyan, n brown. Shapes
    smaller than a part are lost: this is for a first try, not for games that live on detail.

    >>> colour_grid(np.full((16, 32, 3), 255, np.uint8)).split(" / ")[0]
    'wwwwwwww'
    """
    pixels = image[..., :3].astype(np.float64)
    if pixels.shape[2] == 1:
        pixels = pixels.repeat(3, 2)
    rows = [part.mean(0) for part in np.array_split(pixels, CELLS)]
    cells = np.array([[part.mean(0) for part in np.array_split(row, CELLS)] for row in rows])
    nearest = ((cells[:, :, None] - _VALUES) ** 2).sum(-1).argmin(-1)
    return " / ".join("".join(_MARKS[i] for i in row) for row in nearest.tolist())
