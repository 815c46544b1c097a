"""Clients that move a cuckoo filter, as docs/module.md says: run_moving_cuckoo.py PORT SEED.

Clients at neighbouring steps add, remove and look up the same items. Each answer must be that of a
set."""
import random
import sys

import redis

sys.path.insert(0, "examples")
from moving_in import MovingCuckoo  # noqa: E402

port, seed = int(sys.argv[1]), int(sys.argv[2])
random.seed(seed)


def connect():
    return redis.Redis(port=port)


# No false positive among the items.
connect().execute_command("CONFIG", "SET", "semel.cf-error", "1e-12")
connect().execute_command("SCF.RESERVE", "new", "1000")


class Alone:
    """One of the filters."""

    def __init__(self, prefix, key):
        self.client, self.prefix, self.key = connect(), prefix, key

    def call(self, verb, item):
        return self.client.execute_command(f"{self.prefix}.{verb}", self.key, item) == 1

    def add(self, item):
        return self.call("ADDNX", item)

    def exists(self, item):
        return self.call("EXISTS", item)

    def remove(self, item):
        return self.call("DEL", item)


class Client:
    """A client that adds and looks up in one place, and removes from another."""

    def __init__(self, adds_to, removes_from):
        self.adds_to = adds_to
        self.add, self.exists, self.remove = adds_to.add, adds_to.exists, removes_from.remove


old, new = Alone("CF", "old"), Alone("SCF", "new")
both = MovingCuckoo(connect(), "old", "new")
assert both.remove("nothing") is False and not MovingCuckoo(connect(), "none", "none:2").remove("x")
old.add("the first")

there = {"the first"}
moved = set()  # the items of `there` that are in the new filter
gone = set()  # items that were removed
number = calls = 0


def run(clients, matter):
    """Lets the clients work on items of `matter`, on removed ones, and on new ones."""
    global number, calls
    items = sorted(matter) + random.sample(sorted(gone), len(gone) // 2)
    items += [f"item-{number + i}" for i in range(100)]
    number += 100
    for _ in range(1000):
        client, item = random.choice(clients), random.choice(items)
        verb = random.choice(["add", "add", "exists", "remove"])
        answer, known = bool(getattr(client, verb)(item)), item in there
        assert answer == (not known if verb == "add" else known), (verb, item, answer)
        if verb == "add":
            there.add(item)
            gone.discard(item)
            if client.adds_to is not old:
                moved.add(item)
        elif verb == "remove":
            there.discard(item)
            moved.discard(item)
            gone.add(item)
        calls += 1


before, removes_from_both = Client(old, old), Client(old, both)
moving, leaves, after = Client(both, both), Client(new, both), Client(new, new)

run([before], there)
run([before, removes_from_both], there)
run([removes_from_both, moving], there)
run([moving], there)
# Items from before no longer matter.
run([moving, leaves], moved)
assert connect().execute_command("CF.DROP", "old") == 1
run([leaves, after], moved)
run([after], moved)
print(calls, "calls")
