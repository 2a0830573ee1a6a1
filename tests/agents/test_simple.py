from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decentral.agents.mind import Ended, Mind, Phase, Request
from decentral.agents.simple import HumanMind, RandomMind, ScriptedMind
from decentral.envs.turn import Outcome, Turn
from decentral.errors import ConfigError, ModelError

LEGAL = ("north", "south", "stay")


def request(episode: int, number: int = 0) -> Request:
    return Request(episode, episode, Turn("ann", number, f"at {number}", legal=LEGAL))


def play(mind: Mind, batches: list[list[int]]) -> dict[int, list[str]]:
    """Plays episodes in batches of their numbers; returns each one's actions."""
    mind.begin(Phase("train", 0))
    played: dict[int, list[str]] = {}
    for batch in batches:
        asked = [request(episode, len(played.get(episode, []))) for episode in batch]
        for one, action in zip(asked, mind.act(asked)):
            played.setdefault(one.episode, []).append(action)
    return played


@given(st.randoms(use_true_random=False))
def test_random_draws_do_not_depend_on_batches_or_order(order) -> None:
    wanted = play(RandomMind("ann", 7), [[1, 2, 3]] * 4)
    left = [1, 2, 3] * 4
    order.shuffle(left)
    batches: list[list[int]] = [[]]
    for episode in left:
        if episode in batches[-1] or order.random() < 0.4:
            batches.append([])
        batches[-1].append(episode)
    assert play(RandomMind("ann", 7), batches) == wanted


def test_random_is_uniform_and_keyed_by_seed_name_and_episode() -> None:
    def first(name: str, seed: int) -> list[str]:
        mind = RandomMind(name, seed)
        mind.begin(Phase("eval", 0))
        return mind.act([request(episode) for episode in range(3000)])

    counts = Counter(first("ann", 0))
    assert set(counts) == set(LEGAL)
    assert all(abs(count - 1000) < 120 for count in counts.values())
    assert first("ann", 0) == first("ann", 0)
    assert first("ann", 0) != first("ann", 1)
    assert first("ann", 0) != first("ben", 0)


def test_random_says_something_short_on_a_free_turn() -> None:
    mind = RandomMind("ann", 0)
    mind.begin(Phase("eval", 0))
    (text,) = mind.act([Request(1, 1, Turn("ann", 0, "say", free=3))])
    assert len(text) == 3
    assert text.isalpha()


def test_a_phase_that_is_started_over_draws_the_same() -> None:
    mind = RandomMind("ann", 7)
    assert play(mind, [[1, 2], [1]]) == play(mind, [[1, 2], [1]])


def test_a_script_is_asked_with_the_turn() -> None:
    mind = ScriptedMind("ann", lambda turn: turn.legal[turn.round % 2])
    assert play(mind, [[1], [1]]) == {1: ["north", "south"]}


@pytest.mark.parametrize("answer", ["up", None, 3])
def test_an_illegal_script_is_named(answer: object) -> None:
    mind = ScriptedMind("ann", lambda turn: answer)
    with pytest.raises(ConfigError, match=rf"'ann' answered {answer!r} to 'at 0': it must return one of 'north'"):
        mind.act([request(1)])


def test_a_script_that_raises_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'ann' raised ZeroDivisionError: division by zero"):
        ScriptedMind("ann", lambda turn: str(1 / 0)).act([request(1)])


def test_a_person_is_asked_again_after_an_illegal_answer() -> None:
    answers = iter(["up", "  south "])
    assert HumanMind("ann", lambda turn: next(answers)).act([request(1)]) == ["south"]
    with pytest.raises(ConfigError, match="5 illegal answers"):
        HumanMind("ann", lambda turn: "up").act([request(1)])


def test_figures_leave_faults_out(tmp_path: Path) -> None:
    mind: Mind = RandomMind("ann", 0)
    mind.begin(Phase("train", 0))
    outcomes = [Outcome("ann", 1.0, 2, success=1.0), Outcome("ann", 0.0, 4, success=0.0), Outcome("ann", 9.0, 9)]
    mind.end([Ended(n, 0, outcome, "crashed" if n == 2 else "") for n, outcome in enumerate(outcomes)])
    assert mind.update() == {"episodes": 2.0, "faults": 1.0, "turns": 6.0, "return": 0.5, "success": 0.5}
    assert mind.updates == 0
    mind.save(tmp_path)
    mind.load(tmp_path)
    with pytest.raises(ModelError, match="no weights"):
        mind.export(tmp_path)


FREE = Request(0, 0, Turn("ann", 0, "say something", free=9))


def test_a_script_that_exits_or_writes_half_a_character_is_named() -> None:
    def leave(turn: Turn) -> str:
        raise SystemExit(0)

    for script, said in ((leave, "raised SystemExit"), (lambda turn: "a\ud800", r"answered 'a\\ud800'")):
        with pytest.raises(ConfigError, match=said) as caught:
            ScriptedMind("ann", script).act([FREE])
        str(caught.value).encode()


def test_a_person_who_types_half_a_character_is_asked_again() -> None:
    typed = iter(["a\udcff", "a"])
    assert HumanMind("ann", lambda turn: next(typed)).act([FREE]) == ["a"]
