#!/bin/sh
# Regenerates the assembly and fails where the committed files differ.
set -e
cd "$(dirname "$0")/.."
go generate .
git diff --exit-code -- '*.s' '*/stubs.go'
_gen/neon/check.sh
