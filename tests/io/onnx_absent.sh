#!/bin/bash
echo "REEL-SKIP: reel was built without onnx"
exit 77
