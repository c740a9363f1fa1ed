package modelfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// bytesPerByte is what reading a file may allocate for each byte of it. Most is
// for a list of layers that say nothing, which grows.
const bytesPerByte = 256

// measure reads a file and counts the work.
func measure(t testing.TB, b []byte) (units, allocated int64, err error) {
	t.Helper()
	limits, err := bcnn.Limits{}.WithDefaults()
	require.NoError(t, err)
	d := newDecoder(t.Context(), int64(len(b)), limits)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = d.network(bytes.NewReader(b), int64(len(b)))
	runtime.ReadMemStats(&after)
	return d.Used(), int64(after.TotalAlloc - before.TotalAlloc), err
}

func requireLinear(t testing.TB, b []byte, units, allocated int64, err error) {
	t.Helper()
	require.NotErrorIs(t, err, budget.ErrExceeded)
	require.LessOrEqual(t, units, workPerByte*int64(len(b)), "units for %d bytes", len(b))
	const once = 1 << 16 // for what does not depend on the file
	require.LessOrEqual(t, allocated, bytesPerByte*int64(len(b))+once, "bytes for %d bytes", len(b))
	if err != nil {
		require.Less(t, len(err.Error()), 1500, "an error is a line: %v", err)
	}
}

// header is a file's header around the parts of a network's JSON.
func header(tensors, network string) string {
	return fmt.Sprintf(`{"__metadata__":{"format":"bcnn","version":"1","sha256":"%s","network":%s}%s}`, unsealed, strconv.Quote(network), tensors)
}

func network(layers, more string) string {
	return `{"name":"n","input":{"shape":[1,1,1],"dtype":"float32"},"layers":[` + layers + `]` + more + `}`
}

// list joins n texts with commas.
func list(n int, text func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = text(i)
	}
	return strings.Join(all, ",")
}

func same(text string) func(int) string { return func(int) string { return text } }

func relu(i int) string { return fmt.Sprintf(`{"name":"%d","kind":"relu","inputs":[%d]}`, i, i-1) }

