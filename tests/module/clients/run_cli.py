"""Runs the script with redis-cli, in one pipe: run_cli.py PORT SCRIPT."""
import json
import subprocess
import sys

port, script = sys.argv[1], json.load(open(sys.argv[2]))
lines = "".join(" ".join(json.dumps(word) for word in words) + "\n" for words, _ in script)
done = subprocess.run(["redis-cli", "-p", port, "-2", "--json"], input=lines, text=True,
                      capture_output=True, check=True)
answers = [line for line in done.stdout.splitlines() if line]
assert len(answers) == len(script), done.stdout
for (words, expected), line in zip(script, answers):
    answer = {"error": json.loads(line[6:])} if line.startswith("error:") else json.loads(line)
    assert answer == expected, (words, answer, expected)
version = subprocess.run(["redis-cli", "--version"], text=True, capture_output=True, check=True)
print(version.stdout.split()[0], version.stdout.split()[1] + ":", len(script), "commands")
