package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

func TestBenchOps(t *testing.T) {
	keys := []string{"op", "group", "device", "isa", "threads", "batch", "runs", "ms", "min_ms", "macs", "bytes",
		"mac_per_s", "byte_per_s", "peak_mac_per_s", "peak_byte_per_s", "peak_fraction", "bound"}
	got := objects(t, succeed(t, "bench", "--ops=pool5,c16", "--device", "cpu", "--isa", "generic", "--runs", "7", "--json", "--batch", "2"), keys...)
	require.Len(t, got, 2)
	for i, want := range []struct {
		op, group   string
		macs, bytes float64
	}{
		{"pool5", "bitflow", 0, 2 * 8 * 8 * (14*14 + 7*7)},
		{"c16", "sweep", 2 * 28 * 28 * 16 * 16 * 9, 2*2*2*28*28 + 2*9*16},
	} {
		r := got[i]
		require.Equal(t, want.op, r["op"])
		require.Equal(t, want.group, r["group"])
		require.Equal(t, want.macs, r["macs"])
		require.Equal(t, want.bytes, r["bytes"])
		require.Equal(t, "generic", r["isa"])
		require.Equal(t, 1.0, r["threads"])
		require.Equal(t, 2.0, r["batch"])
		require.LessOrEqual(t, r["runs"], 7.0)
		require.LessOrEqual(t, r["min_ms"], r["ms"])
		require.Positive(t, r["min_ms"])
		require.InEpsilon(t, want.bytes/r["ms"].(float64)*1e3, r["byte_per_s"], 1e-9)
		require.Positive(t, r["peak_fraction"])
	}
	require.Equal(t, memory, got[0]["bound"])

	text := succeed(t, "bench", "--ops=dabnn_3x3_512", "--device", "cpu", "--runs", "1")
	require.Regexp(t, `\Acpu \(\w+\), 1 thread, batch of 1; median and minimum of up to 1 run\n\noperator  `, text)
	require.Regexp(t, `(?m)^dabnn_3x3_512  7×7×512 → 512, 3×3, padding 1  .* %  +(arithmetic|memory)$`, text)

	// A device without meters has no peak to compare with.
	useFake(t, fakeDevice{id: "fake:0"})
	objects(t, succeed(t, "bench", "--ops=pool5", "--device", "fake:0", "--runs", "1", "--json"), keys[:13]...)
}

func TestSelectOps(t *testing.T) {
	all, err := selectOps(allOps)
	require.NoError(t, err)
	require.Len(t, all, len(zoo.Operators()))
	some, err := selectOps("c64,bitflow")
	require.NoError(t, err)
	require.Len(t, some, 9)
	require.Equal(t, "c64", some[0].Name)
	require.Equal(t, "conv2.1", some[1].Name)
	_, err = selectOps("bitflow,")
	require.ErrorContains(t, err, `--ops ""`)
}

// A step takes at least the longer of its two times.
func TestBound(t *testing.T) {
	w := work{macs: 600, bytes: 100}
	for _, c := range []struct {
		peak, bandwidth, seconds float64
		by                       string
	}{
		{100, 100, 6, arithmetic},
		{1000, 100, 1, memory},
		{0, 100, 1, memory},
		{100, 0, 6, arithmetic},
		{0, 0, 0, ""},
	} {
		seconds, by := w.bound(c.peak, c.bandwidth)
		require.Equal(t, c.seconds, seconds, c)
		require.Equal(t, c.by, by, c)
	}
	seconds, by := work{bytes: 100}.bound(50, 50)
	require.Equal(t, 2.0, seconds)
	require.Equal(t, memory, by)
}

// Only steps on ±1 values compare with the rates.
func TestWorkOf(t *testing.T) {
	net, err := loadModel(t.Context(), "binarynet")
	require.NoError(t, err)
	plan, err := bcnn.Lower(t.Context(), net, bcnn.LowerOptions{})
	require.NoError(t, err)
	require.Zero(t, workOf(plan, 0, 1)) // reads bytes
	// 32×32×128 bits in, 16×16×128 bits out, 3×3 kernels.
	require.Equal(t, work{macs: 3 * 32 * 32 * 128 * 128 * 9, bytes: 16 * (3*(32*32+16*16) + 128*9)}, workOf(plan, 1, 3))
}
