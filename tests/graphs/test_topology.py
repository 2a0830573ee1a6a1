from decentral.graphs.topology import complete


def test_everybody_may_advise_everybody_else() -> None:
    graph = complete(["ann", "ben", "cleo"])
    assert len(graph.edges) == 6
    assert all(advisor != receiver for advisor, receiver in graph.edges)
    assert list(complete(["ann"]).edges) == []
