// Prints docs/architecture.svg: the rooms of the library, and the programs on top of them.
//
// The picture follows from the table of the layering test. Rooms are rows: a room stands above all
// that it may include. A line leads from a room to one below it, unless another room on the way
// leads there too. Long lines pass between the rooms of a row, as rooms of their own that are not
// drawn.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/layering/layering.h"

namespace semel::layering {
namespace {

// The purpose of each room, in a few words.
const std::map<std::string, std::string> kWords = {
    {"core", "results, codec, clock"},
    {"hash", "digests, envelope"},
    {"bits", "arrays of bits"},
    {"filter", "Bloom, cuckoo"},
    {"window", "ids for a time"},
    {"crdt", "filters that merge"},
    {"sift", "claim, commit"},
    {"slices", "filters in parts, trees"},
    {"store", "ordered stores"},
    {"index", "trie, floret"},
    {"sync", "equal records again"},
    {"site", "all kinds, one index"},
    {"tally", "counted once"},
    {"tally/counters", "counters in memory"},
    {"tally/store", "tables in a store"},
    {"papers", "as published"},
    {"client", "RESP, slices afar"},
    {"module", "commands of semel.so"},
    {"module/host", "the server's API"},
    {"module/types", "values behind keys"},
    {"cli", "the command semel"},
};

constexpr double kMargin = 32, kInside = 28, kBox = 168, kHigh = 54, kRow = 96, kThin = 26;
constexpr double kTop = 70;

struct Room {
  std::string name;  // empty: a long line passes here
  std::size_t row = 0;
  double x = 0;  // of its middle
  std::vector<std::size_t> below, above;
  double width() const { return name.empty() ? kThin : kBox; }
};

using Uses = std::map<std::string, std::set<std::string>>;

std::string short_name(std::string_view folder) {
  return std::string(folder.starts_with("semel/") ? folder.substr(6) : folder);
}

// Returns the rooms that each room of the library may include, except those that another of them
// leads to.
Uses direct_uses() {
  Uses uses;
  for (const Layer& layer : layers()) {
    if (!layer.folder.starts_with("semel/") || layer.folder == "semel/papers") continue;
    for (const std::string_view below : layer.may_include) {
      uses[short_name(layer.folder)].insert(short_name(below));
    }
    uses.try_emplace(short_name(layer.folder));
  }
  Uses direct = uses;
  for (auto& [room, below] : direct) {
    for (const std::string& through : uses[room]) {
      for (const std::string& further : uses[through]) below.erase(further);
    }
  }
  return direct;
}

std::size_t row_of(const Uses& uses, const std::string& room) {
  std::size_t row = 0;
  for (const std::string& below : uses.at(room)) row = std::max(row, row_of(uses, below) + 1);
  return row;
}

std::vector<Room> rooms_of(const Uses& uses) {
  std::vector<Room> rooms;
  std::map<std::string, std::size_t> place;
  for (const Layer& layer : layers()) {
    const std::string name = short_name(layer.folder);
    if (!uses.contains(name)) continue;
    place[name] = rooms.size();
    rooms.push_back({name, row_of(uses, name), 0, {}, {}});
  }
  const auto join = [&](std::size_t above, std::size_t below) {
    rooms[above].below.push_back(below);
    rooms[below].above.push_back(above);
  };
  for (const auto& [name, below] : uses) {
    for (const std::string& other : below) {
      std::size_t at = place[name];
      const std::size_t to = place[other];
      for (std::size_t row = rooms[at].row - 1; row > rooms[to].row; --row) {
        rooms.push_back({"", row, 0, {}, {}});
        join(at, rooms.size() - 1);
        at = rooms.size() - 1;
      }
      join(at, to);
    }
  }
  return rooms;
}

// Places every room near the middle of its neighbours, and rooms of a row apart.
void place(std::vector<Room>& rooms, std::size_t rows) {
  std::vector<std::vector<std::size_t>> row(rows);
  for (std::size_t i = 0; i < rooms.size(); ++i) row[rooms[i].row].push_back(i);
  for (auto& line : row) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      rooms[line[i]].x = kBox * static_cast<double>(i);
    }
  }
  for (int sweep = 0; sweep < 200; ++sweep) {
    for (std::size_t r = 0; r < rows; ++r) {
      auto& line = row[sweep % 2 == 0 ? r : rows - 1 - r];
      for (const std::size_t i : line) {
        double sum = 0, count = 0;
        for (const auto* side : {&rooms[i].below, &rooms[i].above}) {
          for (const std::size_t j : *side) {
            sum += rooms[j].x;
            ++count;
          }
        }
        if (count > 0) rooms[i].x = sweep < 40 ? sum / count : 0.3 * rooms[i].x + 0.7 * sum / count;
      }
      // Rooms are ordered by preference only at first, so that they settle.
      if (sweep < 40) {
        std::stable_sort(line.begin(), line.end(),
                         [&](std::size_t a, std::size_t b) { return rooms[a].x < rooms[b].x; });
      }
      const auto apart = [&](std::size_t a, std::size_t b) {
        return (rooms[a].width() + rooms[b].width()) / 2 + 24;
      };
      for (int push = 0; push < 30; ++push) {
        for (std::size_t i = 1; i < line.size(); ++i) {
          Room &a = rooms[line[i - 1]], &b = rooms[line[i]];
          const double missing = apart(line[i - 1], line[i]) - (b.x - a.x);
          if (missing > 0) a.x -= missing / 2, b.x += missing / 2;
        }
      }
    }
  }
}

