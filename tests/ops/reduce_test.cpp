#include <reel/reel.h>
