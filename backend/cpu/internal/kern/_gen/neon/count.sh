#!/bin/bash
# Counts the instructions that the NEON convolutions execute, under
# qemu-aarch64: one call for every case of BenchmarkWide and BenchmarkFMA.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 GOARCH=arm64 go test -c -o "$work/test" ./sets
bench() { # flags of qemu, pattern
	qemu-aarch64 $1 "$work/test" -test.run '^$' -test.cpu 1 -test.benchtime 1x -test.bench "$2"
}
count() { # benchmark, start of the functions' names
	# Assembly functions lie side by side.
	range=$(aarch64-linux-gnu-nm -n "$work/test" | awk -v name="kern/neon\\\\.$2.*\\\\.abi0\$" '
		$0 ~ name { if (!from) from = $1; last = 1; next }
		last { to = $1; last = 0 }
		END { print "0x" from ".." "0x" to }')
	bench "" "$1/neon" | awk -v n=$((10 + ${#1})) '$1 ~ /^Benchmark/ { print substr($1, n + 1) }' | while read -r name; do
		rm -f "$work/log"
		bench "-singlestep -d exec,nochain -dfilter $range -D $work/log" "$1/^$(sed 's|/|$/^|g' <<<"$name")\$" |
			awk -v name="$name" -v trace="$work/log" '$NF == "MAC/op" {
				while ((getline line <trace) > 0) n += line ~ /^Trace/
				printf "%-26s %7d instructions, %4.1f MACs each\n", name, n, $(NF - 1) / n }'
	done
}
count Wide conv
count FMA fma
