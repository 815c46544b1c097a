// HeldString: a string of the server that this object owns.
#pragma once

#include <string_view>
#include <utility>

#include "module/host/api.h"

namespace semel::host {

class HeldString {
 public:
  HeldString(api::Ctx* ctx, std::string_view text)
      : string_(api::CreateString(ctx, text.data(), text.size())), ctx_(ctx) {}
  HeldString(HeldString&& other) noexcept
      : string_(std::exchange(other.string_, nullptr)), ctx_(other.ctx_) {}
  HeldString& operator=(HeldString&&) = delete;
  ~HeldString() {
    if (string_ != nullptr) api::FreeString(ctx_, string_);
  }

  api::String* get() const { return string_; }
  // Gives up the string, which the caller now owns.
  api::String* release() { return std::exchange(string_, nullptr); }

 private:
  api::String* string_;
  api::Ctx* ctx_;
};

}  // namespace semel::host
