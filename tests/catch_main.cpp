#ifdef REEL_CATCH2_V2
#define CATCH_CONFIG_MAIN
#endif
#include "catch.h"
