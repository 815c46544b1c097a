"""The script by python3-redis, and what it has for filters itself: run_redis_py.py PORT SCRIPT."""
import json
import sys

import redis

client = redis.Redis(port=int(sys.argv[1]), decode_responses=True)
script = json.load(open(sys.argv[2]))


def plain(answer):
    """As the protocol has it: clients make booleans and dictionaries of some answers."""
    if isinstance(answer, bool):
        return int(answer)
    if isinstance(answer, (list, tuple)):
        return [plain(part) for part in answer]
    return answer


for words, expected in script:
    try:
        answer = plain(client.execute_command(*words))
        if answer is True:
            answer = "OK"
    except redis.ResponseError as error:
        # The client takes the code of an error away.
        answer = {"error": str(error)}
        if isinstance(expected, dict):
            expected = {"error": expected["error"].removeprefix("ERR ")}
    assert answer == expected, (words, answer, expected)

client.flushall()
bloom = client.bf()
assert bloom.create("b", 0.001, 100)
assert bloom.add("b", "a") == 1
assert bloom.madd("b", "a", "b") == [0, 1]
assert bloom.insert("b", ["b", "c"]) == [0, 1]
assert bloom.exists("b", "c") == 1
assert bloom.mexists("b", "a", "z") == [1, 0]
info = bloom.info("b")
assert info.capacity == 100 and info.insertedNum == 3 and info.expansionRate == 2
chunks, iterator = [], 0
binary = redis.Redis(port=int(sys.argv[1])).bf()
while True:
    iterator, chunk = binary.scandump("b", iterator)
    if iterator == 0:
        break
    chunks.append((iterator, chunk))
for iterator, chunk in chunks:
    assert binary.loadchunk("copy", iterator, chunk)
assert bloom.mexists("copy", "a", "b", "c", "z") == [1, 1, 1, 0]

cuckoo = client.cf()
assert cuckoo.create("c", 1000)
assert cuckoo.add("c", "a")
assert not cuckoo.addnx("c", "a")
assert cuckoo.insert("c", ["a", "b"]) == [1, 1]
assert cuckoo.insertnx("c", ["a", "d"]) == [0, 1]
assert cuckoo.count("c", "a") == 2
assert cuckoo.exists("c", "b")
assert cuckoo.delete("c", "a")
info = cuckoo.info("c")
assert info.insertedNum == 3 and info.deletedNum == 1 and info.bucketSize == 2
print(len(script), "commands")
