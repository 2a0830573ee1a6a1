"""What MPE2's scenarios read as: the layout of their observations, their rules, and what it is to have done well.

Only names and numbers of things are asked of an environment, once; what is read later is an observation alone. Places
and speeds are in tenths of a unit. Knows nothing about PettingZoo or turns.
"""

from __future__ import annotations

__all__ = ["GAMES", "Part", "place"]

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

Part = tuple[str, int, Callable[[list[float]], str]]
"""Part of an observation: its name, how many numbers it has, and what reads them; no text leaves the part out."""

COLOURS = ("red", "green", "blue")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MARKS = frozenset(LETTERS)
_BEYOND = 1e9
"""Further than any mark."""


def _way(vector: Sequence[float]) -> str:
    """Returns a vector in tenths, the longer part first, such as ``12 up 3 left``; nothing if it is that short."""
    x, y = vector
    return _tenths(round(10 * x), round(10 * y))


@lru_cache(maxsize=2**14)
def _tenths(x: int, y: int) -> str:
    along, across = f"{abs(y)} {'up' if y > 0 else 'down'}", f"{abs(x)} {'right' if x > 0 else 'left'}"
    parts = ((across, x), (along, y)) if abs(x) >= abs(y) else ((along, y), (across, x))
    return " ".join(part for part, size in parts if size)


def _place(vector: list[float]) -> str:
    return _way(vector) or "here"


def _seen(vector: list[float]) -> str:
    """Reads a place that stands at zero if nobody is there, or nobody is seen."""
    return _place(vector) if any(vector) else ""


def _skip(numbers: list[float]) -> str:
    return ""


def _yes(numbers: list[float]) -> str:
    return "yes" if numbers[0] > 0 else ""


def _which(names: Sequence[str], numbers: list[float]) -> str:
    """Reads a colour or message by its largest number; silence is all zeros."""
    return names[numbers.index(max(numbers))] if any(numbers) else ""


def _heard(world: Any, name: str = "hears") -> Part:
    return (name, world.dim_c, partial(_which, [str(i) for i in range(world.dim_c)]))


SPEED: Part = ("speed", 2, _way)
YOU: Part = ("you", 2, _place)


def place(part: Part, numbers: Sequence[float]) -> float:
    """Returns where a part stands in the text: the goal, the marks from the nearest on, all else, and oneself last."""
    if part in (SPEED, YOU):
        return math.inf
    return math.hypot(*numbers) if part[0] in MARKS else -1.0 if part[0] == "goal" else _BEYOND


def _marks(raw: Any, names: Iterable[str] = LETTERS) -> list[Part]:
    """Returns the landmarks; those that are the nearest only have no names of their own."""
    nearest = getattr(raw.scenario, "num_landmark_neighbors", None)
    return (
        [("mark", 2, _seen)] * nearest
        if nearest
        else [(name, 2, _place) for name, _ in zip(names, raw.world.landmarks)]
    )


def _others(raw: Any, me: Any) -> list[Part]:
    nearest = getattr(raw.scenario, "num_agent_neighbors", None)
    return [("agent", 2, _seen)] * nearest if nearest else [(_name(other), 2, _seen) for other in _but(raw, me)]


def _name(agent: Any) -> str:
    """Returns an agent's name; the long one, of which there are many, is shortened."""
    return str(agent.name).replace("adversary", "adv")


def _but(raw: Any, me: Any) -> list[Any]:
    return [other for other in raw.world.agents if other is not me]


def _simple(raw: Any, me: Any) -> list[Part]:
    return [SPEED, *_marks(raw)]


def _spread(raw: Any, me: Any) -> list[Part]:
    others = _others(raw, me)
    return [SPEED, YOU, *_marks(raw), *others, ("", raw.world.dim_c * len(others), _skip)]


def _shape(raw: Any, me: Any) -> list[Part]:
    return [SPEED, YOU, *_marks(raw)]


