#pragma once

// The namespace of what is compiled once per instruction set, so that no processor runs into code that was compiled for
// another. The build names it; elsewhere it is that of plain code.
#ifndef REEL_TARGET
#define REEL_TARGET scalar
#endif
