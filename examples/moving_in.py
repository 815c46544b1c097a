"""Moves a filter of RedisBloom to Semel, in a server that has both: docs/module.md, 'Moving in'.

    filter = Moving(redis.Redis(), old="seen", new="seen:2")
    if filter.add("order-17"):
        ...  # the order is new

The old filter has the commands BF.*, and the new one SBF.*. The server was started with

    redis-server --loadmodule redisbloom.so --loadmodule semel.so bf-prefix SBF

In a cluster, both keys need one slot: {seen} and {seen}:2.
"""


class Moving:
    """A filter in two places. Both get each item, in one transaction."""

    def __init__(self, client, old, new, old_prefix="BF", new_prefix="SBF"):
        self.client = client
        self.old, self.new = old, new
        self.old_prefix, self.new_prefix = old_prefix, new_prefix

    def add(self, item):
        """Returns True if the item is new.

        If one of the filters refuses the item, this raises. The other filter may have it then."""
        return all(self._both("ADD", item))

    def exists(self, item):
        return any(self._both("EXISTS", item))

    def _both(self, verb, item):
        pipe = self.client.pipeline(transaction=True)
        pipe.execute_command(f"{self.old_prefix}.{verb}", self.old, item)
        pipe.execute_command(f"{self.new_prefix}.{verb}", self.new, item)
        return pipe.execute()
