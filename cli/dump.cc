// semel dump: writes the records of a RocksDB directory as lines of key and value.
#include <unistd.h>

#include <memory>

#include "cli/commands.h"
#include "cli/directory.h"
#include "cli/escaped.h"
#include "cli/files.h"
#include "cli/line_writer.h"
#include "cli/store_options.h"

namespace semel::cli {
namespace {

constexpr const char* kName = "semel dump";

struct Settings {
  std::string directory;
  RangeOptions range;
  std::string column_family = kDefaultColumnFamily;
  DirectoryPlaces places;
  bool secondary = false;
};

Exit fail(const std::string& text) {
  complain(kName, text);
  return Exit::failure;
}

Exit dump(const Settings& settings) {
  const std::optional<KeyRange> range = settings.range.range();
  if (!range) {
    complain(kName, kEmptyRange);
    return Exit::usage;
  }
  const auto opened =
      Directory::open(settings.directory, settings.secondary ? Access::read_along : Access::read,
                      settings.column_family, settings.places);
  if (!opened) return fail(opened.error().message());
  const std::unique_ptr<Directory>& directory = *opened;
  const auto cannot_read = [&](const Error& error) {
    return fail("cannot read " + quoted(settings.directory) + ": " + error.message());
  };
  const auto cursor = directory->store().cursor();
  if (!cursor) return cannot_read(cursor.error());
  LineWriter out(File::borrow(STDOUT_FILENO), "standard output");
  Cursor& at = **cursor;
  for (at.seek(range->first); at.valid() && range->contains(at.key()) && !out.error(); at.next()) {
    out.append(escaped(at.key()) + '\t' + escaped(at.value()) + '\n');
  }
  out.flush();
  if (out.error()) return fail(cannot("write", out.name(), out.error()));
  const Result<void> status = at.status();
  return status ? Exit::success : cannot_read(status.error());
}

}  // namespace

Command dump_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{"semel dump",
                "Writes the records of a RocksDB directory, a line each, in order of their keys",
                "A line is KEY, a tab and VALUE, as 'semel load' reads them: bytes that are not "
                "printable ASCII are \\xNN, and a backslash is \\\\.",
                {}};
  append(syntax.options, options_of(settings->range));
  append(syntax.options,
         {column_family_option(settings->column_family),
          {"secondary", 's', flag_value(settings->secondary),
           "read a directory that another process is using, in its present state"}});
  append(syntax.options, options_of(settings->places));
  syntax.operands = {directory_value("DIRECTORY", settings->directory), 1, 1};
  syntax.examples = {{"semel dump --prefix user/ DIR", "the records of users"}};
  return {"dump", std::move(syntax), [settings] { return dump(*settings); }};
}

}  // namespace semel::cli
