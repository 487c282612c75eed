// The library whose precompiled header all test programs use; they have what it declares.
