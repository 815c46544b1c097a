// Writes docs/commands.md from the tables of commands: `make docs`, and a test that it was done.
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include "module/commands/defaults.h"
#include "module/commands/families.h"
#include "module/host/command.h"

namespace {

using semel::host::Command;
using semel::host::Effect;
using semel::host::Pace;

struct Family {
  std::string_view title;
  std::string_view text;
  std::span<const Command> commands;
};

const char* effect_of(const Command& command) {
  switch (command.effect) {
    case Effect::reads:
      return "reads";
    case Effect::writes:
      return "writes";
    case Effect::frees:
      return "writes, also when memory is short";
    case Effect::server:
      return "for the server itself";
  }
  return "";
}

void write(const Command& command) {
  std::cout << "### " << command.name << "\n\n    " << command.name << ' ' << command.syntax
            << "\n\n"
            << command.summary << ".\n\n| | |\n|---|---|\n| answers | " << command.reply
            << " |\n| takes | " << command.complexity << " |\n| ACL | "
            << (command.effect == Effect::reads ? "@read" : "@write")
            << (command.effect == Effect::server ? " @admin @dangerous" : "")
            << (command.pace == Pace::fast ? " @fast" : " @slow") << "; " << effect_of(command)
            << " |\n\n";
}

}  // namespace

int main() {
  using namespace semel::module;
  const Family families[] = {
      {"TALLY: counters that count every operation once",
       "A key holds a table of counters. An operation has an id, chosen by the client and sent "
       "again "
       "when it retries: `ID` and any text, or `OP`, the name of the client and a number that it "
       "counts up, which is exact and takes a tenth of the memory. A table that does not exist is "
       "made by the first command that writes to it.",
       tally_commands()},
      {"SIFT: each event once",
       "A key recognises the ids of events for as long as its window. `SIFT.ADD` takes an event in "
       "one "
       "step; `SIFT.CLAIM` and `SIFT.COMMIT` take it in two, for consumers that may crash between "
       "them.",
       sift_commands()},
      {"BF: Bloom filters", "As RedisBloom 2.6 defines them, with `BF.LIKE` and `BF.MERGE`.",
       bloom_commands()},
      {"CF: cuckoo filters", "As RedisBloom 2.6 defines them, with `CF.LIKE` and `CF.MERGE`.",
       cuckoo_commands()},
      {"SEMEL",
       "For replication, AOF files and the server itself. A client that calls them changes "
       "nothing.",
       semel::host::effect_commands()},
  };
  std::cout << "# Commands\n\n"
               "Written from the tables in `module/commands` by `make docs`: change those, not "
               "this. How the module is loaded and run is in [module.md](module.md).\n\n"
               "Words in capitals are written as they are, in capitals or not; [ ] may be left "
               "out; < > belongs together; | stands between alternatives; ... repeats what is "
               "before it. A `duration` is a number of milliseconds, or one with a unit: `500ms`, "
               "`30s`, `10m`, `2h`, `7d`. In RESP2 a map is a flat array, a boolean 0 or 1.\n\n"
               "## Settings\n\n"
               "`CONFIG SET semel.NAME VALUE`, or `loadmodule semel.so NAME VALUE ...`. They say "
               "what a key is made with; keys that exist stay as they are.\n\n"
               "| name | default | what it is |\n|---|---|---|\n";
  for (const semel::host::Setting& setting : settings()) {
    std::cout << "| `" << setting.name << "` | `" << setting.value << "` | " << setting.summary
              << " |\n";
  }
  std::cout << '\n';
  for (const Family& family : families) {
    std::cout << "## " << family.title << "\n\n" << family.text << "\n\n";
    for (const Command& command : family.commands) write(command);
  }
}
