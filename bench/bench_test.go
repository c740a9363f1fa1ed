package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

// fake is the environment variable that makes this test's program stand for
// bench/peers; its value says how that behaves.
const fake = "BENCH_TEST_FAKE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(fake); mode != "" {
		fakeProgram(mode, os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func fakeProgram(mode string, args []string) {
	switch args[0] {
	case "time":
		fmt.Println(`{"peer":"slow","detail":"by hand","ms":9,"min_ms":8}`)
		fmt.Println(`{"peer":"none","error":"no such thing"}`)
	case "check":
		var n [7]int
		for i := range n {
			n[i], _ = strconv.Atoi(args[i+2])
		}
		stdin, _ := io.ReadAll(os.Stdin)
		sums := plain(args[1], n[0], n[1], n[2], n[3], n[4], n[5], n[6], stdin)
		switch mode {
		case "wrong":
			sums[len(sums)-1] += 2
		case "short":
			sums = sums[1:]
		case "fails":
			fmt.Fprintln(os.Stderr, "out of paper")
			os.Exit(3)
		case "unable":
			fmt.Println(`{"peer":"none","error":"no such thing"}`)
			return
		}
		_ = json.NewEncoder(os.Stdout).Encode(checked{Peer: "plain", Sums: sums})
	}
}

// plain computes an operator with padding 0 on bytes ±1.
func plain(kind string, h, w, c, out, size, stride, pad int, data []byte) []int32 {
	x, weights := data[:h*w*c], data[h*w*c:]
	var sums []int32
	for oy := 0; oy*stride+size <= h+2*pad; oy++ {
		for ox := 0; ox*stride+size <= w+2*pad; ox++ {
			for o := range out {
				sum, greatest := int32(0), int32(-1)
				for ky := range size {
					for kx := range size {
						y, x0 := oy*stride+ky-pad, ox*stride+kx-pad
						if y < 0 || y >= h || x0 < 0 || x0 >= w {
							continue
						}
						if kind == "pool" {
							greatest = max(greatest, int32(int8(x[(y*w+x0)*c+o])))
							continue
						}
						for i := range c {
							sum += int32(int8(x[(y*w+x0)*c+i])) * int32(int8(weights[((o*size+ky)*size+kx)*c+i]))
						}
					}
				}
				if kind == "pool" {
					sum = greatest
				}
				sums = append(sums, sum)
			}
		}
	}
	return sums
}

func TestCheck(t *testing.T) {
	dev, err := backend.Open("cpu")
	require.NoError(t, err)
	for mode, want := range map[string]string{
		"right": "", "wrong": "plain gives ", "short": "values, want ", "fails": "out of paper", "unable": "no peer computes it",
	} {
		t.Setenv(fake, mode)
		for _, op := range smallCases() {
			err := check(t.Context(), dev, os.Args[0], op)
			if want == "" {
				require.NoError(t, err, op)
			} else {
				require.ErrorContains(t, err, want, op)
			}
		}
	}
	require.ErrorContains(t, check(t.Context(), dev, "./absent", smallCases()[0]), "absent")
}

func TestTimeBoth(t *testing.T) {
	t.Setenv(fake, "right")
	dev, err := backend.Open("cpu")
	require.NoError(t, err)
	ops := zoo.Operators()
	op, ok := newOperator(ops[slices.IndexFunc(ops, func(o zoo.Operator) bool { return o.Name == "pool5" })])
	require.True(t, ok)
	rows, err := timeBoth(t.Context(), dev, flags{peers: os.Args[0], isa: "generic", rounds: 2, seconds: 1}, op)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	ours := rows[0].Ours
	require.Positive(t, ours)
	require.Equal(t, row{
		Op: "pool5", ISA: "generic", Peer: "slow", Detail: "by hand", Rounds: 2, Ours: ours, Theirs: 8, Ratio: 8 / ours,
	}, rows[0])
	_, err = timeBoth(t.Context(), dev, flags{peers: os.Args[0], isa: "abacus", rounds: 1, seconds: 1}, op)
	require.ErrorContains(t, err, "abacus")
}

func TestTable(t *testing.T) {
	require.Equal(t, "operator  bcnn    a            b\n"+
		"x         0.5000  5.000 (9.5)  1.000 (2.0)\n"+
		"y         0.2500  -            0.500 (2.1)\n", table([]row{
		{Op: "x", Peer: "a", Ours: 0.5, Theirs: 5, Ratio: 9.5},
		{Op: "x", Peer: "b", Ours: 0.5, Theirs: 1, Ratio: 2},
		{Op: "y", Peer: "b", Ours: 0.25, Theirs: 0.5, Ratio: 2.1},
	}))
}

func TestNewOperator(t *testing.T) {
	names := map[string]bool{}
	for _, o := range zoo.Operators() {
		if op, ok := newOperator(o); ok {
			names[o.Name] = true
			require.Len(t, op.args(), 8)
		}
	}
	require.True(t, names["fc6"])
	require.True(t, names["pool5"])
	require.True(t, names["dabnn_3x3_256_s2"])
	require.False(t, names["dilation2"])
	require.False(t, names["groups4"])
	op, _ := newOperator(zoo.Operators()[0])
	require.Equal(t, operator{
		name: "conv2.1", kind: "conv", in: bcnn.Shape{H: 112, W: 112, C: 64}, out: 128, size: 3, stride: 1, pad: 1, source: zoo.Operators()[0],
	}, op)
}

func TestBadFlags(t *testing.T) {
	require.ErrorContains(t, compare(t.Context(), flags{rounds: 0, seconds: 1}, false), "-rounds 0")
	require.ErrorContains(t, compare(t.Context(), flags{rounds: 1, seconds: 1, group: "x"}, false), `-group "x"`)
}
