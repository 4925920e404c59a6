"""The intermediate form: what it refuses, how cells are addressed, that nothing can be changed."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import markovfield as mf
from markovfield.factors.factor_kinds import CLAUSE, TABLE
from markovfield.factors.structure import Structure
from markovfield.names import Names, normalise_states
from tests.oracle import Oracle, all_states
from tests.strategies import Spec, random_spec, specs


def graph_oracle(graph: mf.FactorGraph) -> Oracle:
    """Brute force over a compiled graph, read through its own tables."""
    s = graph.structure
    return Oracle(s.cardinalities, [(s.scope(f).tolist(), graph.table(f)) for f in range(s.n_factors)])


def structure(**changes) -> Structure:
    """A chain of three variables and two pairwise tables, with changes."""
    arguments = {
        "cardinalities": [2, 3, 2],
        "scope_offsets": [0, 2, 4],
        "scopes": [0, 1, 1, 2],
        "table_offsets": [0, 6],
        "table_strides": None,
        "n_cells": 12,
    }
    return Structure.from_arrays(**(arguments | changes))


class TestValidation:
    def test_a_valid_structure(self):
        s = structure()
        assert (s.n_variables, s.n_factors, s.n_cells) == (3, 2, 12)
        assert s.table_strides.tolist() == [3, 1, 2, 1]
        assert s.scope(1).tolist() == [1, 2] and s.strides(1).tolist() == [2, 1]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"cardinalities": [2, 0, 2]}, "counts of at least one"),
            ({"cardinalities": [[2, 3, 2]]}, "must be a vector"),
            ({"scope_offsets": [0, 2]}, "rise from 0 to 4 in 3 entries"),
            ({"scope_offsets": [1, 2, 4]}, "rise from 0 to 4"),
            ({"scope_offsets": [0, 2, 3]}, "rise from 0 to 4"),
            ({"scope_offsets": [0, 5, 4]}, "rise from 0 to 4"),
            ({"scopes": [0, 1, 1, 3]}, "variable 3 of 3"),
            ({"scopes": [0, -1, 1, 2]}, "variable -1 of 3"),
            ({"table_strides": [3, 1, 2]}, "one entry per axis, 4, got 3"),
            ({"child": [0]}, "one entry per factor, 2"),
            ({"kind": [0, 0, 0]}, "one entry per factor, 2"),
            ({"n_cells": 11}, "factor 1 reads cells 6 to 11 of a pool of 11"),
            ({"table_offsets": [-1, 6]}, "factor 0 reads cells -1 to 4"),
            ({"table_strides": [-3, 1, 2, 1]}, "factor 0 reads cells -3 to 2"),
        ],
    )
    def test_refusals(self, changes: dict, message: str):
        with pytest.raises(mf.ModelError, match=message):
            structure(**changes)

    def test_tables_of_another_shape(self):
        with pytest.raises(mf.ModelError, match=r"must have shape \(12,\), got \(11,\)"):
            mf.FactorGraph(structure(), np.zeros(11))
        with pytest.raises(mf.ModelError, match=r"must have shape \(12,\)"):
            mf.FactorGraph(structure(), np.zeros(12)).with_tables(np.zeros((3, 4)))

    def test_a_clause_may_not_overrun_the_pool(self):
        with pytest.raises(mf.ModelError, match="reads cells 0 to 1 of a pool of 1"):
            Structure.from_arrays([2], [0, 1], [0], [0], [0], n_cells=1, kind=[CLAUSE])

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_check_finite(self, value: float):
        tables = np.zeros(12)
        tables[7] = value
        with pytest.raises(mf.ModelError, match="in cell 7"):
            mf.FactorGraph(structure(), tables).check_finite()
        tables[7] = -np.inf
        mf.FactorGraph(structure(), tables).check_finite()

    def test_model_error_is_a_value_error(self):
        assert issubclass(mf.ModelError, ValueError) and issubclass(mf.ImpossibleEvidenceError, ValueError)
        assert issubclass(mf.MemoryLimitError, MemoryError) and issubclass(mf.FormatError, ValueError)


class TestCells:
    def test_c_order_last_axis_fastest(self):
        graph = mf.FactorGraph(structure(), np.arange(12.0))
        np.testing.assert_array_equal(graph.cells(0), np.arange(6).reshape(2, 3))
        np.testing.assert_array_equal(graph.table(1), np.arange(6.0, 12.0).reshape(3, 2))

    def test_strides_can_turn_and_clamp_a_table(self):
        # The second factor reads the first one's table with its axes turned; the third reads one row of it.
        s = Structure.from_arrays([2, 3], [0, 2, 4, 5], [0, 1, 1, 0, 1], [0, 0, 3], [3, 1, 1, 3, 1], n_cells=6)
        graph = mf.FactorGraph(s, np.arange(6.0))
        np.testing.assert_array_equal(graph.table(1), graph.table(0).T)
        np.testing.assert_array_equal(graph.table(2), graph.table(0)[1])

    def test_zero_and_negative_strides(self):
        s = Structure.from_arrays([3, 2], [0, 2], [0, 1], [2], [-1, 0], n_cells=3)
        graph = mf.FactorGraph(s, np.array([10.0, 20.0, 30.0]))
        np.testing.assert_array_equal(graph.table(0), [[30, 30], [20, 20], [10, 10]])
        assert graph.score([0, 1]) == 30.0

    def test_a_repeated_variable_becomes_one_axis_on_the_diagonal(self):
        net = mf.MarkovNetwork({"A": 3, "B": 2})
        values = np.arange(1.0, 19.0).reshape(3, 2, 3)
        net.add_factor(["A", "B", "A"], values)
        graph = net.compile()
        assert graph.structure.scope(0).tolist() == [0, 1]
        diagonal = values[np.arange(3), :, np.arange(3)]
        np.testing.assert_allclose(graph.table(0), np.log(diagonal))
        assert graph.score({"A": 2, "B": 1}) == pytest.approx(np.log(values[2, 1, 2]))

    def test_repeats_leave_other_factors_alone(self):
        net = mf.MarkovNetwork({"A": 2, "B": 2})
        net.add_factor(["A", "B"], [[1, 2], [3, 4]])
        net.add_factor(["B", "B"], [[5, 6], [7, 8]])
        net.add_factor(["B", "A"], [[1, 2], [3, 4]])
        graph = net.compile()
        np.testing.assert_allclose(np.exp(graph.table(0)), [[1, 2], [3, 4]])
        np.testing.assert_allclose(np.exp(graph.table(1)), [5, 8])
        np.testing.assert_allclose(np.exp(graph.table(2)), [[1, 2], [3, 4]])

    def test_tied_tables_are_stored_once(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(1001), 2))
        added = net.add_factors([(i, i + 1) for i in range(1000)], [[2, 1], [1, 2]])
        graph = net.compile()
        assert added == range(1000) and graph.n_factors == 1000 and graph.structure.n_cells == 4
        assert (graph.structure.table_offsets == 0).all()
        assert graph.score(np.zeros(1001, int)) == pytest.approx(1000 * np.log(2))

    def test_no_axes(self):
        net = mf.MarkovNetwork({"A": 2})
        net.add_factor([], 3.0)
        graph = net.compile()
        assert graph.table(0).shape == () and graph.score({"A": 0}) == pytest.approx(np.log(3))

    def test_more_axes_than_numpy_has(self):
        net = mf.MarkovNetwork({i: (2 if i in (0, 69) else 1) for i in range(70)})
        net.add_factor(range(70), [1.0, 2.0, 3.0, 4.0])
        graph = net.compile()
        np.testing.assert_allclose(np.exp(graph.table(0)), [1, 2, 3, 4])
        states = np.zeros(70, int)
        states[69] = 1
        assert graph.score(states) == pytest.approx(np.log(2))

    @given(specs())
    def test_tables_and_scores_agree_with_the_recipe(self, spec: Spec):
        graph = spec.build().compile()
        oracle = spec.oracle()
        np.testing.assert_allclose(graph_oracle(graph).scores.astype(float), oracle.scores.astype(float), atol=1e-12)
        rows = all_states(spec.cardinalities)[:50]
        np.testing.assert_allclose(graph.score(rows), oracle.scores[:50].astype(float), atol=1e-12)


class TestClauses:
    @given(specs())
    def test_tables_are_equivalent(self, spec: Spec):
        graph = spec.build().compile()
        as_tables = graph.to_tables()
        n = graph.n_variables
        assert (as_tables.structure.kind == TABLE).all()
        assert list(as_tables.variables[:n]) == list(graph.variables)
        np.testing.assert_array_equal(as_tables.structure.cardinalities[:n], graph.structure.cardinalities)
        np.testing.assert_array_equal(as_tables.log_tables[: graph.structure.n_cells], graph.log_tables)
        if np.prod(as_tables.structure.cardinalities, dtype=float) > 60_000:
            return
        ours, theirs = spec.oracle(), graph_oracle(as_tables)
        if ours.impossible:
            assert theirs.impossible
            return
        assert theirs.log_partition == pytest.approx(ours.log_partition, abs=1e-10)
        assert theirs.best_score == pytest.approx(ours.best_score, abs=1e-10)
        assert theirs.count == ours.count  # auxiliary variables are functions of the model's own
        for v in range(n):
            np.testing.assert_allclose(theirs.marginal(v), ours.marginal(v), atol=1e-12)

    def test_a_graph_of_tables_lowers_to_itself(self):
        graph = mf.FactorGraph(structure(), np.zeros(12))
        assert graph.to_tables() is graph

    def test_the_structural_half_is_kept(self):
        net = mf.MarkovNetwork({"A": 2, "B": 2})
        net.add_clause({"A": 1, "B": 1}, weight=2.0)
        graph = net.compile()
        first, second = graph.to_tables(), graph.with_tables([1.0, 5.0]).to_tables()
        assert first.structure is second.structure
        assert second.log_tables[:2].tolist() == [1.0, 5.0]

    def test_a_long_clause_costs_memory_linear_in_its_length(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(500), 2))
        net.add_clause(dict.fromkeys(range(500), 1))
        graph = net.compile()
        assert graph.structure.n_cells == 2
        assert graph.to_tables().structure.n_cells < 20_000
        assert np.diff(graph.to_tables().structure.scope_offsets).max() <= 3
        states = np.zeros(500, int)
        assert graph.score(states) == -np.inf
        states[321] = 1
        assert graph.score(states) == 0.0

    @pytest.mark.parametrize("card", [1, 2, 3])
    @pytest.mark.parametrize("sign", [True, False])
    def test_one_literal(self, card: int, sign: bool):
        for state in range(card):
            net = mf.MarkovNetwork({"A": card})
            net.add_clause(**{"positive" if sign else "negative": {"A": state}}, weight=3.0)
            expected = [3.0 if (s == state) == sign else 0.0 for s in range(card)]
            assert net.compile().table(0).tolist() == expected

    def test_both_signs_on_one_variable(self):
        # A = 0 or A != 1 is A != 1; A = 0 or A != 0 always holds.
        net = mf.MarkovNetwork({"A": 3, "B": 2})
        net.add_clause({"A": 0, "B": 1}, {"A": 1}, weight=3.0)
        net.add_clause({"A": 0, "B": 1}, {"A": 0}, weight=5.0)
        graph = net.compile()
        expected = [[8.0, 8.0], [5.0, 8.0], [8.0, 8.0]]
        assert [[graph.score([a, b]) for b in range(2)] for a in range(3)] == expected
        assert graph_oracle(graph.to_tables()).log_partition == pytest.approx(graph_oracle(graph).log_partition)

    def test_an_auxiliary_variable_never_takes_the_name_of_a_users(self):
        net = mf.MarkovNetwork({"auxiliary 0": 2, "B": 2})
        net.add_clause({"auxiliary 0": 1, "B": 1})
        as_tables = net.compile().to_tables()
        assert len(set(as_tables.variables)) == len(as_tables.variables)
        assert as_tables.names.position("auxiliary 0") == 0


class TestFreezing:
    def test_with_tables_shares_the_structure_and_read_only_arrays(self):
        graph = mf.FactorGraph(structure(), np.zeros(12))
        tables = np.arange(12.0)
        tables.flags.writeable = False
        other = graph.with_tables(tables)
        assert other.structure is graph.structure
        assert other.log_tables is tables
        assert graph.log_tables.tolist() == [0.0] * 12

    @pytest.mark.parametrize("wrap", [np.asarray, memoryview, lambda a: a.view(np.recarray), lambda a: a[::1]])
    def test_writable_inputs_are_copied_and_left_writable(self, wrap):
        tables = np.zeros(12)
        for graph in (
            mf.FactorGraph(structure(), wrap(tables)),
            mf.FactorGraph(structure(), np.zeros(12)).with_tables(wrap(tables)),
        ):
            tables[0] = 5.0
            assert graph.log_tables[0] == 0.0
            tables[0] = 0.0

    def test_structure_inputs_are_copied_and_left_writable(self):
        given = {
            "cardinalities": np.array([2, 3, 2], np.int32),
            "scope_offsets": np.array([0, 2, 4], np.int64),
            "scopes": np.array([0, 1, 1, 2], np.int32),
            "table_offsets": np.array([0, 6], np.int64),
            "table_strides": np.array([3, 1, 2, 1], np.int64),
            "child": np.array([-1, 2], np.int32),
            "kind": np.array([0, 0], np.int8),
        }
        kept = {name: array.copy() for name, array in given.items()}
        s = structure(**given)
        for name, array in given.items():
            np.testing.assert_array_equal(array, kept[name])
            array += 1
            np.testing.assert_array_equal(getattr(s, name), kept[name])

    def test_nothing_can_be_written(self):
        graph = random_spec(3).build().compile()
        s = graph.structure
        arrays = [
            s.cardinalities,
            s.scope_offsets,
            s.scopes,
            s.table_offsets,
            s.table_strides,
            s.child,
            s.kind,
        ]
        for array in [*arrays, graph.log_tables]:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        with pytest.raises(AttributeError):
            graph.log_tables = np.zeros(1)
        with pytest.raises(AttributeError):
            s.n_cells = 0

    def test_the_table_of_a_factor_is_a_copy(self):
        graph = mf.FactorGraph(structure(), np.zeros(12))
        graph.table(0)[:] = 1.0
        assert not graph.log_tables.any()

    def test_compile_is_itself(self):
        graph = mf.FactorGraph(structure(), np.zeros(12))
        assert graph.compile() is graph

    def test_repr(self):
        assert repr(mf.FactorGraph(structure(), np.zeros(12))) == "FactorGraph(3 variables, 2 factors, 12 cells)"


class TestScore:
    graph = mf.FactorGraph(structure(), np.arange(12.0))

    def test_forms_of_assignment(self):
        assert self.graph.score({0: 1, 1: 2, 2: 0}) == 5.0 + 10.0
        assert self.graph.score([1, 2, 0]) == 15.0
        many = self.graph.score(np.zeros((2, 5, 3), int))
        assert many.shape == (2, 5) and (many == 6.0).all()

    def test_minus_infinity(self):
        tables = np.arange(12.0)
        tables[5] = -np.inf
        assert self.graph.with_tables(tables).score([1, 2, 0]) == -np.inf

    @pytest.mark.parametrize(
        ("assignment", "message"),
        [
            ({0: 1, 1: 2}, "nothing of variable 2"),
            ({0: 1, 1: 2, 3: 0}, "no variable 3 in the model; its variables are 0 to 2"),
            ({0: 1, 1: 3, 2: 0}, "state index 3 of variable 1 is outside 0 to 2"),
            ({0: 1, 1: -1, 2: 0}, "state index -1 of variable 1 is outside 0 to 2"),
            ([1, 2], "last axis of 3 variables"),
            ([1, 3, 0], "outside its variable's range"),
            ([1, -1, 0], "outside its variable's range"),
        ],
    )
    def test_refusals(self, assignment, message: str):
        with pytest.raises(mf.ModelError, match=message):
            self.graph.score(assignment)

    def test_no_variables(self):
        net = mf.MarkovNetwork()
        net.add_factor([], log_table=2.5)
        assert net.compile().score({}) == 2.5
        assert net.compile().score(np.zeros((4, 0), int)).tolist() == [2.5] * 4

    def test_no_factors(self):
        assert mf.MarkovNetwork({"A": 2}).compile().score({"A": 1}) == 0.0


class TestUnion:
    def test_names_tables_and_scores(self):
        specs = [random_spec(seed) for seed in (1, 2, 5)]
        graphs = [spec.build().compile() for spec in specs]
        both = mf.FactorGraph.union(graphs)
        assert both.n_variables == sum(g.n_variables for g in graphs)
        assert both.variables[0] == f"0/{graphs[0].variables[0]}"
        rng = np.random.default_rng(0)
        parts = [rng.integers(0, g.structure.cardinalities, (20, g.n_variables)) for g in graphs]
        expected = sum(g.score(p) for g, p in zip(graphs, parts, strict=True))
        np.testing.assert_allclose(both.score(np.hstack(parts)), expected)

    def test_ties_children_and_state_names_travel(self):
        net = mf.MarkovNetwork({"A": ["no", "yes"], "B": ["no", "yes"]})
        net.add_factors([["A"], ["B"]], [1, 2])
        network = mf.BayesianNetwork({"C": ["lo", "hi"]})
        network.add_cpt("C", [], [0.5, 0.5])
        both = mf.FactorGraph.union([net.compile(), network.compile()])
        assert both.structure.n_cells == 4
        assert both.structure.child.tolist() == [-1, -1, 2]
        assert both.score({"0/A": "yes", "0/B": "no", "1/C": "hi"}) == pytest.approx(np.log(2) + np.log(0.5))

    def test_clauses_travel(self):
        net = mf.MarkovNetwork({"A": 2, "B": 3})
        net.add_clause({"B": 2}, {"A": 1}, weight=2.0)
        graph = net.compile()
        both = mf.FactorGraph.union([graph, graph])
        assert both.score([1, 0, 1, 2]) == 2.0 and both.score([0, 0, 1, 2]) == 4.0

    def test_names_stay_distinct(self):
        net = mf.MarkovNetwork({1: 2, "1": 3})
        names = mf.FactorGraph.union([net.compile(), net.compile()]).variables
        assert len(set(names)) == 4

    def test_of_nothing(self):
        assert mf.FactorGraph.union([]).n_variables == 0


class TestNetworkx:
    @given(specs())
    @settings(max_examples=25)
    def test_round_trip(self, spec: Spec):
        graph = spec.build().compile()
        bipartite = graph.to_networkx()
        again = mf.MarkovNetwork.from_networkx(bipartite).compile()
        assert list(again.variables) == list(graph.variables)
        assert again.n_factors == graph.n_factors
        np.testing.assert_allclose(
            graph_oracle(again).scores.astype(float), spec.oracle().scores.astype(float), atol=1e-12
        )

    def test_bipartite_attributes(self):
        net = mf.MarkovNetwork({"A": ["no", "yes"], "B": 3})
        net.add_factor(["B", "A"], np.ones((3, 2)))
        graph = net.compile().to_networkx()
        assert nx.is_bipartite(graph)
        assert graph.nodes["A"] == {"bipartite": 0, "states": ["no", "yes"]}
        assert graph.nodes["B"]["states"] == [0, 1, 2]
        assert list(graph.neighbors(("factor", 0))) == ["B", "A"]


class TestNames:
    names = Names(("Rain", "Speed", "Level", "Flag"), {0: ("no", "yes"), 1: (10, 20, 30), 3: (True, False)})

    def test_by_name(self):
        assert self.names.position("Speed") == 1
        assert self.names.state(0, "yes", 2) == 1
        assert self.names.state(1, 20, 3) == 1
        assert self.names.state(1, np.int64(30), 3) == 2
        assert self.names.state(2, 3, 4) == 3

    def test_an_int_is_an_index_only_when_no_state_is_named_by_an_int(self):
        assert self.names.state(0, 1, 2) == 1
        with pytest.raises(mf.ModelError, match="variable 'Speed' has no state 1; its states are 10, 20, 30"):
            self.names.state(1, 1, 3)

    def test_a_number_equal_to_a_name_is_never_an_index(self):
        # 1 == 1.0, so with states 1.0 and 2.0 an int would be a name or an index, depending on its value.
        names = Names(("Dose",), {0: (1.0, 2.0)})
        assert names.state(0, 1.0, 2) == 0 and names.state(0, 2, 2) == 1
        with pytest.raises(mf.ModelError, match=r"no state 0; its states are 1\.0, 2\.0"):
            names.state(0, 0, 2)

    @pytest.mark.parametrize(("state", "index"), [(True, 0), (np.bool_(True), 0), (False, 1), (np.bool_(False), 1)])
    def test_booleans_are_names_where_states_are_booleans(self, state, index: int):
        assert self.names.state(3, state, 2) == index

    def test_a_boolean_is_not_the_state_named_one(self):
        with pytest.raises(mf.ModelError, match="no state True"):
            Names(("X",), {0: (0, 1)}).state(0, True, 2)

    @pytest.mark.parametrize(("position", "state"), [(0, -1), (0, 2), (2, -1), (2, 4)])
    def test_indices_outside(self, position: int, state: int):
        with pytest.raises(mf.ModelError, match=rf"state index {state} of variable .* is outside 0 to"):
            self.names.state(position, state, (2, 3, 4)[position])

    @pytest.mark.parametrize("state", ["maybe", 1.5, None, ["no"], {"a": 1}])
    def test_unknown_states(self, state):
        with pytest.raises(mf.ModelError, match=r"variable 'Rain' has no state .*; its states are 'no', 'yes'"):
            self.names.state(0, state, 2)
        with pytest.raises(mf.ModelError, match=r"variable 'Level' has no state .*; its states are 0 to 3"):
            self.names.state(2, state, 4)

    def test_unknown_variables(self):
        with pytest.raises(mf.ModelError, match="no variable 'Sped' in the model; did you mean 'Speed'"):
            self.names.position("Sped")
        with pytest.raises(mf.ModelError, match="its variables are 'Rain', 'Speed', 'Level', 'Flag'"):
            self.names.position(7)
        with pytest.raises(mf.ModelError, match="no variable \\['Rain'\\]"):
            self.names.position(["Rain"])
        with pytest.raises(mf.ModelError, match="its variables are 0 to 4"):
            Names(range(5)).position(5)
        with pytest.raises(mf.ModelError, match="its variables are 0 to 4"):
            Names(range(5)).position(-1)

    def test_repeats(self):
        with pytest.raises(mf.ModelError, match="named twice"):
            self.names.positions(["Rain", "Rain"])

    @pytest.mark.parametrize(
        ("states", "message"),
        [
            (0, "needs at least one state, got 0"),
            (-2, "needs at least one state, got -2"),
            ([], "an empty sequence"),
            (["a", "a"], "not distinct"),
            ("ab", "a count or a sequence of names, got str"),
            (2.0, "a count or a sequence of names, got float"),
            (True, "a count or a sequence of names, got bool"),
            ({"a", "b"}, "a count or a sequence of names, got set"),
        ],
    )
    def test_states_refused(self, states, message: str):
        with pytest.raises(mf.ModelError, match=message):
            normalise_states("X", states)

    def test_states_accepted(self):
        assert normalise_states("X", 3) == (3, None)
        assert normalise_states("X", np.int32(3)) == (3, None)
        assert normalise_states("X", ["a", "b"]) == (2, ("a", "b"))
        assert normalise_states("X", range(5, 7)) == (2, (5, 6))
        assert normalise_states("X", np.array([1, 2])) == (2, (1, 2))
