// Writes docs/commands.md from the tables of commands (`make docs`). A test compares the result.
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include "module/commands/defaults.h"
#include "module/commands/families.h"
#include "module/host/command.h"

namespace {

using semel::host::CommandKind;
using semel::host::CommandRow;
using semel::host::Pace;

struct Family {
  std::string_view title;
  std::string_view text;
  std::span<const CommandRow> commands;
};

const char* effect_of(const CommandRow& command) {
  switch (command.kind) {
    case CommandKind::reads:
      return "reads";
    case CommandKind::writes:
      return "writes";
    case CommandKind::frees:
      return "writes, also when memory is short";
    case CommandKind::server:
      return "for the server itself";
  }
  return "";
}

void write(const CommandRow& command) {
  std::cout << "### " << command.name << "\n\n    " << command.name << ' ' << command.syntax
            << "\n\n"
            << command.summary << ".\n\n| | |\n|---|---|\n| answers | " << command.reply
            << " |\n| takes | " << command.complexity << " |\n| ACL | "
            << (command.kind == CommandKind::reads ? "@read" : "@write")
            << (command.kind == CommandKind::server ? " @admin @dangerous" : "")
            << (command.pace == Pace::fast ? " @fast" : " @slow") << "; " << effect_of(command)
            << " |\n\n";
}

}  // namespace

int main() {
  using namespace semel::module;
  const Family families[] = {
      {"TALLY: counters that count every operation once",
       "A key holds a table of counters. An operation has an id, which the client chooses and "
       "sends "
       "again when it retries: `ID` and any text, or `OP`, the name of the client and a number "
       "that "
       "it counts up. `OP` makes no errors, and takes about a tenth of the memory of `ID`. An id "
       "belongs to the table, not to a counter: after `MINCRBY key IDS a 1 x b 2 x` the counter b "
       "has not changed. The first command that writes to a missing table makes it.",
       tally_commands()},
      {"SIFT: each event once",
       "A key recognises the ids of events for its window. `SIFT.ADD` accepts an event in one "
       "step. "
       "`SIFT.CLAIM` and `SIFT.COMMIT` accept it in two, for consumers that may crash between "
       "them.",
       sift_commands()},
      {"BF: Bloom filters",
       "The commands of RedisBloom and valkey-bloom ([what differs](module.md#what-differs)), and "
       "`BF.LIKE` and `BF.MERGE`. Their ACL category is `@bloom`.",
       bloom_commands()},
      {"CF: cuckoo filters",
       "The commands of RedisBloom ([what differs](module.md#what-differs)), and `CF.LIKE` and "
       "`CF.MERGE`. Their ACL category is `@cuckoo`.",
       cuckoo_commands()},
      {"SEMEL",
       "For replication, AOF files and the server itself. They change nothing if a client calls "
       "them.",
       semel::host::effect_commands()},
  };
  std::cout
      << "# Commands\n\n"
         "`make docs` writes this page from the tables in `module/commands`: change those, not "
         "this "
         "page. [module.md](module.md) describes how to load and run the module.\n\n"
         "Words in capitals are literal, in any case. [ ] is optional, < > groups, | separates "
         "alternatives, ... repeats what is before it. A `duration` is a number of "
         "milliseconds, or a number with a unit: `500ms`, `30s`, `10m`, `2h`, `7d`, `1w`. "
         "`bytes` are a number, or a number with a unit as in the server's `maxmemory`: `64m` (of "
         "1000), `64mb` (of 1024). A number may begin with zeros. In RESP2 a map is a flat array, "
         "and a boolean is 0 or 1.\n\n"
         "## Settings\n\n"
         "Set them with `CONFIG SET semel.NAME VALUE`, or with `loadmodule semel.so NAME VALUE "
         "...`. They apply to new keys; existing keys stay as they are.\n\n"
         "| name | default | meaning |\n|---|---|---|\n";
  for (const semel::host::Setting& setting : settings()) {
    std::cout << "| `" << setting.name << "` | `" << setting.value << "` | " << setting.summary
              << " |\n";
  }
  std::cout << '\n';
  for (const Family& family : families) {
    std::cout << "## " << family.title << "\n\n" << family.text << "\n\n";
    for (const CommandRow& command : family.commands) write(command);
  }
}
