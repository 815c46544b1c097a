"""Checks that the files of docs/watch use metrics that exist: check_watch.py PORT FOLDER."""
import json
import pathlib
import re
import sys

import redis
import yaml

port, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])

# redis_exporter takes the reply as pairs of a name and a number.
reply = redis.Redis(port=port, decode_responses=True).eval((folder / "semel.lua").read_text(), 0)
metrics = dict(zip(reply[::2], map(float, reply[1::2])))
assert len(reply) == 2 * len(metrics) > 40, reply
assert metrics["semel_bf_keys"] == 1 and metrics["semel_effects_failed"] == 0, metrics

used = set()


def check(where, expression):
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing), (where, expression)
    names = re.findall(r"\b(redis_\w+)", expression)
    assert names and set(names) == {"redis_script_values"}, (where, expression)
    keys = re.findall(r'key(=~?)"([^"]+)"', expression)
    assert len(keys) == len(names), (where, expression)
    for kind, key in keys:
        pattern = key if kind == "=~" else re.escape(key)
        found = {name for name in metrics if re.fullmatch(pattern, name)}
        assert found, f"{where}: no metric is {key}"
        # Each alternative of (a|b) must be there too.
        for group in re.findall(r"\(([^)]*)\)", pattern):
            for word in group.split("|"):
                assert any(word in name for name in found), f"{where}: no metric has {word}"
        used.update(found)


dashboard = json.loads((folder / "dashboard.json").read_text())
panels = dashboard["panels"]
assert len({panel["id"] for panel in panels}) == len(panels) > 10
for panel in panels:
    for target in panel["targets"]:
        check(panel["title"], target["expr"])
for variable in dashboard["templating"]["list"]:
    if variable["type"] == "query":
        check(variable["name"], variable["query"]["query"])

groups = yaml.safe_load((folder / "alerts.yml").read_text())["groups"]
rules = [rule for group in groups for rule in group["rules"]]
assert len({rule["alert"] for rule in rules}) == len(rules) > 5
tested = pathlib.Path(__file__).with_name("alerts_test.yml").read_text()
for rule in rules:
    assert f'"{rule["alert"]}"' in tested, rule
    check(rule["alert"], rule["expr"])
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule
    assert re.fullmatch(r"\d+[smhd]", rule.get("for", "1m")), rule
    assert rule["labels"]["severity"] in ("warning", "critical"), rule
    assert {"summary", "description"} == set(rule["annotations"]), rule

unseen = {"semel_max_value_bytes", "semel_jobs_started", "semel_tally_refused",
          "semel_sift_refused", "semel_staged_keys", "semel_staged_bytes", "semel_unserved_bytes"}
capacities = {name for name in metrics if name.endswith("_capacity")}
assert set(metrics) - used <= unseen | capacities, set(metrics) - used
print(len(used), "metrics in", len(panels), "panels and", len(rules), "rules")
