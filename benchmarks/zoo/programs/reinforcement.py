"""Returns, planning and replay, as users of rlax and distrax write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


def _seed(draw: Draws):
    return draw.rng.integers(0, 2**32, 2).astype("uint32")


@program((8, 2), (64, 64), (512, 512))
def off_policy_targets(draw: Draws, steps: int, actors: int) -> Made:
    """V-trace: clipped ratios, a backward scan, targets and advantages."""

    def run(values, rewards, discounts, log_ratio):
        rho = jnp.minimum(jnp.exp(log_ratio), 1.0)
        after = jnp.concatenate([values[1:], values[-1:]])
        delta = rho * (rewards + discounts * after - values)

        def back(total, given):
            d, g, c = given
            total = d + g * c * total
            return total, total

        extra = lax.scan(back, jnp.zeros(actors), (delta, discounts, rho), reverse=True)[1]
        target = values + extra
        return target, rho * (rewards + discounts * jnp.concatenate([target[1:], values[-1:]]) - values)

    return run, (
        draw.normal(steps, actors),
        draw.normal(steps, actors),
        0.99 * (draw.uniform(steps, actors) < 0.95).astype("float32"),
        draw.normal(steps, actors, scale=0.3),
    )


@program((16, 2), (128, 64), (1024, 512))
def generalised_advantages(draw: Draws, steps: int, actors: int) -> Made:
    """Advantages by a parallel scan, normalised, and lambda returns."""

    def run(values, rewards, done):
        gamma = 0.99 * (1 - done)
        delta = rewards + gamma * values[1:] - values[:-1]

        def join(a, b):
            return a[0] * b[0], b[1] + b[0] * a[1]

        advantage = lax.associative_scan(join, (0.95 * gamma, delta), reverse=True)[1]
        return (advantage - advantage.mean()) / (advantage.std() + 1e-8), advantage + values[:-1]

    done = (draw.uniform(steps, actors) < 0.05).astype("float32")
    return run, (draw.normal(steps + 1, actors), draw.normal(steps, actors), done)


@program((6, 2), (40, 4), (400, 8))
def value_iteration(draw: Draws, states: int, actions: int) -> Made:
    """A tabular problem swept until values settle, and its greedy policy."""

    def run(moves, rewards):
        def sweep(state):
            v, _, k = state
            q = rewards + 0.9 * jnp.einsum("ast,t->sa", moves, v)
            new = q.max(1)
            return new, jnp.abs(new - v).max(), k + 1

        v = lax.while_loop(lambda s: (s[1] > 1e-4) & (s[2] < 200), sweep, (jnp.zeros(states), jnp.float32(1), 0))[0]
        return v, (rewards + 0.9 * jnp.einsum("ast,t->sa", moves, v)).argmax(1)

    moves = draw.uniform(actions, states, states)
    return run, (moves / moves.sum(-1, keepdims=True), draw.normal(states, actions))


@program((16, 4), (1024, 64), (65536, 256))
def prioritised_replay(draw: Draws, size: int, batch: int) -> Made:
    """A tree of sums: samples found from the root down, weights, then new priorities up to the root."""
    depth = size.bit_length() - 1

    def run(tree, at, priority):
        def down(_, state):
            node, rest = state
            left = tree[2 * node]
            right = rest >= left
            return 2 * node + right, rest - jnp.where(right, left, 0.0)

        node = lax.fori_loop(0, depth, down, (jnp.ones(batch, jnp.int32), at * tree[1]))[0]
        weight = (tree[node] / tree[1] * size) ** -0.5

        def up(_, state):
            tree, node = state
            node = node // 2
            return tree.at[node].set(tree[2 * node] + tree[2 * node + 1]), node

        tree = lax.fori_loop(0, depth, up, (tree.at[node].set(priority), node))[0]
        return node - size, weight / weight.max(), tree[1]

    tree = draw.uniform(2 * size, low=0.1)
    for k in range(size - 1, 0, -1):
        tree[k] = tree[2 * k] + tree[2 * k + 1]
    return run, (tree, (draw.uniform(batch) + range(batch)).astype("float32") / (batch + 0.1), draw.uniform(batch))


@program((32, 4), (256, 16), (4096, 32))
def clipped_policy_epochs(draw: Draws, batch: int, width: int) -> Made:
    """Shuffled minibatches of a clipped surrogate with an entropy bonus, two epochs in scans."""

    def loss(p, x, action, old, advantage):
        logits = jnp.tanh(x @ p[0]) @ p[1]
        log_p = jax.nn.log_softmax(logits)
        ratio = jnp.exp(jnp.take_along_axis(log_p, action[:, None], 1)[:, 0] - old)
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage)
        return -(gain - 0.01 * (jnp.exp(log_p) * log_p).sum(1)).mean()

    def run(seed, p, data):
        def epoch(p, key):
            order = jax.random.permutation(key, batch)
            parts = jax.tree.map(lambda a: a[order].reshape(4, batch // 4, *a.shape[1:]), data)

            def step(p, part):
                value, g = jax.value_and_grad(loss)(p, *part)
                return [a - 0.05 * b for a, b in zip(p, g, strict=True)], value

            return lax.scan(step, p, parts)

        return lax.scan(epoch, p, jax.random.split(jax.random.wrap_key_data(seed), 2))

    data = (
        draw.normal(batch, width),
        draw.integers(6, batch),
        draw.normal(batch, scale=0.1) - 1.8,
        draw.normal(batch),
    )
    return run, (_seed(draw), [draw.normal(width, 32, scale=0.3), draw.normal(32, 6, scale=0.3)], data)


@program((4, 20), (64, 100), (1024, 200))
def bandits(draw: Draws, problems: int, steps: int) -> Made:
    """Upper confidence bounds in a loop, mapped over problems, with rewards given in advance."""

    def one(rewards):
        def step(state, given):
            count, total = state
            t, reward = given
            bound = total / jnp.maximum(count, 1) + jnp.sqrt(2 * jnp.log(t + 1.0) / jnp.maximum(count, 1e-3))
            arm = bound.argmax()
            return (count.at[arm].add(1.0), total.at[arm].add(reward[arm])), arm

        return lax.scan(step, (jnp.zeros(8), jnp.zeros(8)), (jnp.arange(steps), rewards))

    return jax.vmap(one), (draw.uniform(problems, steps, 8),)


@program((2, 8), (16, 32), (128, 64))
def tree_search(draw: Draws, batch: int, simulations: int) -> Made:
    """Selection, expansion and back-up in arrays of nodes: while loops with scatters, mapped over a batch."""
    nodes, actions = simulations + 1, 4

    def one(values, priors):
        def simulate(k, tree):
            children, visits, total, parent = tree

            def choose(node):
                child = children[node]
                n = visits[jnp.maximum(child, 0)] * (child >= 0)
                mean = jnp.where(child >= 0, total[jnp.maximum(child, 0)] / jnp.maximum(n, 1), 0.0)
                return (mean + priors[node] * jnp.sqrt(visits[node] + 1.0) / (1 + n)).argmax()

            def deeper(state):
                node = children[state]
                return node, choose(node)

            node, action = lax.while_loop(lambda s: children[s] >= 0, deeper, (0, choose(0)))
            children = children.at[node, action].set(k)
            parent = parent.at[k].set(node)

            def back(state):
                at, visits, total = state
                return parent[at], visits.at[at].add(1.0), total.at[at].add(values[k])

            _, visits, total = lax.while_loop(lambda s: s[0] >= 0, back, (k, visits, total))
            return children, visits, total, parent

        start = jnp.full((nodes, actions), -1), jnp.zeros(nodes), jnp.zeros(nodes), jnp.full(nodes, -1)
        children, visits, _, _ = lax.fori_loop(1, nodes, simulate, start)
        return visits, children[0]

    return jax.vmap(one), (draw.uniform(batch, nodes), draw.uniform(batch, nodes, actions))


@program((4, 8), (64, 60), (512, 200))
def gridworld_rollout(draw: Draws, agents: int, steps: int) -> Made:
    """Agents that draw one of four moves from a table of preferences, a step each in a scan."""

    def run(seed, preferences):
        moves = jnp.array([[0, 1], [1, 0], [0, -1], [-1, 0]])

        def step(state, key):
            place, reward = state
            move = jax.random.categorical(key, preferences[place[:, 0], place[:, 1]])
            place = jnp.clip(place + moves[move], 0, 7)
            return (place, reward + (place == 7).all(1)), place

        keys = jax.random.split(jax.random.wrap_key_data(seed), steps)
        return lax.scan(step, (jnp.zeros((agents, 2), jnp.int32), jnp.zeros(agents)), keys)

    return run, (_seed(draw), draw.normal(8, 8, 4))
