// Precompiled for the module: most of its files take longer to read these headers than to compile. Files include what
// they use all the same.
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/python.h>
