#include "tests/module/workload.h"

namespace semel {

Words Workload::next() {
  switch (random_.below(9)) {
    case 0:
    case 1:
      return tally();
    case 2:
    case 3:
      return sift();
    case 4:
    case 5:
      return bloom();
    case 6:
    case 7:
      return cuckoo();
    default:
      return random_.below(4) == 0 ? any_key() : tally();
  }
}

Words Workload::tally() {
  const std::string table = key("tally");
  const std::string counter = some(50, "c");
  const std::string delta = std::to_string(static_cast<std::int64_t>(random_.below(200)) - 100);
  switch (random_.below(12)) {
    case 0:
      return {"TALLY.RESERVE", table, "EXACT", "WINDOW", "100", "CAPACITY", "100"};
    case 1:
      return {"TALLY.RESERVE", table, "MAXBYTES", "20000", "ONFULL", "forget", "CAPACITY", "500"};
    case 2:
      return random_.below(2) == 0
                 ? Words{"TALLY.RESERVE", table, "WINDOW", "50", "CAPACITY", "100"}
                 : Words{"TALLY.RESERVE", table, "WINDOW", "50", "CAPACITY", "100", "FILTER"};
    case 3:
      return {"TALLY.INCRBY", table, counter, delta};
    case 4:
      return {"TALLY.INCRBY", table, counter, delta, "ID", item()};
    case 5:
    case 6:
      return {"TALLY.INCRBY", table, counter, delta, "OP", some(5, "client"), some(5000)};
    case 7:
      return {"TALLY.MINCRBY", table,  "IDS",         counter, delta, item(), "x",
              delta,           item(), some(50, "c"), "1",     item()};
    case 8:
      return {"TALLY.MINCRBY", table, "OP", some(5, "client"), some(5000), counter,
              delta,           "y",   "1"};
    case 9:
      return {"TALLY.DEL", table, counter, some(50, "c")};
    case 10:
      return {"TALLY.INCRBY", table, "huge", "9223372036854775807"};
    default:
      return {"TALLY.SUM", table};
  }
}

Words Workload::sift() {
  const std::string sift = key("sift");
  const std::string owner = some(3, "owner");
  const std::string now = std::to_string(1'700'000'000'000 + random_.below(1'000'000));
  switch (random_.below(17)) {
    case 0:
      return {"SIFT.RESERVE", sift, "EXACT", "WINDOW", "100", "CAPACITY", "100"};
    case 1:
      return {"SIFT.RESERVE", sift, "TIMERS", "WINDOW", "1s", "CAPACITY", "500"};
    case 2:
      return {"SIFT.RESERVE", sift, "WINDOW", "50", "CAPACITY", "100"};
    case 3:
      return {"SIFT.RESERVE", sift, "MAXBYTES", "200000", "ONFULL", "forget"};
    case 4:
    case 5:
      return {"SIFT.ADD", sift, item()};
    case 6:
      return {"SIFT.ADD", sift, item(), "AT", now};
    case 7:
      return {"SIFT.MADD", sift, item(), item(), item(), item()};
    case 8:
      return {"SIFT.INSERT", sift, "RENEW", "ITEMS", item(), item()};
    case 9:
      return {"SIFT.CLAIM", sift, item(), owner, some(2) == "0" ? "5" : "1h"};
    case 10:
      return {"SIFT.COMMIT", sift, item(), owner};
    case 11:
      return {"SIFT.RELEASE", sift, item(), owner};
    case 12:
      return {"SIFT.CLAIM", sift, some(20), owner, "10"};
    case 13:
      return {"SIFT.MCLAIM", sift, owner, some(2) == "0" ? "5" : "1h", some(20), item(), some(20)};
    case 14:
      return {"SIFT.MCOMMIT", sift, owner, some(20), item(), some(20)};
    case 15:
      return {"SIFT.MRELEASE", sift, owner, some(20), some(20)};
    default:
      return {"SIFT.COMMIT", sift, some(20), owner};
  }
}

Words Workload::bloom() {
  const std::string filter = key("bloom");
  switch (random_.below(10)) {
    case 0:
      return {"BF.RESERVE", filter, "0.01", "50"};
    case 9:
      return {"BF.LIKE", filter, key("bloom")};
    case 1:
      return {"BF.RESERVE", filter, "0.01", "100", "NONSCALING"};
    case 2:
    case 3:
      return {"BF.ADD", filter, item()};
    case 4:
      return {"BF.MADD", filter, item(), item(), item(), item()};
    case 5:
      return {"BF.INSERT", filter, "CAPACITY", "50", "ERROR", "0.01", "ITEMS", item(), item()};
    case 6:
      return {"BF.MERGE", filter, key("bloom"), key("bloom")};
    case 7:
      return {"BF.ADD", filter};
    default:
      return {"BF.MEXISTS", filter, item(), item()};
  }
}

Words Workload::cuckoo() {
  const std::string filter = key("cuckoo");
  switch (random_.below(11)) {
    case 0:
      return {"CF.RESERVE", filter, "64"};
    case 10:
      return {"CF.LIKE", filter, key("cuckoo")};
    case 1:
      return {"CF.RESERVE", filter, "64", "EXPANSION", "0"};
    case 2:
    case 3:
      return {"CF.ADD", filter, item()};
    case 4:
      return {"CF.ADDNX", filter, item()};
    case 5:
      return {"CF.INSERT", filter, "CAPACITY", "64", "ITEMS", item(), item()};
    case 6:
      return {"CF.INSERTNX", filter, "CAPACITY", "64", "ITEMS", item(), item()};
    case 7:
    case 8:
      return {"CF.DEL", filter, item()};
    default:
      return {"CF.MERGE", filter, key("cuckoo")};
  }
}

Words Workload::any_key() {
  constexpr const char* kFamilies[] = {"tally", "sift", "bloom", "cuckoo"};
  const char* const family = kFamilies[random_.below(4)];
  switch (random_.below(6)) {
    case 0:
      return {"DEL", key(family)};
    case 1:
      return {"UNLINK", key(family)};
    case 2:
      return {"PEXPIRE", key(family), some(30)};
    case 3:
      return {"COPY", key(family), key(family), "REPLACE"};
    case 4:
      return {"RENAME", key(family), key(family)};
    default:
      return {"PERSIST", key(family)};
  }
}

}  // namespace semel
