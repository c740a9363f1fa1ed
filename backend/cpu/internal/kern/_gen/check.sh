#!/bin/sh
# Regenerates the assembly and fails where the committed files differ.
set -e
cd "$(dirname "$0")/.."
go generate .
git diff --exit-code -- sets/*_amd64.go sets/*_amd64.s sets/*_arm64.go sets/*_arm64.s
_gen/neon/check.sh
