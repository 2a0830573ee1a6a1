from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from decentral.agents.mind import Phase
from decentral.config import Config
from decentral.plan import episodes, phases


def config(**fields: object) -> Config:
    return Config.of(**{"env": "meet", "iterations": 5, "groups": 4, "group": 3, "eval_episodes": 50, **fields})


def test_a_run_is_evaluated_trained_and_evaluated() -> None:
    kinds = [(phase.kind, phase.iteration) for phase in phases(config(iterations=2))]
    assert kinds == [("eval", 0), ("train", 0), ("train", 1), ("eval", 2)]
    assert [(phase.kind, phase.iteration) for phase in phases(config(iterations=0))] == [("eval", 0)]


def test_it_is_evaluated_in_between_if_asked_to_and_once_at_the_end() -> None:
    for iterations, expected in ((4, [0, 2, 4]), (5, [0, 2, 4, 5]), (1, [0, 1])):
        planned = phases(config(iterations=iterations, eval_every=2))
        assert [phase.iteration for phase in planned if phase.kind == "eval"] == expected
        assert [phase.iteration for phase in planned if phase.kind == "train"] == list(range(iterations))


def test_a_group_shares_its_seed_and_has_its_first_episodes_number() -> None:
    made = episodes(config(), Phase("train", 2))
    assert [episode.id - made[0].id for episode in made] == list(range(12))
    for place in range(4):
        group = made[place * 3 : place * 3 + 3]
        assert {episode.group for episode in group} == {group[0].id}
        assert len({episode.seed for episode in group}) == 1
    assert len({episode.seed for episode in made}) == 4


def test_every_evaluation_has_the_same_seeds_and_other_numbers() -> None:
    first, last = (episodes(config(), Phase("eval", iteration)) for iteration in (0, 5))
    assert [episode.seed for episode in first] == [episode.seed for episode in last]
    assert not {episode.id for episode in first} & {episode.id for episode in last}
    assert all(episode.group == episode.id for episode in first)


@given(st.integers(0, 2**63 - 1))
def test_numbers_are_unique_and_training_never_sees_an_evaluation_seed(seed: int) -> None:
    run = config(seed=seed)
    plays = {(phase.kind, phase.iteration): episodes(run, phase) for phase in phases(run)}
    numbers = [episode.id for made in plays.values() for episode in made]
    assert len(numbers) == len(set(numbers))
    seeds = {kind: {e.seed for (k, _), made in plays.items() if k == kind for e in made} for kind in ("train", "eval")}
    assert {one % 2 for one in seeds["train"]} == {0}
    assert {one % 2 for one in seeds["eval"]} == {1}
    assert all(0 <= one < 2**31 for kind in seeds.values() for one in kind)
    again = episodes(run, Phase("train", 0, attempt=3))
    assert again == plays["train", 0]
