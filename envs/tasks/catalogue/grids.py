"""Grids: turning them, and looking at their rows and regions."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from decentral.envs.tasks.catalogue.draws import until
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import GRID, INTEGER, INTEGERS

Grid = tuple[tuple[int, ...], ...]


def _few_colours(random: Random, level: int) -> Grid:
    """Draws zeros, ones and twos, so that equal cells touch."""
    columns = 3 + level // 2
    return tuple(tuple(random.choices(range(3), k=columns)) for _ in range(2 + (level + 1) // 2))


@task(takes=GRID, gives=INTEGERS, says="List the sum of each row.")
def row_sums(grid: Grid) -> tuple[int, ...]:
    return tuple(map(sum, grid))


@task(takes=INTEGERS, gives=GRID, says="Write the list as the first row, and reversed as the second.")
def two_rows(numbers: tuple[int, ...]) -> Grid:
    return numbers, numbers[::-1]


@task(takes=GRID, gives=INTEGERS, says="List the largest number of each column.")
def column_maxima(grid: Grid) -> tuple[int, ...]:
    return tuple(map(max, zip(*grid)))


@task(
    takes=GRID,
    gives=GRID,
    draw=until(GRID.draw, lambda grid: grid != tuple(zip(*grid))),
    says="Swap rows and columns: the first row becomes the first column.",
)
def transpose(grid: Grid) -> Grid:
    return tuple(zip(*grid))


@task(
    takes=GRID,
    gives=GRID,
    draw=until(_few_colours, lambda grid: any(low == 0 < up for rows in pairwise(grid) for up, low in zip(*rows))),
    says="Move all cells that are 0 to the top of their column; the others keep their order.",
)
def fall(grid: Grid) -> Grid:
    return tuple(zip(*(sorted(column, key=bool) for column in zip(*grid))))


@task(takes=GRID, gives=GRID, says="Turn the grid a quarter clockwise: the first row becomes the last column.")
def turn(grid: Grid) -> Grid:
    return tuple(zip(*grid[::-1]))


@task(takes=GRID, gives=GRID, says="Reverse each row.")
def mirror(grid: Grid) -> Grid:
    return tuple(row[::-1] for row in grid)


@task(takes=GRID, gives=GRID, says="Add to each cell the number that stood above it, if any.")
def add_above(grid: Grid) -> Grid:
    above = ((0,) * len(grid[0]), *grid)
    return tuple(tuple(cell + up for cell, up in zip(row, before)) for row, before in zip(grid, above))


@task(takes=GRID, gives=INTEGER, says="Add the cells on the diagonal from the top left down to the right.")
def trace(grid: Grid) -> int:
    return sum(row[place] for place, row in enumerate(grid) if place < len(row))


@task(takes=GRID, gives=INTEGER, draw=_few_colours, says="Count the regions of equal cells that touch by a side.")
def regions(grid: Grid) -> int:
    left = {(row, column): cell for row, cells in enumerate(grid) for column, cell in enumerate(cells)}
    found = 0
    while left:
        start, colour = left.popitem()
        found += 1
        edge = [start]
        while edge:
            row, column = edge.pop()
            for near in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if left.get(near) == colour:
                    del left[near]
                    edge.append(near)
    return found
