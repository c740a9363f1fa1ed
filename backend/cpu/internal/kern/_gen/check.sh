#!/bin/sh
# Regenerates the assembly and fails where the committed files differ, or where
# there is one more or one less.
set -e
cd "$(dirname "$0")/.."
rm -f ./*/*_amd64.s ./*/*_arm64.s ./*/*_arm.s ./*/stubs.go
go generate .
git diff --exit-code -- '*.s' '*/stubs.go'
new=$(git ls-files --others --exclude-standard -- '*.s' '*/stubs.go')
if [ -n "$new" ]; then
	printf 'generated but not committed:\n%s\n' "$new" >&2
	exit 1
fi
_gen/neon/check.sh
