// semel tally add: one operation on a counter, counted once however often it is tried.
#include <memory>

#include "cli/commands.h"
#include "cli/store_options.h"
#include "cli/tally_table.h"

namespace semel::cli {
namespace {

constexpr const char* kName = "semel tally add";

struct Settings {
  std::string directory;
  std::string counter;
  std::int64_t delta = 1;
  std::optional<std::string> id;
  std::optional<std::string> client;
  std::optional<std::uint64_t> sequence;
  ShapeOptions shape;
  DurabilityOptions durability{tally::Durability::every_write};
};

tally::OperationId id_of(const Settings& settings, const Hasher& hasher) {
  // Neither fails: the options have checked the lengths.
  if (settings.client) return *tally::numbered_id(hasher, *settings.client, *settings.sequence);
  return settings.id ? *tally::opaque_id(hasher, *settings.id) : tally::OperationId::none();
}

Result<Exit> add(const Settings& settings) {
  SEMEL_TRY(check_id_options(settings.id.has_value(), settings.client.has_value(),
                             settings.sequence.has_value()));
  const auto table =
      SEMEL_TRY(TallyTable::open_to_write(settings.directory, settings.shape, settings.durability));
  const Result<tally::Answer> answer = (*table)->add(
      {settings.counter, settings.delta, id_of(settings, table->hasher())}, table->now_ms());
  if (!answer) {
    const Error error = table->cannot("add to " + quoted(settings.directory), answer.error());
    if (error.code == Errc::io) return error;
    complain(kName, error.message());
    return Exit::refused;
  }
  SEMEL_TRY(table->close());
  const bool counted =
      answer->outcome == tally::Outcome::applied || answer->outcome == tally::Outcome::duplicate;
  std::string line = word_of(answer->outcome);
  if (counted && answer->value) line.append(" ").append(std::to_string(*answer->value));
  if (print(kName, line + '\n') != Exit::success) return Exit::failure;
  if (counted) return Exit::success;
  complain(kName, "nothing was counted: " + reason_of(answer->outcome));
  return Exit::refused;
}

}  // namespace

Command tally_add_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{
      "semel tally add",
      "Adds to a counter, once for each id however often it is tried",
      "Adds DELTA, or 1, to COUNTER in the table in DIRECTORY, which is made if it is not there. "
      "Writes 'applied' and the value, or 'duplicate' and the value if the id came before within "
      "the window: a retry is a success. 'stale', 'conflict' (in exact tables: the id came with "
      "another counter or delta), 'overflow' and 'full' say why nothing was counted. Without an "
      "id each run counts.\n"
      "Exits with 0, with 1 if the table could not be read or written, with 2 if an option is "
      "wrong, with 3 if nothing was counted for one of these reasons.",
      {{"id", 'i', value_of("ID", kIdAllowed, settings->id, parse_id),
        "the id, which a retry repeats and no other operation has; \\xNN stands for a byte"},
       {"client", 'c', value_of("NAME", kIdAllowed, settings->client, parse_id),
        "the client that numbers its operations; in place of --id, with --sequence"},
       {"sequence", 's', value_of("N", kSequenceAllowed, settings->sequence, parse_unsigned),
        "the number of this operation of the client"}}};
  append(syntax.options, options_of(settings->shape));
  append(syntax.options, options_of(settings->durability, "every-write"));
  syntax.operands = {value_of("DELTA", kDeltaAllowed, settings->delta, parse_delta),
                     0,
                     1,
                     {directory_value("DIRECTORY", settings->directory),
                      value_of("COUNTER", kCounterAllowed, settings->counter, parse_counter)},
                     true};
  syntax.examples = {
      {"semel tally add DIR visits", "one more, each time it is run"},
      {"semel tally add DIR stock/pear -3 --id order-1001", "once, also if it is run again"},
      {"semel tally add DIR likes --client ann --sequence 17", "the 17th operation of ann"}};
  return {"tally add", std::move(syntax), [settings] { return add(*settings); }};
}

}  // namespace semel::cli
