// TableProbe: what is inside a table, for tests.
#pragma once

#include "semel/tally/internal/operation_log.h"
#include "semel/tally/internal/recogniser.h"
#include "semel/tally/table.h"

namespace semel::tally {

class TableProbe {
 public:
  static const internal::Recogniser& recogniser(const Table& table) { return table.recogniser(); }
  static const internal::OperationLog& log(const Table& table) { return table.log(); }
};

}  // namespace semel::tally
