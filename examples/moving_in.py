"""Moves a filter of RedisBloom to Semel, in a server that has both: docs/module.md, 'Moving in'.

    filter = Moving(redis.Redis(), old="seen", new="seen:2")
    if filter.add("order-17"):
        ...  # the order is new

The old filter has the commands BF.*, and the new one SBF.*. The server was started with

    redis-server --loadmodule redisbloom.so --loadmodule semel.so bf-prefix SBF cf-prefix SCF

In a cluster, both keys need one slot: {seen} and {seen}:2.
"""
import redis


class Moving:
    """A filter in two places. Both get each item, in one transaction."""

    add_verb = "ADD"

    def __init__(self, client, old, new, old_prefix="BF", new_prefix="SBF"):
        self.client = client
        self.old, self.new = old, new
        self.old_prefix, self.new_prefix = old_prefix, new_prefix

    def add(self, item):
        """Returns True if the item is new.

        If one of the filters refuses the item, this raises. The other filter may have it then."""
        return all(self._both(self.add_verb, item))

    def exists(self, item):
        return any(self._both("EXISTS", item))

    def _both(self, verb, item):
        pipe = self.client.pipeline(transaction=True)
        pipe.execute_command(f"{self.old_prefix}.{verb}", self.old, item)
        pipe.execute_command(f"{self.new_prefix}.{verb}", self.new, item)
        answers = pipe.execute(raise_on_error=False)
        return [self._checked(answer) for answer in answers]

    def _checked(self, answer):
        if isinstance(answer, redis.RedisError):
            raise answer
        return answer


class MovingCuckoo(Moving):
    """A cuckoo filter in two places, which holds each item once."""

    add_verb = "ADDNX"

    def __init__(self, client, old, new, old_prefix="CF", new_prefix="SCF"):
        super().__init__(client, old, new, old_prefix, new_prefix)

    def remove(self, item):
        """Returns True if the item was there."""
        return any(self._both("DEL", item))

    def _checked(self, answer):
        # CF.DEL says so of a key that is missing: there is nothing to remove.
        if isinstance(answer, redis.ResponseError) and str(answer) == "Not found":
            return 0
        return super()._checked(answer)
