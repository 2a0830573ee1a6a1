"""What an environment does wrong is one sentence with its place, and ends an episode, not the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from decentral.envs.game import Game
from decentral.envs.names import load
from decentral.errors import EnvError

ENVS = Path(__file__).with_name("small_envs.py")
Lone, Words, play = (load(f"{ENVS}:{name}", "environment") for name in ("Lone", "Words", "play"))


class Blurred(Words):
    def actions(self, agent, mask):
        return {"left": 0, "right": 1}


class Broken(Lone):
    def step(self, actions):
        raise ZeroDivisionError("division\nby zero")


@pytest.mark.parametrize(
    ("env", "view", "message"),
    [
        (Lone(np.array([np.nan])), None, "the observation of 'a' holds NaN .in reset, round 0, seed 5, step 0."),
        (
            Lone(0, {"action_mask": np.zeros(3)}),
            None,
            "'a' must act and has no legal action .in reset, round 0, seed 5",
        ),
        (Lone(0, {"action_mask": np.ones(4)}), None, "mask of 4 entries does not fit 3 actions"),
        (Lone(), Blurred(), "3 legal actions but only 2 texts .*so two share one, or one is missing"),
        (Lone(object()), None, "type object has no default text"),
        (
            Lone(reward=float("nan")),
            None,
            "the reward of 'a' is nan .in step, round 1, seed 5, step 1, actions .'a': '.'..",
        ),
        (Broken(), None, "step raised ZeroDivisionError: division by zero .*seed 5, step 1, actions"),
        (Lone(success=lambda agent: 3), None, "success 3.0 of 'a' is not in .0, 1."),
        (Lone(success=lambda agent: 1 / 0), None, "success raised ZeroDivisionError"),
        (Lone(space=spaces.Box(0, 1, (1,))), None, "are continuous: set env.bins"),
        (Lone(text_view=object()), None, "text_view raised AttributeError"),
    ],
)
def test_what_an_environment_does_wrong_is_one_sentence(env, view, message):
    game = Game(env, view=view, name="lone")
    with pytest.raises(EnvError, match=message) as caught:
        play(game, 5)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("lone: ")
    assert game.turns() == ()


def _exit(*_: Any, **__: Any) -> Any:
    raise SystemExit(0)


@pytest.mark.parametrize(
    "attributes",
    [
        {"reset": _exit},
        {"step": _exit},
        {"success": _exit},
        {"instructions": _exit},
        {"text_view": type("View", (), {"observe": _exit, "actions": _exit})()},
        {"render": _exit, "render_mode": "ansi"},
    ],
)
def test_an_environment_that_exits_ends_its_episode_and_not_the_process(attributes: dict[str, Any]) -> None:
    game = Game(Lone(**attributes), name="lone")

    def whole() -> None:
        play(game, 5)
        game.render()

    with pytest.raises(EnvError, match=r"^lone: .* raised SystemExit"):
        whole()


def test_closing_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    closed: list[bool] = []
    Game(Lone(close=lambda: closed.append(True))).close()
    Game(Lone(close=_exit)).close()
    Game(Lone(close=lambda: 1 / 0)).close()
    assert closed == [True]
    assert capsys.readouterr() == ("", "")
