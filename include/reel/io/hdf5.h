#pragma once

#include <string>

#include <reel/io/safetensors.h>

/// \file
/// Arrays in HDF5 files, such as Keras has written, to read.

namespace reel::io {

/// Loads all arrays of numbers in an HDF5 file, to the CPU, named by their paths: "layers/dense/vars/0". Their dtypes are
/// f16 f32 f64 i8 i16 i32 i64 u8 and bool; unsigned integers of 16 bits become i32, those of 32 bits i64. Datasets of text,
/// records and references, and all attributes, are passed over. `load_into` with `from_keras` gives the weights of a file
/// of Keras to a module.
///
/// Files are read by the HDF5 library of the system, which libreel_hdf5.so is linked with; do not use it on another
/// thread meanwhile, and read only files that you trust: it is known to crash on files that are made for it.
/// Throws: FileError if the file cannot be read, is no HDF5 file, or has a dataset in other files, of more than 8 axes,
/// compressed otherwise than once by gzip, of another type of numbers, or with more elements than its bytes can hold, or
/// groups 64 deep in each other or more than its bytes can hold; FileError without libreel_hdf5.so; MemoryError if there
/// is not enough memory.
/// Source: The HDF Group, "HDF5 File Format Specification" 3.0.
Contents load_hdf5(const std::string& path, Location where = Location::here());

}  // namespace reel::io