// costly are kinds of files; n is about the number of bytes.
var costly = []struct {
	name  string
	error bool // no network comes of it
	file  func(n int) (header string, data []byte)
}{
	{"layers", false, func(n int) (string, []byte) { return header("", network(list(n/60, relu), "")), nil }},
	{"layers of nothing", true, func(n int) (string, []byte) { return header("", network(list(n/3, same("{}")), "")), nil }},
	{"layers of long names", true, func(n int) (string, []byte) {
		return header("", network(list(n/1000, func(i int) string {
			return fmt.Sprintf(`{"name":"%0950d","kind":"relu","inputs":[%d]}`, i, i-1)
		}), "")), nil
	}},
	{"layers of one name", true, func(n int) (string, []byte) {
		return header("", network(list(n/50, func(i int) string {
			return fmt.Sprintf(`{"name":"a","kind":"relu","inputs":[%d]}`, i-1)
		}), "")), nil
	}},
	{"tensors of one value", false, func(n int) (string, []byte) {
		n /= 180
		tensors := list(n, func(i int) string {
			return fmt.Sprintf(`"%d.scale":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}`, i, 4*i, 4*i+4)
		})
		layers := list(n, func(i int) string {
			return fmt.Sprintf(`{"name":"%d","kind":"affine","inputs":[%d],"tensors":{"scale":"%d.scale"}}`, i, i-1, i)
		})
		return header(","+tensors, network(layers, "")), make([]byte, 4*n)
	}},
	{"a large tensor", false, func(n int) (string, []byte) {
		tensor := fmt.Sprintf(`,"0.w":{"dtype":"F32","shape":[%d,1],"data_offsets":[0,%d]}`, n, 4*n)
		return header(tensor, network(fmt.Sprintf(`{"name":"0","kind":"dense","inputs":[-1],"params":{"out":%d},"tensors":{"weight":"0.w"}}`, n), "")), make([]byte, 4*n)
	}},
	{"tensors that nobody wants", true, func(n int) (string, []byte) {
		n /= 60
		return header(","+list(n, func(i int) string {
			return fmt.Sprintf(`"%d":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}`, i, 4*i, 4*i+4)
		}), network(relu(0), "")), make([]byte, 4*n)
	}},
	{"labels", true, func(n int) (string, []byte) {
		return header("", network(relu(0), `,"labels":[`+list(n/3, same(`""`))+`]`)), nil
	}},
	{"a long label", false, func(n int) (string, []byte) {
		return header("", network(relu(0), `,"labels":["`+strings.Repeat("é", n/2)+`"]`)), nil
	}},
	{"escapes", false, func(n int) (string, []byte) {
		return header("", network(relu(0), `,"labels":["`+strings.Repeat(`\u0041`, n/6)+`"]`)), nil
	}},
	{"inputs", true, func(n int) (string, []byte) {
		return header("", network(`{"name":"0","kind":"add","inputs":[`+list(n/3, same("-1"))+`]}`, "")), nil
	}},
	{"dimensions", true, func(n int) (string, []byte) {
		return header(`,"x":{"dtype":"F32","shape":[`+list(n/2, same("1"))+`],"data_offsets":[0,4]}`, network(relu(0), "")), make([]byte, 4)
	}},
	{"offsets", true, func(n int) (string, []byte) {
		return header(`,"x":{"dtype":"F32","shape":[1],"data_offsets":[`+list(n/2, same("1"))+`]}`, network(relu(0), "")), make([]byte, 4)
	}},
	{"foreign metadata", false, func(n int) (string, []byte) {
		h := header("", network(relu(0), ""))
		return strings.Replace(h, `"format"`, list(n/12, func(i int) string { return fmt.Sprintf(`"k%d":""`, i) })+`,"format"`, 1), nil
	}},
	{"unknown fields", true, func(n int) (string, []byte) {
		return header("", network(relu(0), ","+list(n/12, func(i int) string { return fmt.Sprintf(`"k%d":""`, i) }))), nil
	}},
	{"one field again and again", true, func(n int) (string, []byte) {
		return header("", network(relu(0), ","+list(n/12, same(`"name":"n"`)))), nil
	}},
	{"parameters nobody wants", true, func(n int) (string, []byte) {
		return header("", network(`{"name":"0","kind":"relu","inputs":[-1],"params":{"x":[`+list(n/2, same("0"))+`]}}`, "")), nil
	}},
	{"a long number", true, func(n int) (string, []byte) {
		return header("", network(`{"name":"0","kind":"dense","inputs":[-1],"params":{"out":`+strings.Repeat("9", n)+`}}`, "")), nil
	}},
	{"a long name of a tensor", true, func(n int) (string, []byte) {
		return header(`,"`+strings.Repeat("x", n)+`":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`, network(relu(0), "")), make([]byte, 4)
	}},
	{"nested arrays", true, func(n int) (string, []byte) {
		return header(`,"x":`+strings.Repeat("[", n)+strings.Repeat("]", n), network(relu(0), "")), nil
	}},
	{"nested arrays that package json takes", true, func(n int) (string, []byte) {
		n = min(n, 9_900)
		return header(`,"x":`+strings.Repeat("[", n)+strings.Repeat("]", n), network(relu(0), "")), nil
	}},
	{"nested objects", true, func(n int) (string, []byte) {
		n /= 20 // no more than package json nests
		return header("", network(`{"params":`+strings.Repeat(`{"":`, n)+"0"+strings.Repeat("}", n)+`}`, "")), nil
	}},
	{"white space", false, func(n int) (string, []byte) {
		return header("", network(relu(0), strings.Repeat(" ", n))), nil
	}},
	{"a large file without a header", true, func(n int) (string, []byte) { return "", make([]byte, n) }},
}

