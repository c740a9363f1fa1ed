#!/bin/bash
# Counts the instructions that the NEON convolutions execute, under
# qemu-aarch64: one call for every case of BenchmarkWide.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 GOARCH=arm64 go test -c -o "$work/test" ./sets
bench() { # flags of qemu, pattern
	qemu-aarch64 $1 "$work/test" -test.run '^$' -test.cpu 1 -test.benchtime 1x -test.bench "$2"
}
# Assembly functions lie side by side.
range=$(aarch64-linux-gnu-nm -n "$work/test" | awk '
	/kern\/neon\.conv.*\.abi0$/ { if (!from) from = $1; last = 1; next }
	last { to = $1; last = 0 }
	END { print "0x" from ".." "0x" to }')
bench "" Wide/neon | awk '$1 ~ /^BenchmarkWide/ { print substr($1, 15) }' | while read -r name; do
	bench "-singlestep -d exec,nochain -dfilter $range -D $work/log" "Wide/^$(sed 's|/|$/^|g' <<<"$name")\$" |
		awk -v name="$name" -v trace="$work/log" '$NF == "MAC/op" {
			while ((getline line <trace) > 0) n += line ~ /^Trace/
			printf "%-26s %7d instructions, %4.1f MACs each\n", name, n, $(NF - 1) / n }'
done