void box(double x, double y, const std::string& name, const char* kind) {
  const auto words = kWords.find(name);
  std::printf(
      "<g class=\"%s\"><rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"8\"/>", kind,
      x - kBox / 2, y, kBox, kHigh);
  std::printf("<text class=\"name\" x=\"%.0f\" y=\"%.0f\">%s</text>", x, y + 23, name.c_str());
  std::printf("<text class=\"words\" x=\"%.0f\" y=\"%.0f\">%s</text></g>\n", x, y + 41,
              words == kWords.end() ? "?" : words->second.c_str());
}

void curve(double x, double y, double to_x, double to_y, const char* kind = "line") {
  std::printf("<path class=\"%s\" d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\"/>\n", kind, x, y,
              x, (y + to_y) / 2, to_x, (y + to_y) / 2, to_x, to_y);
}

void draw() {
  const Uses uses = direct_uses();
  std::vector<Room> rooms = rooms_of(uses);
  std::size_t rows = 0;
  for (const Room& room : rooms) rows = std::max(rows, room.row + 1);
  place(rooms, rows);
  double left = rooms[0].x, right = rooms[0].x;
  for (const Room& room : rooms) {
    left = std::min(left, room.x - room.width() / 2);
    right = std::max(right, room.x + room.width() / 2);
  }
  for (Room& room : rooms) room.x += kMargin + kInside - left;
  const double width = right - left + 2 * (kMargin + kInside);

  // From the top: the programs, the frame of the library with its rows, and the ground.
  const double top = kTop, types = kTop + kRow, host = kTop + 2 * kRow;
  const double frame = host + kHigh + 44, first = frame + 44;
  const auto y_of = [&](std::size_t row) {
    return first + static_cast<double>(rows - 1 - row) * kRow;
  };
  const double end = y_of(0) + kHigh + 28, height = end + 44;

  std::printf(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"Helvetica, Arial, sans-serif\">\n",
      width, height);
  std::printf(
      "<style>rect{fill:#fff;stroke:#34506b;stroke-width:1.4}.ground{fill:#fff;stroke:none}"
      ".frame{fill:#f3f6f9;stroke:#9db0c2}.program rect{fill:#e8f1e4;stroke:#4f7a45}"
      ".papers rect{fill:#fbf7ea;stroke:#a08b4a;stroke-dasharray:5 4}"
      "text{text-anchor:middle;fill:#1d2b38}.name{font-size:16px;font-weight:bold}"
      ".words{font-size:12px;fill:#55677a}.title{font-size:20px;font-weight:bold}"
      ".note{font-size:12px;fill:#55677a;text-anchor:start}"
      ".line,.into{fill:none;stroke:#7f95aa;stroke-width:1.5}.into{stroke:#4f7a45}</style>\n");
  std::printf("<rect class=\"ground\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
  std::printf("<text class=\"title\" x=\"%.0f\" y=\"38\">The rooms of Semel</text>\n", width / 2);
  std::printf(
      "<rect class=\"frame\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"12\"/>\n",
      kMargin, frame, width - 2 * kMargin, end - frame);
  std::printf("<text class=\"note\" x=\"%.0f\" y=\"%.0f\">semel/: libsemel</text>\n", kMargin + 16,
              frame + 22);

  const double client = width / 6, module = width / 2, papers = width * 5 / 6;
  curve(client, types + kHigh, client, host);
  curve(client, host + kHigh, client, frame, "into");
  curve(module, top + kHigh, module, types);
  curve(module, types + kHigh, module, host);
  curve(module, host + kHigh, module, frame, "into");
  curve(papers, host + kHigh, papers, frame, "into");
  box(client, types, "cli", "program");
  box(client, host, "client", "program");
  box(module, top, "module", "program");
  box(module, types, "module/types", "program");
  box(module, host, "module/host", "program");
  box(papers, host, "papers", "papers");

  for (const Room& room : rooms) {
    const double y = y_of(room.row);
    if (room.name.empty()) {  // through the row
      std::printf("<path class=\"line\" d=\"M%.0f %.0fV%.0f\"/>\n", room.x, y, y + kHigh);
    }
    for (const std::size_t below : room.below) {
      curve(room.x, y + kHigh, rooms[below].x, y_of(rooms[below].row));
    }
  }
  for (const Room& room : rooms) {
    if (!room.name.empty()) box(room.x, y_of(room.row), room.name, "room");
  }
  std::printf(
      "<text class=\"note\" x=\"%.0f\" y=\"%.0f\">A room may include what it leads down to, "
      "and no other. Drawn from tests/layering/layering.cc.</text>\n</svg>\n",
      kMargin, height - 16);
}

}  // namespace
}  // namespace semel::layering

int main() { semel::layering::draw(); }