// A file ten times as long takes ten times the work.
func TestCostIsLinear(t *testing.T) {
	sizes := []int{10_000, 100_000, 1_000_000}
	if testing.Short() {
		sizes = sizes[:2]
	}
	for _, c := range costly {
		t.Run(c.name, func(t *testing.T) {
			var lastUnits, lastBytes, lastSize int64
			for _, n := range sizes {
				h, data := c.file(n)
				b := file(h, data)
				units, allocated, err := measure(t, b)
				require.Equal(t, c.error, err != nil, "%v", err)
				requireLinear(t, b, units, allocated, err)
				size := int64(len(b))
				t.Logf("%d bytes: %d units (%.2f), %d bytes (%.2f)", size, units, float64(units)/float64(size), allocated, float64(allocated)/float64(size))
				if lastSize > 0 {
					require.LessOrEqual(t, units, 12*lastUnits, "units of %d bytes after %d", size, lastSize)
					// Slices that grow take a power of their growth more.
					require.LessOrEqual(t, allocated, 20*max(lastBytes, 1<<12), "bytes of %d bytes after %d", size, lastSize)
				}
				lastUnits, lastBytes, lastSize = units, allocated, size
			}
		})
	}
}

// looks is a context that ends when it is looked at for the last time.
type looks struct {
	context.Context
	left int
}

func (l *looks) Err() error {
	if l.left--; l.left <= 0 {
		return context.Canceled
	}
	return nil
}

func TestReadEndsWithItsContext(t *testing.T) {
	var big []byte
	for _, c := range costly {
		if c.name == "a large tensor" {
			h, data := c.file(1_000_000)
			big = file(h, data)
		}
	}
	all := &looks{t.Context(), 1 << 20}
	_, err := Read(all, big, Options{})
	require.NoError(t, err)
	count := 1<<20 - all.left
	require.Greater(t, count, 3, "a tensor of 4 MB is read in parts")
	for left := 1; left <= count; left++ {
		n, err := Read(&looks{t.Context(), left}, big, Options{})
		require.ErrorIs(t, err, context.Canceled, "look %d of %d", left, count)
		require.Nil(t, n)
	}
}

func TestReadKeepsLimits(t *testing.T) {
	b := encode(t, small()) // 2 layers, tensors of 4, 16 and 8 bytes
	for _, c := range []struct {
		limits bcnn.Limits
		want   string
	}{
		{bcnn.Limits{Layers: 2, TensorBytes: 16, FileBytes: int64(len(b))}, ""},
		{bcnn.Limits{Layers: 1}, "network: more than 1 layers; Limits.Layers allows more"},
		{bcnn.Limits{TensorBytes: 15}, `tensor "dense.weight" takes 16 bytes, at most 15 are allowed; Limits.TensorBytes allows more`},
		{bcnn.Limits{FileBytes: int64(len(b)) - 1}, fmt.Sprintf("the file has %d bytes, at most %d are allowed; Limits.FileBytes allows more", len(b), len(b)-1)},
		{bcnn.Limits{FileBytes: -1}, "negative"},
	} {
		_, err := Read(t.Context(), b, Options{Limits: c.limits})
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
}

// FuzzCost makes files out of the kinds above and parts of them.
func FuzzCost(f *testing.F) {
	for i := range costly {
		f.Add(uint8(i), uint8(i+7), uint16(3000), uint32(0))
		f.Add(uint8(i), uint8(i), uint16(9000), uint32(77*i))
	}
	n := 500
	if testing.Short() {
		n = 50
	}
	for seed := range n {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		f.Add(uint8(random.Uint32()), uint8(random.Uint32()), uint16(random.Uint32()), random.Uint32())
	}
	f.Fuzz(func(t *testing.T, first, second uint8, n uint16, splice uint32) {
		h, data := costly[int(first)%len(costly)].file(int(n))
		other, _ := costly[int(second)%len(costly)].file(int(n))
		if splice > 0 && len(h) > 0 && len(other) > 0 { // the beginning of one and the end of another
			h = h[:int(splice)%len(h)] + other[int(splice>>8)%len(other):]
		}
		b := file(h, data)
		units, allocated, err := measure(t, b)
		if errors.Is(err, context.Canceled) {
			t.Skip()
		}
		requireLinear(t, b, units, allocated, err)
	})
}
