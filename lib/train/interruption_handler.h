#pragma once

namespace reel::detail {

/// True while a train::Interruption lives.
bool interruption_lives();

}  // namespace reel::detail
