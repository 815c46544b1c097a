"""Clients that move a filter one after another, as docs/module.md says: run_moving_in.py PORT SEED.

Each item comes several times, from clients at different steps. Exactly one of them may hear that it
is new."""
import random
import sys

import redis

sys.path.insert(0, "examples")
from moving_in import Moving  # noqa: E402

port, seed = int(sys.argv[1]), int(sys.argv[2])
random.seed(seed)


def connect():
    return redis.Redis(port=port)


connect().execute_command("SBF.RESERVE", "new", "1e-12", "10000")


class Alone:
    """A client that knows one of the filters."""

    def __init__(self, prefix, key):
        self.client, self.prefix, self.key = connect(), prefix, key

    def add(self, item):
        return self.client.execute_command(f"{self.prefix}.ADD", self.key, item) == 1

    def exists(self, item):
        return self.client.execute_command(f"{self.prefix}.EXISTS", self.key, item) == 1


def before():
    return Alone("BF", "old")


def moving():
    return Moving(connect(), "old", "new")


def after():
    return Alone("SBF", "new")


heard = {}  # how often an item was called new
number = 0


def run(clients, known):
    """Brings each of 500 new items to three clients, and some of the known items once more."""
    global number
    fresh = [f"item-{number + i}" for i in range(500)]
    number += 500
    calls = [(client, item) for item in fresh for client in random.choices(clients, k=3)]
    calls += [(random.choice(clients), item) for item in random.sample(known, len(known) // 2)]
    random.shuffle(calls)
    for client, item in calls:
        if client.add(item):
            heard[item] = heard.get(item, 0) + 1
    for item in fresh + known:
        assert random.choice(clients).exists(item), item
    return fresh


first = run([before()], [])
second = run([before(), before(), moving()], first)
# From here on all clients move. Items from before are known as long as the old filter is asked.
third = run([moving(), moving()], first + second)
# Items from before no longer matter: clients leave the old filter.
fourth = run([moving(), after()], third)
assert connect().execute_command("BF.DROP", "old") == 1
fifth = run([after(), after()], third + fourth)

everything = first + second + third + fourth + fifth
assert sorted(heard) == sorted(everything)
assert set(heard.values()) == {1}, {item: n for item, n in heard.items() if n != 1}
assert not any(after().exists(f"none-{i}") for i in range(1000))
print(len(everything), "items")
