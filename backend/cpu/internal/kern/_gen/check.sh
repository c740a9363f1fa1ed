#!/bin/sh
# Regenerates the assembly and fails where the committed files differ.
set -e
cd "$(dirname "$0")/.."
go generate .
git diff --exit-code -- ./*_amd64.go ./*_amd64.s ./*_arm64.go ./*_arm64.s
_gen/neon/check.sh
