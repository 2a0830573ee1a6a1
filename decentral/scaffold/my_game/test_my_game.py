from my_game import DOOR, DOORWAY, GOAL, STAY, WALK, env

import decentral


def test_it_can_be_played_and_learnt():
    report = decentral.check_env(env)
    assert report.ok, report


def test_the_door_follows_from_the_seed():
    game = env()
    doors = [game.reset(seed=seed)[0]["ada"][2] for seed in (*range(20), *range(20))]
    assert doors[:20] == doors[20:]
    assert set(doors) == {2, 3}


def test_one_steps_aside_and_both_arrive():
    game = env()
    game.reset(seed=0)
    game.door = 2
    for ada, bob in [(WALK, STAY), (DOOR, WALK), (STAY, WALK), (WALK, WALK), (WALK, STAY)]:
        _, rewards, over, _, _ = game.step({"ada": ada, "bob": bob})
    assert game.place == GOAL
    assert rewards == {"ada": 1, "bob": 1}
    assert all(over.values())
    assert game.success("ada") == 1


def test_nobody_passes_through_the_other():
    game = env()
    game.reset(seed=0)
    for _ in range(4):
        infos = game.step({"ada": WALK, "bob": WALK})[-1]
    assert game.place == {"ada": 2, "bob": 3}
    assert infos["ada"]["feedback"] == "met"


def test_the_doorway_holds_one_and_time_runs_out():
    game = env()
    game.reset(seed=0)
    game.place = {"ada": DOORWAY, "bob": game.door}
    assert not game.mask("bob")[DOOR]
    while game.agents:
        late = game.step({"ada": STAY, "bob": STAY})[3]
    assert all(late.values())
    assert game.success("bob") == 0
