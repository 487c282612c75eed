// A driver of CUDA 4.0 with one GPU: older than any toolkit that builds reel.

#include <string.h>

int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int* version) {
  *version = 4000;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int device) {
  if (device != 0) return 1;
  strncpy(name, "an old GPU", (size_t)bytes);
  return 0;
}
