from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from decentral.errors import RunError
from decentral.run import Run

RunFolder = Callable[..., Path]


def append(path: Path, *rows: dict[str, object], torn: str = "") -> None:
    with path.open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows) + torn)


def test_tables_are_tidy(run_folder: RunFolder) -> None:
    run = Run.load(run_folder(iterations=3, games=8, trials=10))
    assert run.agents == ("anna", "ben")
    assert run.config.iterations == 3
    assert len(run.metrics()) == 2 * 3
    assert len(run.phases()) == 2 * 5
    assert len(run.episodes()) == 2 * (10 + 3 * 8 + 10)
    assert run.episodes()["counted"].all()
    assert run.episodes()["success"].isin([0.0, 1.0]).all()
    assert list(run.events()["event"]) == ["started", "restarted", "restarted"]
    assert list(run.events()["detail"]) == ["", "lost, count 1", "lost, count 1"]
    assert run.events()["time"].iloc[1].isoformat() == "2023-11-14T22:13:25+00:00"
    assert run.summary["agents"]["anna"]["updates"] == 3


def test_results_join_the_first_and_the_last_evaluation(run_folder: RunFolder) -> None:
    run = Run.load(run_folder())
    row = run.results().set_index("agent").loc["ben"]
    played = run.episodes().query("phase == 'eval' and agent == 'ben'")
    assert row["first"] == pytest.approx(played[played["iteration"] == 0]["success"].mean())
    assert row["last"] == pytest.approx(played[played["iteration"] == 12]["success"].mean())
    assert row["first_low"] < row["first"] < row["first_high"] < row["last_low"] < row["last"]


def test_returns_stand_in_where_nothing_defines_success(run_folder: RunFolder) -> None:
    run = Run.load(run_folder(success=False))
    assert run.results()["measure"].tolist() == ["return", "return"]
    assert run.phases()["success"].isna().all()
    assert run.phases()["return"].notna().all()


def test_only_the_attempt_that_closed_its_phase_counts(run_folder: RunFolder) -> None:
    folder = run_folder(iterations=1, games=4, trials=4)
    path = folder / "host" / "episodes.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    trained = [row for row in rows if row["phase"] == "train"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows if row["phase"] == "eval"))
    append(path, *({**row, "attempt": 0} for row in trained[:3]))
    append(path, *({**row, "attempt": 1} for row in trained))
    phases = folder / "host" / "phases.jsonl"
    closed = [json.loads(line) for line in phases.read_text().splitlines()]
    phases.write_text("".join(json.dumps({**row, "attempt": row["phase"] == "train"}) + "\n" for row in closed))

    table = Run.load(folder).episodes().query("phase == 'train'")
    assert len(table) == 2 * (3 + 4)
    assert table[table["counted"]]["attempt"].tolist() == [1] * 8


def test_a_fault_is_kept_and_not_counted(run_folder: RunFolder) -> None:
    folder = run_folder(iterations=1, games=4, trials=4)
    path = folder / "host" / "episodes.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["fault"] = "the environment broke"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = Run.load(folder).episodes()
    assert table[~table["counted"]]["fault"].unique().tolist() == ["the environment broke"]
    assert Run.load(folder).results()["episodes"].tolist() == [3, 3]


def test_a_phase_that_was_played_again_counts_once(run_folder: RunFolder) -> None:
    folder = run_folder(iterations=2, games=4, trials=4)
    lines = (folder / "host" / "phases.jsonl").read_text().splitlines()
    append(folder / "host" / "phases.jsonl", {**json.loads(lines[1]), "success": {"anna": 0.5, "ben": 0.25}})
    metrics = folder / "agents" / "ben" / "metrics.jsonl"
    append(metrics, {**json.loads(metrics.read_text().splitlines()[-1]), "kl": 7.0})
    run = Run.load(folder)
    assert len(run.phases()) == 2 * 4
    assert run.phases().query("phase == 'train' and iteration == 0")["success"].tolist() == [0.5, 0.25]
    assert len(run.metrics()) == 4
    assert run.metrics().query("agent == 'ben'")["kl"].iloc[-1] == 7.0


def test_a_torn_last_line_is_skipped(run_folder: RunFolder) -> None:
    folder = run_folder(iterations=2, games=4, trials=4)
    before = Run.load(folder)
    counts = len(before.episodes()), len(before.metrics()), len(before.events())
    for name in ("host/episodes.jsonl", "agents/ben/metrics.jsonl", "host/events.jsonl"):
        append(folder / name, torn='{"phase": "train", "iterat')
    after = Run.load(folder)
    assert (len(after.episodes()), len(after.metrics()), len(after.events())) == counts


def test_a_run_that_has_just_begun_has_empty_tables(run_folder: RunFolder) -> None:
    folder = run_folder()
    for path in folder.rglob("*.jsonl"):
        path.unlink()
    (folder / "summary.json").unlink()
    run = Run.load(folder)
    assert run.summary == {}
    assert run.metrics().empty
    assert run.phases().empty
    assert run.episodes().empty
    assert run.events().empty
    assert run.results().empty
    assert run.transcripts() == []


def test_transcripts_are_those_of_closed_phases(run_folder: RunFolder) -> None:
    run = Run.load(run_folder(iterations=2, games=4, trials=4))
    assert [(one["phase"], one["iteration"]) for one in run.transcripts()] == [
        ("eval", 0),
        ("train", 0),
        ("train", 1),
        ("eval", 2),
    ]
    assert run.transcripts()[0]["rounds"][0]["agent"] == "anna"


def test_what_is_no_run_is_refused_with_a_way_out(run_folder: RunFolder, tmp_path: Path) -> None:
    folder = run_folder()
    with pytest.raises(RunError, match="did you mean 'run'"):
        Run.load(folder.parent / "rum")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match=r"no run folder: it has no config\.toml"):
        Run.load(tmp_path / "empty")
    (folder / "config.toml").write_text("iterationz = 3\n[env]\nname = 'meet'\n")
    with pytest.raises(RunError, match="did you mean 'iterations'"):
        Run.load(folder)


def test_unknown_agents_and_missing_checkpoints_are_named(run_folder: RunFolder) -> None:
    run = Run.load(run_folder())
    with pytest.raises(RunError, match="no agent 'bem'; did you mean 'ben'"):
        run.checkpoint("bem")
    with pytest.raises(RunError, match="checkpoint 12 is missing"):
        run.checkpoint("ben")
    (run.path / "agents" / "ben" / "checkpoints" / "00012").mkdir(parents=True)
    assert run.checkpoint("ben").name == "00012"
