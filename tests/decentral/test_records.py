from __future__ import annotations

from decentral.agents.mind import Phase
from decentral.envs.fleet import Episode, Finished
from decentral.envs.turn import Outcome, Turn
from decentral.records import Table, Transcript, episode_line, phase_line, summary

PHASE = Phase("train", 2, 1)


def finished(steps: list[dict[str, str]]) -> Finished:
    outcomes = {
        "ann": Outcome("ann", 1.0, 2, success=1.0, feedback="the door is open", terminated=True),
        "ben": Outcome("ben", -1.0, 1, truncated=True),
    }
    return Finished(Episode(7, 4, 11), outcomes, "", steps)


def test_a_transcript_gives_feedback_to_the_action_that_caused_it() -> None:
    transcript = Transcript(7)
    transcript.turn(Turn("ann", 0, "a door", legal=("push",)), "push")
    transcript.turn(Turn("ben", 0, "a wall", legal=("wait",)), "wait")
    transcript.turn(Turn("ann", 1, "a door", legal=("pull",), feedback="it is stuck"), "pull")
    line = episode_line(PHASE, finished([{"ann": "push"}, {"ben": "wait"}, {"ann": "pull"}]), "", transcript)
    told = [(turn["agent"], turn["action"], turn["feedback"]) for turn in line["rounds"]]
    assert told == [("ann", "push", "it is stuck"), ("ben", "wait", ""), ("ann", "pull", "the door is open")]
    assert (line["phase"], line["iteration"], line["attempt"], line["episode"], line["seed"]) == ("train", 2, 1, 7, 11)
    assert line["agents"]["ben"] == {
        "return": -1.0, "success": None, "turns": 1, "terminated": False, "truncated": True,
    }  # fmt: skip


def test_a_transcript_of_turns_taken_at_once_is_in_the_environments_order() -> None:
    transcript = Transcript(7)
    for number in range(2):
        for name in ("ben", "ann"):  # ben answered first
            transcript.turn(Turn(name, number, "here", legal=("go",)), "go")
    line = episode_line(PHASE, finished([{"ben": "go", "ann": "go"}] * 2), "", transcript)
    assert [turn["agent"] for turn in line["rounds"]] == ["ann", "ben", "ann", "ben"]


def test_faults_enter_no_mean() -> None:
    table = Table(("ann", "ben", "cleo"), 3)
    table.add({"ann": Outcome("ann", 1.0, 1, success=1.0), "ben": Outcome("ben", 2.0, 1)}, "")
    table.add({"ann": Outcome("ann", 0.0, 1, success=0.0), "ben": Outcome("ben", 4.0, 1)}, "")
    table.add({"ann": Outcome("ann", 99.0, 1, success=1.0)}, "it fell down")
    line = phase_line(table.closed(PHASE, 1.23456))
    assert line == {
        "phase": "train", "iteration": 2, "attempt": 1, "episodes": 3, "faults": 1, "seconds": 1.235,
        "success": {"ann": 0.5, "ben": None}, "return": {"ann": 0.5, "ben": 3.0},
    }  # fmt: skip


def test_a_summary_takes_the_last_line_of_the_first_and_the_last_evaluation() -> None:
    def line(phase: str, iteration: int, success: float) -> dict[str, object]:
        return {"phase": phase, "iteration": iteration, "success": {"ann": success}, "return": {"ann": 10 * success}}

    lines = [
        line("eval", 0, 0.1),
        line("eval", 0, 0.2),
        line("train", 0, 0.5),
        line("train", 2, 0.6),
        line("eval", 2, 0.9),
    ]
    assert summary(lines, {"ann": 2}, 2, 12.34567) == {
        "agents": {
            "ann": {"success_first": 0.2, "success_last": 0.9, "return_first": 2.0, "return_last": 9.0, "updates": 2}
        },
        "train_seconds": 12.346,
    }
    assert summary([], {"ann": 0}, 2, 0.0)["agents"]["ann"]["success_first"] is None
