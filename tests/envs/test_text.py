"""Default texts: short, complete, and one per action."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from gymnasium import spaces

from decentral.envs.actions import Free
from decentral.envs.text import SpaceView, TextView, describe, has_nan
from decentral.errors import EnvError


def view_of(observation: spaces.Space, action: spaces.Space) -> SpaceView:
    return SpaceView(lambda agent: observation, lambda agent: action)


@pytest.mark.parametrize(
    ("value", "space", "text"),
    [
        (np.int64(3), spaces.Discrete(5), "3"),
        (True, None, "1"),
        ("a door", spaces.Text(10), "a door"),
        (np.array([1, 0, 2]), spaces.MultiDiscrete([3, 3, 3]), "1 0 2"),
        (np.array([1, 0, 1], dtype=np.int8), spaces.MultiBinary(3), "1 0 1"),
        (np.array([True, False]), None, "1 0"),
        (np.array([0.256, -0.001], dtype=np.float32), spaces.Box(-1, 1, (2,)), "0.26 0"),
        (np.array([0.256, -3.04], dtype=np.float32), spaces.Box(-np.inf, np.inf, (2,)), "0.3 -3"),
        (np.array([255.7, 12.2], dtype=np.float32), spaces.Box(0, 1000, (2,)), "256 12"),
        (np.array([np.inf]), None, "inf"),
        (np.array([[1, 2], [3, 4]]), None, "1 2 / 3 4"),
        (np.float32(0.5), None, "0.5"),
        (np.array(7), None, "7"),
        (np.zeros((0,)), None, ""),
        ({"b": 1, "a": 2}, spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Discrete(3)}), "a 2; b 1"),
        ((1, np.array([2, 3])), spaces.Tuple([spaces.Discrete(3), spaces.MultiDiscrete([4, 4])]), "1; 2 3"),
        ({"at": (1, 2)}, None, "at (1; 2)"),
        (None, None, "nothing"),
    ],
)
def test_values_read_short(value, space, text):
    assert describe(value, space) == text


def test_a_one_hot_board_reads_as_marks():
    board = np.zeros((2, 3, 2), dtype=np.int8)
    board[0, 0, 0] = board[1, 2, 1] = 1
    assert describe(board) == "x . . / . . o"
    board[0, 0, 1] = 1  # two marks in one cell: not a board, and nothing may be lost
    assert describe(board) == "1*2 0*9 1"


def test_big_arrays_read_as_runs_and_stay_bounded():
    assert describe(np.zeros(500, dtype=np.int8)) == "0*500"
    text = describe(np.arange(5000))
    assert text.endswith("... 5000 numbers")
    assert len(text) < 300


def test_values_without_a_text_are_refused():
    with pytest.raises(EnvError, match="type object has no default text; give the environment a text_view"):
        describe(object())


def test_text_actions_are_free():
    assert view_of(spaces.Discrete(2), spaces.Text(40)).actions("a", None) == Free(40)


def test_the_view_caches_by_content_and_never_aliases():
    view = view_of(spaces.MultiDiscrete([9, 9]), spaces.Discrete(3))
    reused = np.array([1, 2])
    assert view.observe("a", reused) == "1 2"
    reused[0] = 7
    assert view.observe("a", reused) == "7 2"
    mask = np.array([1, 0, 1], dtype=np.int8)
    assert list(view.actions("a", mask)) == ["0", "2"]
    mask[:] = (0, 1, 1)
    assert list(view.actions("a", mask)) == ["1", "2"]
    assert list(view.actions("a", None)) == ["0", "1", "2"]
    assert list(view.actions("a", [True, False, False])) == ["0"]
    assert copy.deepcopy(view) is view
    assert isinstance(view, TextView)


def test_equal_bytes_of_other_shapes_or_types_do_not_share_a_text():
    view = view_of(spaces.MultiBinary(4), spaces.Discrete(2))
    flat = np.array([1, 0, 0, 1], dtype=np.int8)
    assert view.observe("a", flat) == "1 0 0 1"
    assert view.observe("a", flat.reshape(2, 2)) == "1 0 / 0 1"
    assert view.observe("a", np.array([-1], dtype=np.int8)) == "-1"
    assert view.observe("a", np.array([255], dtype=np.uint8)) == "255"


def test_numbers_beside_a_mask_are_as_fine_as_their_own_space():
    part = spaces.Box(0, 1, (1,))
    space = spaces.Dict({"observation": part, "action_mask": spaces.MultiBinary(2)})
    assert view_of(space, spaces.Discrete(2)).observe("a", np.array([0.256])) == "0.26"


def test_nan_is_found_anywhere():
    assert has_nan({"a": (1, [np.array([0.0, np.nan])])})
    assert has_nan(float("nan"))
    assert has_nan(np.float32("nan"))
    assert not has_nan({"a": np.array([1]), "b": "nan", "c": np.array([np.inf])})


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.complex64])
def test_only_what_is_not_a_number_is_nan_however_large_or_infinite_the_others_are(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        largest = np.finfo(kind).max
        for fine in ([], [0.0, 1.0], [np.inf, -np.inf], [largest, -largest]):
            assert not has_nan(np.array(fine, kind))
            assert has_nan(np.array([[*fine, np.nan]], kind))
        assert has_nan(np.array(np.nan, kind))
