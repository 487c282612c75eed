#pragma once

/// Prints a table of the CPU and the GPUs, or why there is no GPU.
void print_devices();
