#pragma once

/// Prints what there is to compute on: a table of the CPU and the GPUs, and why there is none of these.
void print_devices();