def _adversary(raw: Any, me: Any) -> list[Part]:
    return [*([] if me.adversary else [("goal", 2, _place)]), *_marks(raw), *_others(raw, me)]


def _push(raw: Any, me: Any) -> list[Part]:
    if me.adversary:
        return [SPEED, *_marks(raw), *_others(raw, me)]
    return [SPEED, ("goal", 2, _place), ("", 3, _skip), *_marks(raw), ("", 6, _skip), *_others(raw, me)]


def _crypto(raw: Any, me: Any) -> list[Part]:
    secret, key = _heard(raw.world, "secret"), _heard(raw.world, "key")
    return [secret, key] if me.speaker else [_heard(raw.world)] if me.adversary else [key, _heard(raw.world)]


def _reference(raw: Any, me: Any) -> list[Part]:
    (other,) = _but(raw, me)
    goal: Part = (f"{other.name} to", 3, partial(_which, COLOURS))
    return [SPEED, *_marks(raw, COLOURS), goal, _heard(raw.world)]


def _speaker(raw: Any, me: Any) -> list[Part]:
    if not me.movable:
        return [("goal", 3, partial(_which, COLOURS))]
    return [SPEED, *_marks(raw, COLOURS), _heard(raw.world)]


def _tag(raw: Any, me: Any) -> list[Part]:
    others = _others(raw, me)
    fast = [f"{_name(other)} speed" for other in _but(raw, me) if not other.adversary]
    if raw.scenario.num_agent_neighbors:
        fast = ["agent speed"] * len(others)
    return [SPEED, YOU, *_marks(raw), *others, *((name, 2, _way) for name in fast)]


def _world(raw: Any, me: Any) -> list[Part]:
    things: list[Part] = [(thing.name.replace("landmark", "rock"), 2, _place) for thing in raw.world.landmarks]
    fast: list[Part] = [(f"{_name(other)} speed", 2, _way) for other in _but(raw, me) if not other.adversary]
    inside: list[Part] = [(f"in {forest.name}", 1, _yes) for forest in raw.world.forests]
    heard = [_heard(raw.world, "said" if me.leader else "hears")]
    return [SPEED, YOU, *things, *_others(raw, me), *([*fast, *inside, *heard] if me.adversary else [*inside, *fast])]


def _treasure(raw: Any, me: Any) -> list[Part]:
    kinds = LETTERS[: raw.world.num_deposits]
    count = len(kinds)

    def other(numbers: list[float]) -> str:
        """Reads a place, a speed that is left out, the kind of a deposit, and the kind that a collector holds."""
        takes, holds = _which(kinds, numbers[4 : 4 + count]), _which(kinds, numbers[4 + count :])
        name = f"deposit {takes} " if takes else f"with {holds} " if holds else ""
        return name + _place(numbers[:2])

    def treasure(numbers: list[float]) -> str:
        kind = _which(kinds, numbers[2:])
        return f"{kind} {_place(numbers[:2])}" if kind else ""

    holding: list[Part] = [("holds", count, partial(_which, kinds))] if me.collector else []
    others: list[Part] = [("others", 4 + 2 * count, other)] * len(_but(raw, me))
    return [YOU, SPEED, *holding, *others, *([("treasure", 2 + count, treasure)] * len(raw.world.landmarks))]


def _far(a: Any, b: Any) -> float:
    return float(np.linalg.norm(a.state.p_pos - b.state.p_pos))


def _covered(raw: Any, agent: str) -> float:
    """Returns the share of landmarks that an agent is as near as the scenario itself calls occupied."""
    near = raw.scenario.CAPTURE_RADIUS
    return float(np.mean([any(_far(one, mark) < near for one in raw.world.agents) for mark in raw.world.landmarks]))


