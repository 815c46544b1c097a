// Answers of the server to what the module asks.
#pragma once

#include "module/host/api.h"

namespace semel::host {

// Returns true if the server answered with a list that is not empty. Frees the reply.
inline bool lists_some(api::CallReply* reply) {
  if (reply == nullptr) return false;
  const bool some =
      api::CallReplyType(reply) == api::kReplyArray && api::CallReplyLength(reply) > 0;
  api::FreeCallReply(reply);
  return some;
}

}  // namespace semel::host
