#!/bin/sh
# Assembles the comments behind WORD, which name the instruction that each word
# stands for, and fails where the words differ.
set -e
cd "$(dirname "$0")/../../neon"
if ! command -v aarch64-linux-gnu-as >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	{ apt-get update && apt-get install -y --no-install-recommends binutils-aarch64-linux-gnu; } >/dev/null || true
fi
if ! command -v aarch64-linux-gnu-as >/dev/null; then
	echo "the words in neon/*.s are not checked: aarch64-linux-gnu-as is missing (Debian: binutils-aarch64-linux-gnu)" >&2
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat ./*.s >"$work/all"
sed -n 's|^\tWORD \$0x\([0-9a-f]*\) // .*|\1|p' "$work/all" >"$work/have"
sed -n 's|^\tWORD \$0x[0-9a-f]* // \(.*\)|\1|p' "$work/all" >"$work/words.s"
[ -s "$work/have" ]
[ "$(grep -c WORD "$work/all")" = "$(grep -c . "$work/have")" ]
aarch64-linux-gnu-as -march=armv8.2-a+dotprod -o "$work/words.o" "$work/words.s"
aarch64-linux-gnu-objcopy -O binary -j .text "$work/words.o" "$work/words.bin"
od -An -v -tx4 -w4 "$work/words.bin" | tr -d ' ' >"$work/want"
diff "$work/have" "$work/want"
echo "neon/*.s: $(grep -c . "$work/have") words as aarch64-linux-gnu-as has them"
