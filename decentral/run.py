"""A run folder, read: its settings, its figures as pandas tables, its trained agents, its plots and its report.

Only reads what the processes of a run wrote (and writes ``report.html``); knows nothing about how a run is made.
Every reader skips a torn last line, so a run can be looked at while it is still going on.
"""

from __future__ import annotations

__all__ = ["Run"]

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from decentral import journal
from decentral.agents.mind import Phase
from decentral.agents.trust import CLIP
from decentral.checkpoint import Checkpoints
from decentral.config import Config
from decentral.errors import ConfigError, RunError, suggest
from decentral.intervals import Interval, mean_interval, wilson
from decentral.messages import PhaseClosed

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.figure import Figure

    from decentral.evaluate import Evaluation
    from decentral.player import Player

_PHASE = ["phase", "iteration", "attempt"]
_EPISODES = [*_PHASE, "episode", "group", "seed", "agent", "success", "return", "turns", "terminated", "truncated"]
_PHASES = [*_PHASE, "agent", "episodes", "faults", "seconds", "success", "return"]
_BELIEFS = ["moved", "weight", "trust", "distance", "entropy", "value", "own_value", "own", "behaviour", "advised"]
_BELIEFS += ["usefulness"]
_ADVICE = ["agent", "iteration", "attempt", "episode", "round", "peer", "action", *_BELIEFS]
_ADVICE += ["accepted", "advantage", "return"]
_RESULTS = ["measure", "episodes", "first", "first_low", "first_high", "last", "last_low", "last_high"]


