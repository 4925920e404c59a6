"""The residual schedule: of all messages, the one that would move most goes first."""

from __future__ import annotations

import numpy as np

from markovfield.inference.belief_propagation.loopy import LoopyMessages
from markovfield.inference.belief_propagation.residual_kernel import residual_steps
from markovfield.inference.core.running import Running

__all__ = ["run_residual"]

# Messages in one kernel call, between which the time limit is looked at.
STEPS = 2**16


def run_residual(messages: LoopyMessages, running: Running) -> None:
    """Send the message that moves most until none moves by more than the tolerance; fills convergence by component.

    An iteration is as many messages as there are edges. Components in linear and in log space have a queue each.
    """
    g = messages.g
    n_edges = len(g.layout.edge_variable)
    pending = np.empty(len(messages.factor_to_variable))
    keys = np.zeros(n_edges)
    component = g.edge_component
    everything = np.ones(g.n_components, np.bool_)
    for logs in (False, True):
        budget = messages.settings.max_iterations * n_edges
        heap, place = np.arange(n_edges), np.arange(n_edges)
        sent, fresh = 0, True
        while True:
            mask = messages.in_logs == logs
            if not mask.any() or not n_edges:
                messages.converged |= mask
                break
            running.check()
            flags = np.zeros(g.n_components, np.uint8)
            unary, tables = (
                (messages.unary.log, messages.graph.log_tables)
                if logs
                else (messages.unary.linear, messages.known.linear)
            )
            steps = 0 if fresh else min(STEPS, budget - sent, n_edges - sent % n_edges)
            done = residual_steps(
                g.layout, steps, messages.settings.tolerance, unary, tables, messages.variable_to_factor,
                messages.factor_to_variable, pending, keys, heap, place, g.component, mask, messages.settings.damping,
                messages.maximise, messages.known.floor, np.bool_(logs), flags,
            )  # fmt: skip
            if messages._flagged(flags):
                while messages.send_to_factors(everything, running):
                    pass
                fresh = True
                continue
            if fresh:
                heap[:] = np.argsort(-keys, kind="stable")
                place[heap] = np.arange(n_edges)
                fresh = False
                continue
            sent += done
            ended = done < steps or sent >= budget
            if ended or sent % n_edges == 0:
                messages.residuals.append(float(keys[heap[0]]))
            if ended:
                break
        worst = np.zeros(g.n_components)
        np.maximum.at(worst, component, keys)
        chosen = messages.in_logs == logs
        messages.converged[chosen] = worst[chosen] <= messages.settings.tolerance
        messages.iterations[chosen] = -(-sent // max(n_edges, 1))