def _there(raw: Any, agent: str) -> float:
    """Returns the share of agents with a landmark to go to who touch it."""
    world = raw.world
    pairs = [(one._goal_a, one._goal_b) for one in world.agents if getattr(one, "_goal_b", None)]
    pairs = pairs or [(world.agents[0], world.landmarks[0])]
    return float(np.mean([_far(who, mark) < who.size + mark.size for who, mark in pairs]))


def _nearer(raw: Any, agent: str) -> float:
    """Returns 1 to the side that is nearer to the goal, as the sign of the scenario's own rewards has it."""
    adversary, *good = raw.world.agents
    won = min(_far(one, one.goal_a) for one in good) < _far(adversary, adversary.goal_a)
    return float(won != (agent == adversary.name))


def _decoded(raw: Any, agent: str) -> float:
    """Returns 1 to Eve if she said the secret last, else 1 to the others if Bob did."""
    eve, bob, _ = (int(np.argmax(one.state.c)) == int(np.argmax(one.goal_a.color)) for one in raw.world.agents)
    return float(eve if agent == raw.world.agents[0].name else bob and not eve)


def _formed(raw: Any, agent: str) -> float:
    """Returns the share of agents who are where the scenario wants them."""
    return float(np.mean(raw.scenario._delta_dists < raw.scenario.DIST_THRESHOLD))


def _caught(raw: Any, agent: str) -> float | None:
    """Returns 1 to the adversaries if all agents were caught at once, which ends the episode only where that is set."""
    if not raw.scenario.terminate_on_success:
        return None
    return float(raw.scenario.is_terminal(raw.world) == agent.startswith("adversary"))


class Game(NamedTuple):
    """A scenario."""

    layout: Callable[[Any, Any], Iterable[Part]]
    told: str
    success: Callable[[Any, str], float | None] | None = None
    """(environment at the end, agent) -> in [0, 1], or None where it does not say."""
    rule: str = ""
    """What that is, in a few words."""


THERE = "share of agents on their mark"
NEARER = "nearer to the goal at the end"

GAMES = {
    "simple_v3": Game(_simple, "Go to a and stay there.", _there, THERE),
    "simple_spread_v3": Game(
        _spread, "Together stand on all marks, one agent each, and do not bump.", _covered, "share of marks covered"
    ),
    "simple_adversary_v3": Game(
        _adversary, "Agents know the goal and win if one of them ends nearer to it than the adversary.", _nearer, NEARER
    ),
    "simple_push_v3": Game(
        _push,
        "Agent and adversary may push each other: who ends nearer to the goal wins; the agent knows it.",
        _nearer,
        NEARER,
    ),
    "simple_crypto_v3": Game(
        _crypto,
        "Alice tells bob the secret; eve hears it all but not their key. Bob must say the secret, eve too; if she "
        "cannot, alice and bob win.",
        _decoded,
        "who says the secret last; alice and bob only if eve does not",
    ),
    "simple_reference_v3": Game(
        _reference,
        "Both must stand on a colour that only the other knows: say it, and go where you are told.",
        _there,
        THERE,
    ),
    "simple_speaker_listener_v4": Game(
        _speaker, "The speaker tells the listener by numbers on which colour it must stand.", _there, THERE
    ),
    "simple_tag_v3": Game(
        _tag,
        "Adversaries (adv) touch agents as often as they can; agents flee, and stay near the centre.",
        _caught,
        "all caught at once, where that ends it",
    ),
    "simple_world_comm_v3": Game(
        _world,
        "Adversaries (adv) touch agents as often as they can, forests hide who is in them; agents flee and touch food.",
    ),
    "simple_formation_v1": Game(
        _shape, "Together stand evenly on a circle of radius 5 around a.", _formed, "share of agents in place"
    ),
    "simple_line_v1": Game(
        _shape, "Together stand evenly on the line from a to b, its ends too.", _formed, "share of agents in place"
    ),
    "collect_treasure_v1": Game(
        _treasure,
        "Collectors touch a treasure to take it, and bring it to the deposit of its kind. All share the score.",
    ),
}