class Run:
    """A run folder. Made by `Run.load`, or returned by `decentral.train`."""

    def __init__(self, path: Path, config: Config) -> None:
        self.path = path
        self.config = config

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Run:
        """Opens a run folder, finished or not. Raises RunError if it is none or its settings cannot be read."""
        folder = Path(path)
        if not folder.is_dir():
            near = [p.parent.name for p in folder.parent.glob("*/config.toml")] if folder.parent.is_dir() else []
            raise RunError(
                f"no run folder at {str(folder)!r}{suggest(folder.name, near)}"
                " (give the folder that `decentral train` printed)"
            )
        if missing := [name for name in ("config.toml", "state.json") if not (folder / name).is_file()]:
            raise RunError(
                f"{str(folder)!r} is no run folder: it has no {missing[0]}"
                " (give the folder that `decentral train` printed)"
            )
        try:
            return cls(folder, Config.load(folder / "config.toml"))
        except ConfigError as error:
            raise RunError(f"the settings of the run {str(folder)!r} cannot be read: {error}") from error

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    # -- what was run ---------------------------------------------------------------------------------------------

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """The agents' names, in the environment's order."""
        return tuple(self.state.get("agents", ()))

    @property
    def summary(self) -> dict[str, Any]:
        """``summary.json``: per agent ``success_first``, ``success_last``, ``updates``; empty until the run ends."""
        return _document(self.path / "summary.json")

    @property
    def state(self) -> dict[str, Any]:
        """``state.json``: its agents, how many iterations are committed, and the seconds of training so far."""
        return _document(self.path / "state.json")

    @property
    def versions(self) -> dict[str, Any]:
        """``versions.json``: the versions of this library, Python and what a result depends on."""
        return _document(self.path / "versions.json")

    # -- tables ---------------------------------------------------------------------------------------------------

    def metrics(self) -> pd.DataFrame:
        """One row per agent and iteration.

        Columns: ``agent``, ``iteration``, ``updates`` and every figure of the agent's update, such as ``success``,
        ``return``, ``entropy``, ``kl``, ``grad_norm``, ``loss``, ``lr``, ``tokens_per_s``, ``collect_s``,
        ``update_s``. An iteration that was started over or resumed counts once, with its last figures.
        """
        import pandas as pd

        rows = [{"agent": name, **line} for name in self.agents for line in self._agent_lines(name, "metrics")]
        table = pd.DataFrame(rows, columns=None if rows else ["agent", "iteration", "updates"])
        if table.empty:
            return table
        return table.drop_duplicates(["agent", "iteration"], keep="last").reset_index(drop=True)

    def phases(self) -> pd.DataFrame:
        """One row per closed phase and agent.

        Columns: ``phase`` ("train" or "eval"), ``iteration``, ``attempt``, ``agent``, ``episodes``, ``faults``
        (episodes the environment or a lost process spoilt), ``seconds``, and the mean ``success`` (NaN where
        nothing defines it) and ``return``. A phase that was played again after a resume appears once.
        """
        import pandas as pd

        closed = self._closed()
        rows = [
            {
                **{key: line.get(key) for key in (*_PHASE, "episodes", "faults", "seconds")},
                "agent": name,
                "success": _of(line, "success", name),
                "return": _of(line, "return", name),
            }
            for line in closed.values()
            for name in {**line.get("return", {}), **line.get("success", {})}
        ]
        return _floats(pd.DataFrame(rows, columns=_PHASES), "seconds", "success", "return")

    def episodes(self) -> pd.DataFrame:
        """One row per episode and agent.

        Columns: ``phase``, ``iteration``, ``attempt``, ``episode`` (its number), ``group``, ``seed``, ``agent``,
        ``success`` (NaN where nothing defines it), ``return``, ``turns``, ``terminated``, ``truncated``, ``fault``
        (why it counts in no statistic, else empty) and ``counted``: whether it belongs to the attempt that closed
        its phase and has no fault. Rows that are not counted are kept, so that nothing played is hidden.
        """
        import pandas as pd

        closed = {key: line.get("attempt", 0) for key, line in self._closed().items()}
        rows = [
            {
                **{key: line.get(key) for key in (*_PHASE, "episode", "group", "seed")},
                "agent": name,
                **{key: played.get(key) for key in ("success", "return", "turns", "terminated", "truncated")},
                "fault": line.get("fault", ""),
                "counted": not line.get("fault")
                and closed.get((line["phase"], line["iteration"])) == line.get("attempt", 0),
            }
            for line in _lines(self.path / "host" / "episodes.jsonl")
            for name, played in line["agents"].items()
        ]
        table = _floats(pd.DataFrame(rows, columns=[*_EPISODES, "fault", "counted"]), "success", "return")
        repeated = table.duplicated([*_PHASE, "episode", "agent"], keep="last")
        return table.assign(counted=table["counted"].astype(bool) & ~repeated)

    def advice(self) -> pd.DataFrame:
        """One row per turn that an agent asked about and peer that it heard of it.

        Columns: ``agent`` (who asked), ``iteration``, ``attempt``, ``episode``, ``round``, ``peer`` (empty where nobody
        advised: ``declined``, ``refused`` and ``late`` of `metrics` tell why), ``action`` (what was done), ``moved``
        (the share of its probability that advice moved in this turn), ``weight`` (of the peer in the decision),
        ``trust`` (in it, as it was then), ``distance`` (of its embedding from the agent's own), ``entropy`` (of what it
        advised, in nats), ``value`` (the return that the peer expected), ``own_value`` (that the agent expected),
        ``own`` (the action's probability by the agent's own policy), ``behaviour`` (the one it was drawn with),
        ``advised`` (the one the peer gave it), ``usefulness`` (how much the agent's return gains, by this one turn, per
        step toward the peer: ``advantage * (advised - own) / behaviour``, cut off at 10; trust is learnt from it),
        ``accepted`` (whether peer and decision both favoured the action), ``advantage`` and ``return``.
        """
        import pandas as pd

        rows = []
        for name in self.agents:
            lines = self._agent_lines(name, "advice")
            newest = {(line["iteration"], line["episode"], line["round"]): line for line in lines}
            for line in newest.values():
                action, own, drawn = line["action"], line["own"], line["behaviour"]
                common = {
                    "agent": name,
                    **{key: line[key] for key in ("iteration", "attempt", "episode", "round")},
                    "action": line["legal"][action],
                    "moved": sum(abs(p - q) for p, q in zip(own, drawn)) / 2,
                    "own_value": line.get("value"),
                    "own": own[action],
                    "behaviour": drawn[action],
                    "advantage": line["advantage"],
                    "return": line["return"],
                }
                for peer, said in (line["peers"] or {"": {}}).items():
                    advised = said["probabilities"][action] if said else None
                    told = {key: said.get(key) for key in ("weight", "trust", "distance", "value")}
                    told["entropy"] = _entropy(said["probabilities"]) if said else None
                    gain = _gain(line["advantage"], advised, own[action], drawn[action])
                    accepted = advised is not None and advised > own[action] and drawn[action] > own[action]
                    found = {"peer": peer, **told, "advised": advised, "accepted": accepted, "usefulness": gain}
                    rows.append(common | found)
        table = pd.DataFrame(rows, columns=_ADVICE)
        last = table.groupby(["agent", "iteration"])["attempt"].transform("max") if len(table) else table["attempt"]
        table = table[table["attempt"] == last].reset_index(drop=True)
        return _floats(table, *_BELIEFS)

    def advice_graph(self) -> nx.DiGraph[str]:
        """Who advised whom: an edge (peer, agent) has ``count``, ``acceptance``, ``usefulness`` and ``trust``.

        The first is a number of turns, the next two are means over them, the last is that of the last turn.
        """
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self.agents)
        heard = self.advice().query("peer != ''")
        for (peer, agent), rows in heard.groupby(["peer", "agent"]):
            graph.add_edge(
                peer,
                agent,
                count=len(rows),
                acceptance=float(rows["accepted"].mean()),
                usefulness=float(rows["usefulness"].mean()),
                trust=float(rows["trust"].iloc[-1]),
            )
        return graph

    def events(self) -> pd.DataFrame:
        """One row per event, oldest first.

        Columns: ``time`` (UTC), ``source`` ("run", "host" or an agent), ``event``, ``detail``.
        """
        import pandas as pd

        files = {"run": self.path, "host": self.path / "host"}
        files |= {name: self.path / "agents" / name for name in self.agents}
        rows = [
            {"time": line.get("time"), "source": source, "event": line.get("event", ""), "detail": _detail(line)}
            for source, folder in files.items()
            for line in _lines(folder / "events.jsonl")
        ]
        table = pd.DataFrame(rows, columns=["time", "source", "event", "detail"])
        table["time"] = pd.to_datetime((table["time"].astype("float64") * 1000).round(), unit="ms", utc=True)
        return table.sort_values("time", kind="stable", ignore_index=True)

    def closed(self) -> list[PhaseClosed]:
        """What the engine said as each phase closed, oldest first."""
        return [
            PhaseClosed(
                phase=Phase(line["phase"], line["iteration"], line["attempt"]),
                episodes=line["episodes"],
                faults=line["faults"],
                seconds=line["seconds"],
                success=line["success"],
                returns=line["return"],
            )
            for line in self._closed().values()
        ]

    def results(self) -> pd.DataFrame:
        """One row per agent: the first and the last evaluation with 95 % intervals.

        Columns: ``agent``, ``measure`` ("success", or "return" where nothing defines success), ``episodes`` of one
        evaluation, ``first``, ``first_low``, ``first_high``, ``last``, ``last_low``, ``last_high`` (NaN while there
        is one evaluation only). Success has Wilson's interval, return the normal one.
        """
        return self._results("agent", {name: (name,) for name in self.agents})

    def team_results(self) -> pd.DataFrame:
        """One row per team, empty without teams: the columns of ``results``, with ``team`` in place of ``agent``.

        What a team got in an episode is the mean over its agents.
        """
        return self._results("team", self.config.teams)

    def _results(self, word: str, groups: Mapping[str, Sequence[str]]) -> pd.DataFrame:
        import pandas as pd

        played = self.episodes()
        played = played[played["counted"] & (played["phase"] == "eval")]
        rows = []
        for name, agents in groups.items():
            mine = played[played["agent"].isin(agents)]
            if mine.empty:
                continue
            measure = "success" if mine["success"].notna().any() else "return"
            at = sorted(mine["iteration"].unique())
            means = mine.dropna(subset=measure).groupby(["iteration", "episode"], sort=False)[measure].mean()
            values = [means.get(i, pd.Series(dtype=float)).tolist() for i in at]
            interval = wilson if measure == "success" else mean_interval
            last = interval(values[-1]) if len(at) > 1 else Interval(*[float("nan")] * 3)
            rows.append([name, measure, len(values[0]), *interval(values[0]), *last])
        return pd.DataFrame(rows, columns=[word, *_RESULTS])

    def transcripts(self) -> list[dict[str, Any]]:
        """The episodes that were recorded in full, oldest first: the first of each closed phase.

        Each has the keys of ``episodes.jsonl``; its ``rounds`` are dicts of agent, round, observation, action and
        feedback.
        """
        closed = {key: line.get("attempt", 0) for key, line in self._closed().items()}
        found = {
            (line["phase"], line["iteration"]): line
            for line in _lines(self.path / "host" / "episodes.jsonl")
            if line.get("rounds") and closed.get((line["phase"], line["iteration"])) == line.get("attempt", 0)
        }
        return list(found.values())

    # -- agents, plots, report ------------------------------------------------------------------------------------

    def agent(self, name: str) -> Player:
        """Loads a trained agent from its newest committed checkpoint. Raises RunError if there is no such agent."""
        from decentral.player import Player

        return Player.load(self, name)

    def checkpoint(self, name: str) -> Path:
        """Returns the folder of an agent's newest committed checkpoint. Raises RunError if there is none.

        In the folder of an agent's owner, who is not told of every commit, it is the newest one.
        """
        if name not in self.agents:
            raise RunError(
                f"the run {str(self.path)!r} has no agent {name!r}{suggest(name, self.agents)};"
                f" its agents are {', '.join(self.agents)}"
            )
        checkpoints = Checkpoints(self.path / "agents" / name / "checkpoints")
        if self.config.engine != "network":
            return checkpoints.path(self.state["iteration"])
        if not (saved := checkpoints.saved()):
            raise RunError(
                f"the run {str(self.path)!r} has no weights of {name}, which are its owner's: give the folder of "
                f"`decentral agent {name}`"
            )
        return checkpoints.path(saved[-1])

    def evaluate(
        self,
        episodes: int = 200,
        seed: int | None = None,
        *,
        factory: Callable[..., Any] | None = None,
        against: Run | None = None,
    ) -> Evaluation:
        """Plays the trained agents, and random-legal play on the same seeds; see `decentral.evaluate.evaluate`.

        ``factory``: the callable that the run was trained on, where that is an object which no name leads to.
        ``against``: the run whose agents each team plays against, instead of random play.
        """
        from decentral.evaluate import evaluate

        return evaluate(self, episodes, seed, factory, against)

    def plot_learning(self) -> Figure:
        """Success (else return) of each agent over the iterations, with the evaluations before and after."""
        from decentral.plots import plot_learning

        return plot_learning(self.phases(), self.episodes())

    def plot_training(self) -> Figure:
        """Entropy, KL, gradient norm and tokens per second of each agent over the iterations."""
        from decentral.plots import plot_training

        return plot_training(self.metrics())

    def plot_advice(self) -> Figure:
        """Trust, acceptance and usefulness of advice over the iterations, a line per agent and peer."""
        from decentral.plots import plot_advice

        return plot_advice(self.advice())

    def report(self) -> Path:
        """Writes ``report.html`` into the run folder and returns its path. Raises RunError if it cannot be written."""
        from decentral.report import write_report

        return write_report(self)

    # -- reading --------------------------------------------------------------------------------------------------

    def _agent_lines(self, name: str, kind: str) -> list[dict[str, Any]]:
        return _lines(self.path / "agents" / name / f"{kind}.jsonl")

    def _closed(self) -> dict[tuple[str, int], dict[str, Any]]:
        """(phase, iteration) -> the line of the attempt that closed it, the last one where it was played again."""
        return {(line["phase"], line["iteration"]): line for line in _lines(self.path / "host" / "phases.jsonl")}


def _lines(path: Path) -> list[dict[str, Any]]:
    return journal.read(path)[0]


def _document(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except msgspec.DecodeError as error:
        raise RunError(f"{str(path)!r} cannot be read: {error}; delete it or take the folder from a backup") from error


def _of(line: Mapping[str, Any], key: str, name: str) -> float | None:
    value: float | None = (line.get(key) or {}).get(name)
    return value


def _detail(line: Mapping[str, Any]) -> str:
    """Everything an event says besides its time and name: whom and why as they are, the rest as ``key value``."""
    said = {key: value for key, value in line.items() if key not in ("time", "event")}
    return ", ".join(str(value) if key in ("name", "why") else f"{key} {value}" for key, value in said.items())


def _gain(advantage: float, advised: float | None, own: float, behaviour: float) -> float | None:
    """Returns the usefulness of an answer; None of none."""
    return None if advised is None else min(CLIP, max(-CLIP, advantage * (advised - own) / behaviour))


def _entropy(probabilities: Sequence[float]) -> float:
    """Returns the entropy of a distribution, in nats."""
    return -sum(p * math.log(p) for p in probabilities if p > 0)


def _floats(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    return table.astype(dict.fromkeys(columns, "float64"))
