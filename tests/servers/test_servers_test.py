"""Tests tools/test-servers with servers and tests that do nothing: test_servers_test.py PROGRAM."""
import pathlib
import subprocess
import sys
import tempfile

program = sys.argv.pop(1)
place = tempfile.TemporaryDirectory()
folder = pathlib.Path(place.name)
servers, build, document = folder / "servers", folder / "build", folder / "module.md"
BEGIN = "<!-- servers: written by `make servers-table` -->\n"
END = "<!-- servers end -->\n"


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def case(name, inside=""):
    suite, _, own = name.partition(".")
    return f'<testcase name="{own}" classname="{suite}" status="run">{inside}</testcase>'


def passed_as(client):
    return f'<properties><property name="client" value="{client}"/></properties>'


def skipped(why):
    return f'<skipped message="a.cc:1&#10;{why}&#10;more"/>'


def say_results(server, test, *cases):
    """Lets this test have these results in this server from now on."""
    (folder / f"{server}-{test}.xml").write_text(f"<testsuites>{''.join(cases)}</testsuites>")


def tested(*options):
    """Runs the program. Returns its status, what it says, and the table in the document."""
    done = subprocess.run(
        [sys.executable, program, servers, build, "--document", document, *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout, document.read_text()


def check(condition, *shown):
    if not condition:
        raise SystemExit("\n".join(map(str, shown)))


for server in ("redis-1.0", "valkey-2.0"):
    name = server.partition("-")[0]
    executable(servers / server / "bin" / f"{name}-server", "#!/bin/sh\n")
    (servers / server / "suite").write_text("sid\n")
build.mkdir()
with open(build / "CTestTestfile.cmake", "w", encoding="utf-8") as out:
    for test in ("module_values_test", "module_clients_test", "module_hostile_test"):
        executable(build / test, f"""#!/bin/sh
server=${{SEMEL_SERVER%/bin/*}}
cp '{folder}'/"${{server##*/}}"-{test}.xml "${{1#--gtest_output=xml:}}"
""")
        out.write(f'add_test({test} "{build}/{test}")\n')
        out.write(f'set_tests_properties({test} PROPERTIES LABELS servers\n')
        out.write(f'  WORKING_DIRECTORY "{folder}")\n')
for server in ("redis-1.0", "valkey-2.0"):
    say_results(server, "module_values_test", case("Values.AreThere"),
                case("Values.AreOdd", skipped("it is Tuesday")))
    say_results(server, "module_hostile_test", case("Fuzzer.IsAnswered", skipped("no fuzzer")))
python = case("Clients.Python", passed_as("redis-py 6.1.0"))
say_results("redis-1.0", "module_clients_test", python,
            case("All/Clients.New/old", passed_as("redis-py 4.3.4")),
            case("Clients.Go", passed_as("go-redis 9.17.2")),
            *(case(f"Slots.Move{i}", skipped("no slots")) for i in range(9)))
say_results("valkey-2.0", "module_clients_test", python, case("All/Clients.New/old"))

# A document with another table is a failure, and stays as it is.
document.write_text("before\n" + BEGIN + "another\n" + END + "after\n")
status, said, text = tested()
check(status == 1 and "make servers-table" in said, status, said)
check(text.endswith(BEGIN + "another\n" + END + "after\n"), text)
# It is written from the results, and is then right.
status, said, text = tested("--write")
check(status == 0, status, said)
check(text.startswith("before\n" + BEGIN) and text.endswith(END + "after\n"), text)
status, said, again = tested()
check(status == 0 and again == text, status, said)

# 'passes' says that something did.
row = "| {} | sid | passes |  |  |  | passes | skipped |"
check(row.format("Redis 1.0") in text and row.format("Valkey 2.0") in text, text)
# Clients have major versions only, and the names of those servers in which they passed.
check("- Clients in every server, besides our own: redis-py 6.\n" in text, text)
check("- Clients in Redis 1.0, besides our own: go-redis 9, redis-py 4.\n" in text, text)
# Each reason has its tests, and many tests of one suite are one.
check("- Skipped in every server: `Values.AreOdd`. Reason: it is Tuesday.\n" in text, text)
check("- Skipped in every server: `Fuzzer.IsAnswered`. Reason: no fuzzer.\n" in text, text)
check("- Skipped in Redis 1.0: `Slots.*` (9 tests). Reason: no slots.\n" in text, text)

# A new patch release of a client changes nothing; another result does.
say_results("valkey-2.0", "module_clients_test",
            case("Clients.Python", passed_as("redis-py 6.1.1")), case("All/Clients.New/old"))
check(tested()[0] == 0, tested())
say_results("valkey-2.0", "module_hostile_test", case("Fuzzer.IsAnswered"))
status, said, again = tested()
check(status == 1 and "make servers-table" in said and again == text, status, said)
# A part of the tests, or of the servers, says nothing about the document.
for options in (("--only", "redis"), ("--programs", "module_values_test")):
    status, said, again = tested(*options)
    check(status == 0 and again == text, status, said)
# A test that fails does.
say_results("redis-1.0", "module_values_test", case("Values.AreThere", "<failure message=''/>"))
status, said, again = tested("--only", "redis")
check(status == 1 and "FAILED: Redis 1.0: module_values_test: Values.AreThere" in said, said)
# In a server that the table does not name yet, it does so in a run of all servers only.
document.write_text(text.replace("Redis 1.0", "Redis 0.9"))
status, said, again = tested("--only", "redis")
check(status == 0 and "FAILED: Redis 1.0: module_values_test: Values.AreThere" in said, said)
check("fails nothing: Redis 1.0" in said, said)
check(tested()[0] == 1, tested())
print("tools/test-servers does what it says")
