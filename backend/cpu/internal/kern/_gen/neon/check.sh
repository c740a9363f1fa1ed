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
words() { # words NAME FILES...: the words of files, and the program that they stand for
	name=$1
	shift
	cat "$@" >"$work/all"
	sed -n 's|^\tWORD \$0x\([0-9a-f]*\) // .*|\1|p' "$work/all" >"$work/$name.have"
	sed -n 's|^\tWORD \$0x[0-9a-f]* // \(.*\)|\1|p' "$work/all" >"$work/$name.s"
	[ -s "$work/$name.have" ]
	[ "$(grep -c WORD "$work/all")" = "$(grep -c . "$work/$name.have")" ]
}
compare() { # compare NAME ASSEMBLER
	[ -e "$work/$1.bin" ] || aarch64-linux-gnu-objcopy -O binary -j .text "$work/$1.o" "$work/$1.bin"
	od -An -v -tx4 -w4 "$work/$1.bin" | tr -d ' ' >"$work/$1.want"
	diff "$work/$1.have" "$work/$1.want"
	echo "$1: $(grep -c . "$work/$1.have") words as $2 has them"
}
outer=./conv_outer_arm64.s
words neon $(ls ./*.s | grep -vxF "$outer")
aarch64-linux-gnu-as -march=armv8.2-a+dotprod+i8mm -o "$work/neon.o" "$work/neon.s"
compare neon aarch64-linux-gnu-as
# SME2 is in binutils since 2.41, in LLVM since 16.
words outer "$outer"
mc=$(ls /usr/lib/llvm-*/bin/llvm-mc 2>/dev/null | sort -V | tail -1)
if aarch64-linux-gnu-as -march=armv9-a+sme2 -o "$work/outer.o" "$work/outer.s" 2>/dev/null; then
	compare outer aarch64-linux-gnu-as
elif [ -n "$mc" ] && "$mc" -triple=aarch64 -mattr=+sme2 -filetype=obj -o "$work/outer.o" "$work/outer.s" 2>/dev/null; then
	compare outer "$mc"
else
	echo "the words in neon/${outer#./} are not checked: neither aarch64-linux-gnu-as nor llvm-mc knows SME2" >&2
fi
# 32-bit Arm: neonv7.
words neonv7 ../neonv7/*.s
if [ -n "$mc" ] && "$mc" -triple=armv7 -mattr=+neon -filetype=obj -o "$work/neonv7.o" "$work/neonv7.s"; then
	"${mc%mc}objcopy" -O binary -j .text "$work/neonv7.o" "$work/neonv7.bin"
	compare neonv7 "$mc"
else
	echo "the words in neonv7/*.s are not checked: llvm-mc is missing (Debian: llvm)" >&2
fi
