"""What a view says and offers makes a turn, or is refused, also when it was right before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from decentral.envs.config import EnvConfig
from decentral.envs.game import Game
from decentral.envs.names import load, make
from decentral.errors import EnvError

ENVS = Path(__file__).with_name("small_envs.py")
Lone, Words, play = (load(f"{ENVS}:{name}", "environment") for name in ("Lone", "Words", "play"))


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ({"left": 0, "right": 1}, "3 legal actions but only 2 texts"),
        ({"left": 0, "right": 1, "wait": 2.0}, "'wait' is 2.0, which Discrete.3. does not hold"),
        ({"left": 0, "right": 1, "wait": 3}, "'wait' is 3, which Discrete.3. does not hold"),
        ({"left": 0, "right": 1, "\ud800": 2}, "lone surrogate"),
    ],
)
def test_a_table_that_was_right_once_is_examined_again_when_it_changes(later, message):
    class Shifty(Words):
        def __init__(self):
            self.table = Words().actions("a", None)

        def actions(self, agent, mask):
            return self.table

    view = Shifty()
    game = Game(Lone(), view=view)
    game.reset(0)
    view.table.clear()
    view.table.update(later)
    with pytest.raises(EnvError, match=message):
        game.reset(0)


def test_a_mask_of_fewer_actions_is_examined_though_the_table_is_the_same():
    env = Lone(0, {"action_mask": np.ones(3, np.int8)}, text_view=Words())
    game = Game(env)
    game.reset(0)
    env.info["action_mask"] = np.array([1, 0, 1], np.int8)
    with pytest.raises(EnvError, match="offers 'a' 3 actions and only 2 are legal"):
        game.reset(0)


@pytest.mark.parametrize(
    ("observe", "actions", "said"),
    [
        (lambda agent, seen: 5, lambda agent, mask: {"go": 0}, "observe returned a int"),
        (lambda agent, seen: "x", lambda agent, mask: [("go", 0)], "actions returned a list"),
        (lambda agent, seen: "x", lambda agent, mask: {0: 0}, "actions returned a dict"),
    ],
)
def test_a_view_that_returns_no_text_is_named(observe: Any, actions: Any, said: str) -> None:
    view = type("Odd", (), {"observe": staticmethod(observe), "actions": staticmethod(actions)})()
    game = make(EnvConfig(name="meet"))
    with pytest.raises(EnvError, match=said):
        Game(game.env, name="meet", view=view).reset(0)


BAD = "a\ud800"


@pytest.mark.parametrize(
    "attributes",
    [
        {"text_view": type("Bad", (), {"observe": lambda *_: BAD, "actions": lambda *_: {"go": 0, "b": 1, "c": 2}})()},
        {"text_view": type("Bad", (), {"observe": lambda *_: "x", "actions": lambda *_: {BAD: 0, "b": 1, "c": 2}})()},
        {"info": {"feedback": BAD}},
        {"instructions": lambda agent: BAD},
    ],
)
def test_half_a_surrogate_pair_is_named(attributes: dict[str, Any]) -> None:
    with pytest.raises(EnvError, match=r"a text for 'a' holds a lone surrogate \('.*\\ud800'\)") as caught:
        play(Game(Lone(**attributes)), 5)
    str(caught.value).encode()


def test_half_a_surrogate_pair_in_the_last_feedback_or_in_an_exception_is_named() -> None:
    class Late(Lone):
        def step(self, actions):
            self.info = {"feedback": BAD}
            return super().step(actions)

    class Raises(Lone):
        def step(self, actions):
            raise ValueError(BAD)

    for kind in (Late, Raises):
        with pytest.raises(EnvError, match="ud800") as caught:
            play(Game(kind()), 5)
        str(caught.value).encode()
