"""Runs the script with redis-py or valkey-py, and then their own functions for filters:
run_redis_py.py PORT SCRIPT LIBRARY PROTOCOL, where LIBRARY is redis or valkey."""
import importlib
import json
import sys

port, script = int(sys.argv[1]), json.load(open(sys.argv[2]))
library, protocol = importlib.import_module(sys.argv[3]), int(sys.argv[4])
resp3 = protocol == 3


def connect(**settings):
    # Old versions know RESP2 alone.
    more = {"protocol": 3} if resp3 else {}
    return getattr(library, library.__name__.capitalize())(port=port, **more, **settings)


client = connect(decode_responses=True)


def plain(answer):
    """Returns the form of RESP2: clients make booleans and dictionaries of some answers."""
    if isinstance(answer, bool):
        return int(answer)
    if isinstance(answer, float):
        return repr(answer)
    if isinstance(answer, dict):
        return [plain(part) for pair in answer.items() for part in pair]
    if isinstance(answer, (list, tuple)):
        return [plain(part) for part in answer]
    return answer


for words, expected in script:
    try:
        answer = client.execute_command(*words)
        answer = "OK" if answer is True and expected == "OK" else plain(answer)
    except library.ResponseError as error:
        # The client removes the code of an error.
        answer = {"error": str(error)}
        if isinstance(expected, dict):
            expected = {"error": expected["error"].removeprefix("ERR ")}
    # What is a number or a boolean in RESP3 may be a text or a number in RESP2.
    assert answer == expected or resp3 and str(answer) == str(expected), (words, answer, expected)


def same(answer, expected):
    """Compares a typed answer: booleans in RESP3, numbers in RESP2."""
    assert answer == expected, (answer, expected)
    kinds = {type(part) for part in (answer if isinstance(answer, list) else [answer])}
    assert kinds == {bool if resp3 else int}, answer


def field(info, attribute, name):
    """Returns a field of INFO. The client makes an object of INFO, or in RESP3 a dictionary."""
    return info[name] if isinstance(info, dict) else getattr(info, attribute)


client.flushall()
bloom = client.bf()
assert bloom.create("b", 0.001, 100)
same(bloom.add("b", "a"), 1)
same(bloom.madd("b", "a", "b"), [0, 1])
same(bloom.insert("b", ["b", "c"]), [0, 1])
same(bloom.exists("b", "c"), 1)
same(bloom.mexists("b", "a", "z"), [1, 0])
assert bloom.card("b") == 3 if hasattr(bloom, "card") else True
info = bloom.info("b")
for attribute, name, value in [("capacity", "Capacity", 100),
                               ("filterNum", "Number of filters", 1),
                               ("insertedNum", "Number of items inserted", 3),
                               ("expansionRate", "Expansion rate", 2)]:
    assert field(info, attribute, name) == value, (name, info)
assert field(info, "size", "Size") > 0
assert bloom.create("fixed", 0.01, 100, noScale=True)
assert field(bloom.info("fixed"), "expansionRate", "Expansion rate") is None
for wrong in [lambda: bloom.create("b", 0.01, 100), lambda: bloom.create("c", 2, 100),
              lambda: bloom.info("none"), lambda: bloom.insert("none", ["a"], noCreate=True)]:
    try:
        raise AssertionError(wrong())
    except library.ResponseError:
        pass
binary = connect().bf()
chunks, iterator = [], 0
while True:
    iterator, chunk = binary.scandump("b", iterator)
    if iterator == 0:
        break
    chunks.append((iterator, chunk))
for iterator, chunk in chunks:
    assert binary.loadchunk("copy", iterator, chunk)
same(bloom.mexists("copy", "a", "b", "c", "z"), [1, 1, 1, 0])

cuckoo = client.cf()
assert cuckoo.create("c", 1000)
same(cuckoo.add("c", "a"), 1)
same(cuckoo.addnx("c", "a"), 0)
same(cuckoo.insert("c", ["a", "b"]), [1, 1])
assert cuckoo.insertnx("c", ["a", "d"]) == [0, 1]
assert cuckoo.count("c", "a") == 2
same(cuckoo.exists("c", "b"), 1)
if hasattr(cuckoo, "mexists"):
    same(cuckoo.mexists("c", "a", "z"), [1, 0])
same(cuckoo.delete("c", "a"), 1)
info = cuckoo.info("c")
for attribute, name, value in [("filterNum", "Number of filters", 1),
                               ("insertedNum", "Number of items inserted", 3),
                               ("deletedNum", "Number of items deleted", 1),
                               ("bucketSize", "Bucket size", 2),
                               ("expansionRate", "Expansion rate", 1),
                               ("maxIteration", "Max iterations", 20)]:
    assert field(info, attribute, name) == value, (name, info)
binary = connect().cf()
iterator = 0
while True:
    iterator, chunk = binary.scandump("c", iterator)
    if iterator == 0:
        break
    assert binary.loadchunk("copied", iterator, chunk)
assert cuckoo.count("copied", "a") == 1
print(f"{library.__name__}-py {library.__version__}: {len(script)} commands")
