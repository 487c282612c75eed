#!/usr/bin/env python3
"""Writes a header with a number that changes with every header that the library and the CUDA module share.

Usage: fingerprint_headers.py ROOT OUTPUT [DEPFILE]
"""

import hashlib
import sys
from pathlib import Path

root, output = Path(sys.argv[1]), Path(sys.argv[2])
# The formulas are compiled into each by itself.
headers = sorted(path for folder in ("include/reel", "lib/core", "lib/kernels") for path in (root / folder).rglob("*.h")
                 if path.parent.name != "formulas")
if not headers:
    sys.exit(f"fingerprint_headers.py: there are no headers in {root}")
digest = hashlib.sha256()
for header in headers:
    digest.update(str(header.relative_to(root)).encode() + b"\0" + header.read_bytes() + b"\0")
text = f"""#pragma once

#include <cstdint>

namespace reel::detail {{

/// A hash of all headers that the library and a device module share.
inline constexpr std::uint64_t header_fingerprint = 0x{digest.hexdigest()[:16]};

}}  // namespace reel::detail
"""
if not output.exists() or output.read_text() != text:
    output.write_text(text)
if len(sys.argv) > 3:
    names = " ".join(str(header).replace(" ", "\\ ") for header in headers)
    Path(sys.argv[3]).write_text(f"{output}: {names}\n")
