"""Checks that redis_exporter and Prometheus understand docs/watch:
check_exporter.py PORT FOLDER EXPORTER PROMTOOL. The server must have a key of each family."""
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import redis

port, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
exporter, promtool = sys.argv[3:]
client = redis.Redis(port=port, decode_responses=True)


def scrape():
    """Returns what the exporter tells, as a user with the rights that docs/module.md names."""
    client.execute_command("ACL", "SETUSER", "exporter", "on", ">secret", "+eval", "+info")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
    process = subprocess.Popen(
        [exporter, "--redis.addr", "redis://127.0.0.1:%d" % port, "--redis.user", "exporter",
         "--redis.password", "secret", "--script", folder / "semel.lua",
         "--web.listen-address", address],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + 60
    try:
        while True:
            try:
                with direct.open("http://%s/metrics" % address, timeout=60) as reply:
                    return reply.read().decode()
            except (urllib.error.URLError, ConnectionError) as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("%s: %s" % (error, process.communicate(timeout=60)[0]))
                time.sleep(0.1)
    finally:
        process.kill()
        process.wait()


text = scrape()
exported = {}
for labels, value in re.findall(r"^redis_script_values\{(.*)\} (\S+)$", text, re.M):
    exported[dict(re.findall(r'(\w+)="([^"]*)"', labels))["key"]] = float(value)
# The client has made numbers of these already.
told = {name: float(value) for name, value in client.info("semel").items()
        if name.startswith("semel_")}
assert set(exported) == set(told) and len(told) > 40, (text, told)
for name in ("semel_bf_keys", "semel_cf_keys", "semel_sift_keys", "semel_tally_keys"):
    assert exported[name] == told[name] == 1, (name, exported, told)

# The series as Prometheus has them after ten minutes. Counters grow, so that rates are not 0.
series = [{"series": 'redis_script_values{instance="a:1",filename="semel.lua",key="%s"}' % name,
           "values": "%r+60x10" % value} for name, value in exported.items()]
panels = json.loads((folder / "dashboard.json").read_text())
expressions = {panel["title"]: target["expr"]
               for panel in panels["panels"] for target in panel["targets"]}
for variable in panels["templating"]["list"]:
    if variable["type"] == "query":
        query = re.fullmatch(r"label_values\((.*), instance\)", variable["query"]["query"])
        expressions["variable " + variable["name"]] = query[1]
tests = []
for where, expression in expressions.items():
    pattern = re.search(r'key=(~?)"([^"]+)"', expression)
    keys = [key for key in exported
            if (re.fullmatch(pattern[2], key) if pattern[1] else key == pattern[2])]
    assert keys, (where, expression)
    expression = expression.replace("$instance", "a:.*").replace("$__rate_interval", "5m")
    assert "$" not in expression, (where, expression)
    tests.append({"expr": "count(%s)" % expression, "eval_time": "10m",
                  "exp_samples": [{"labels": "{}", "value": len(keys)}]})
    if expression.startswith("rate("):
        tests.append({"expr": "max(%s)" % expression, "eval_time": "10m",
                      "exp_samples": [{"labels": "{}", "value": 1}]})
assert len(expressions) > 10, expressions
# No alert for the server as it is.
still = [dict(one, values=one["values"].replace("+60x", "x")) for one in series]
with tempfile.TemporaryDirectory() as place:
    path = pathlib.Path(place) / "test.yml"
    path.write_text(json.dumps({
        "rule_files": [str((folder / "alerts.yml").resolve())], "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests},
                  {"interval": "1m", "input_series": still, "promql_expr_test": [
                      {"expr": "ALERTS", "eval_time": "10m", "exp_samples": []}]}]}))
    subprocess.run([promtool, "test", "rules", path], check=True, stdout=sys.stderr)

version = re.search(r'redis_exporter_build_info\{.*version="v?([^"]*)"', text)
print("redis_exporter %s: %d numbers" % (version[1], len(exported)))
