"""Images as text: a coarse grid, said to be lossy, and a reader of one's own in its place."""

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from decentral.envs.check import check_env
from decentral.envs.config import EnvConfig
from decentral.envs.images import as_image, colour_grid
from decentral.envs.names import make
from decentral.envs.text import describe


class Lamp(ParallelEnv):
    """An image is red or blue; the button of its colour wins."""

    def __init__(self):
        self.metadata = {"name": "lamp"}
        self.possible_agents = ["ada"]
        self.image = spaces.Box(0, 255, (32, 32, 3), np.uint8)
        self.press = spaces.Discrete(2)

    def observation_space(self, agent):
        return self.image

    def action_space(self, agent):
        return self.press

    def reset(self, seed=None, options=None):
        self.agents = ["ada"]
        self.lit = int(np.random.default_rng(seed).integers(2))
        return self.see(), {"ada": {}}

    def see(self):
        image = np.zeros((32, 32, 3), np.uint8)
        image[:16, :16, 2 if self.lit else 0] = 230
        return {"ada": image}

    def step(self, actions):
        won = int(actions["ada"]) == self.lit
        self.agents = []
        return self.see(), {"ada": float(won)}, {"ada": True}, {"ada": False}, {"ada": {}}


def lamp():
    return Lamp()


def brightness(image):
    return f"brightness {image.mean():.0f}"


def test_a_grid_shows_colours_where_they_are():
    image = np.zeros((40, 64, 3), np.uint8)
    image[:20, 32:] = (230, 30, 30)
    image[20:, :8] = 255
    rows = colour_grid(image).split(" / ")
    assert rows == ["....rrrr"] * 4 + ["w......."] * 4


@pytest.mark.parametrize("channels", [1, 4])
def test_grey_and_alpha_are_images_too(channels):
    assert colour_grid(np.full((16, 16, channels), 255, np.uint8)) == " / ".join(["w" * 8] * 8)


BYTES = spaces.Box(0, 255, (16, 24), np.uint8)


@pytest.mark.parametrize(("shape", "space"), [((3, 16, 24), None), ((1, 16, 24), None), ((16, 24), BYTES)])
def test_channels_may_come_first_or_be_left_out(shape, space):
    image = np.zeros(shape, np.uint8)
    image[..., :12] = 255
    assert describe(image, space) == " / ".join(["wwww...."] * 8)


def test_boards_are_no_images():
    assert as_image(np.zeros((8, 8, 3), np.uint8)) is None
    assert as_image(np.zeros((84, 84, 3), np.int64)) is None
    assert as_image(np.zeros((84, 84, 2), np.uint8)) is None
    assert as_image(np.zeros((19, 19), np.uint8)) is None
    assert as_image(np.zeros((19, 19), np.uint8), spaces.Box(0, 2, (19, 19), np.uint8)) is None
    assert as_image(np.zeros((8, 8), np.uint8), spaces.Box(0, 255, (8, 8), np.uint8)) is None
    assert describe({"at": np.uint8(3), "view": np.zeros((16, 16, 1), np.uint8)}).startswith("at 3; view ........ / ")


def test_the_check_says_what_is_lost():
    report = check_env(lamp)
    assert report.ok, [row for row in report.rows if not row.ok]
    assert any("32 x 32 pixels read as a coarse grid" in row.detail for row in report.rows if row.name == "images")


def test_a_reader_of_ones_own_takes_the_grids_place():
    game = make(EnvConfig(name=f"{__file__}:lamp", picture=f"{__file__}:brightness"))
    game.reset(0)
    assert game.turns()[0].observation == "brightness 19"
