package modelfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/costtest"
)

// loading is what is judged of reading a file. Most of what is free is for a list of layers that
// say nothing, which grows. The thresholds of one layer, of which a file has the lines, are computed and
// checked without a look at the context.
var loading = costtest.Format[[]byte]{
	Draw: spliced, Kinds: kinds(), PerByte: workPerByte, Free: 200, Steps: 0.05, Soon: 64 << 20,
	Read: func(t testing.TB, ctx context.Context, b []byte) (size, used int64, err error) {
		limits, err := bcnn.Limits{}.WithDefaults()
		require.NoError(t, err)
		size = int64(len(b))
		d := newDecoder(ctx, size, limits)
		_, err = d.network(bytes.NewReader(b), size)
		require.NotErrorIs(t, err, budget.ErrExceeded)
		if err != nil {
			require.Less(t, len(err.Error()), 1500, "an error is a line: %v", err)
		}
		return size, d.Used(), err
	},
}

// header is a file's header around the parts of a network's JSON.
func header(tensors, network string) string {
	return fmt.Sprintf(`{"__metadata__":{"format":"bcnn","version":"1","sha256":"%s","network":%s}%s}`, unsealed, strconv.Quote(network), tensors)
}

func network(layers, more string) string {
	return `{"name":"n","input":{"shape":[1,1,1],"dtype":"float32"},"layers":[` + layers + `]` + more + `}`
}

// inNewest makes a header one of the newest version.
func inNewest(header string) string {
	return strings.Replace(header, `"version":"1"`, fmt.Sprintf(`"version":"%d"`, packedVersion), 1)
}

// channelsOf is network with an input of so many channels.
func channelsOf(n int, layers string) string {
	return fmt.Sprintf(`{"name":"n","input":{"shape":[1,1,%d],"dtype":"float32"},"layers":[%s]}`, n, layers)
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
	name string
	ends string // how reading a large one ends
	file func(n int) (header string, data []byte)
}{
	{"layers", "", func(n int) (string, []byte) { return header("", network(list(n/60, relu), "")), nil }},
	{"layers of nothing", "more than 65536 layers", func(n int) (string, []byte) { return header("", network(list(n/3, same("{}")), "")), nil }},
	{"layers of long names", "layer 0", func(n int) (string, []byte) {
		return header("", network(list(n/1000, func(i int) string {
			return fmt.Sprintf(`{"name":"%0950d","kind":"relu","inputs":[%d]}`, i, i-1)
		}), "")), nil
	}},
	{"layers of one name", "another layer has this name", func(n int) (string, []byte) {
		return header("", network(list(n/50, func(i int) string {
			return fmt.Sprintf(`{"name":"a","kind":"relu","inputs":[%d]}`, i-1)
		}), "")), nil
	}},
	{"tensors of one value", "", func(n int) (string, []byte) {
		n /= 180
		tensors := list(n, func(i int) string {
			return fmt.Sprintf(`"%d.scale":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}`, i, 4*i, 4*i+4)
		})
		layers := list(n, func(i int) string {
			return fmt.Sprintf(`{"name":"%d","kind":"affine","inputs":[%d],"tensors":{"scale":"%d.scale"}}`, i, i-1, i)
		})
		return header(","+tensors, network(layers, "")), make([]byte, 4*n)
	}},
	{"a large tensor", "", func(n int) (string, []byte) {
		tensor := fmt.Sprintf(`,"0.w":{"dtype":"F32","shape":[%d,1],"data_offsets":[0,%d]}`, n, 4*n)
		return header(tensor, network(fmt.Sprintf(`{"name":"0","kind":"dense","inputs":[-1],"params":{"out":%d},"tensors":{"weight":"0.w"}}`, n), "")), make([]byte, 4*n)
	}},
	{"tensors that nobody wants", "no layer uses the tensor", func(n int) (string, []byte) {
		n /= 60
		return header(","+list(n, func(i int) string {
			return fmt.Sprintf(`"%d":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}`, i, 4*i, 4*i+4)
		}), network(relu(0), "")), make([]byte, 4*n)
	}},
	{"labels", "labels for 1 outputs", func(n int) (string, []byte) {
		return header("", network(relu(0), `,"labels":[`+list(n/3, same(`""`))+`]`)), nil
	}},
	{"a long label", "", func(n int) (string, []byte) {
		return header("", network(relu(0), `,"labels":["`+strings.Repeat("é", n/2)+`"]`)), nil
	}},
	{"escapes", "", func(n int) (string, []byte) {
		return header("", network(relu(0), `,"labels":["`+strings.Repeat(`\u0041`, n/6)+`"]`)), nil
	}},
	{"inputs", "inputs, want 2", func(n int) (string, []byte) {
		return header("", network(`{"name":"0","kind":"add","inputs":[`+list(n/3, same("-1"))+`]}`, "")), nil
	}},
	{"dimensions", "dimensions, at most 8", func(n int) (string, []byte) {
		return header(`,"x":{"dtype":"F32","shape":[`+list(n/2, same("1"))+`],"data_offsets":[0,4]}`, network(relu(0), "")), make([]byte, 4)
	}},
	{"offsets", "offsets, want 2", func(n int) (string, []byte) {
		return header(`,"x":{"dtype":"F32","shape":[1],"data_offsets":[`+list(n/2, same("1"))+`]}`, network(relu(0), "")), make([]byte, 4)
	}},
	{"heads", "it needs version 9", func(n int) (string, []byte) {
		return header("", network(relu(0), `,"detection":{"heads":[`+list(n/3, same("{}"))+`]}`)), nil
	}},
	{"heads of version 9", "no params", func(n int) (string, []byte) {
		h := header("", network(relu(0), `,"detection":{"heads":[{"kind":"ssd"},`+list(n/3, same("{}"))+`]}`))
		return strings.Replace(h, `"version":"1"`, `"version":"9"`, 1), nil
	}},
	{"anchors", "an anchor of 0 numbers", func(n int) (string, []byte) {
		h := header("", network(relu(0), `,"detection":{"heads":[{"kind":"yolo","params":{"anchors":[`+list(n/3, same("[]"))+`]}}]}`))
		return strings.Replace(h, `"version":"1"`, `"version":"9"`, 1), nil
	}},
	{"priors", "", func(n int) (string, []byte) {
		tensors := fmt.Sprintf(`,"0.w":{"dtype":"F32","shape":[%d,1],"data_offsets":[0,%d]},"1.w":{"dtype":"F32","shape":[%d,1],"data_offsets":[%d,%d]}`, 4*n, 16*n, n, 16*n, 20*n) +
			fmt.Sprintf(`,"p":{"dtype":"F32","shape":[%d],"data_offsets":[%d,%d]},"v":{"dtype":"F32","shape":[4],"data_offsets":[%d,%d]}`, 4*n, 20*n, 36*n, 36*n, 36*n+16)
		layers := fmt.Sprintf(`{"name":"0","kind":"dense","inputs":[-1],"params":{"out":%d},"tensors":{"weight":"0.w"}},{"name":"1","kind":"dense","inputs":[-1],"params":{"out":%d},"tensors":{"weight":"1.w"}}`, 4*n, n)
		h := header(tensors, network(layers, `,"outputs":[0,1],"detection":{"classes":1,"background":-1,"threshold":0,"overlap":0,"heads":[{"kind":"ssd","params":{"locations":0,"confidences":1},"tensors":{"priors":"p","variances":"v"}}]}`))
		return strings.Replace(h, `"version":"1"`, `"version":"9"`, 1), make([]byte, 36*n+16)
	}},
	{"foreign metadata", "", func(n int) (string, []byte) {
		h := header("", network(relu(0), ""))
		return strings.Replace(h, `"format"`, list(n/12, func(i int) string { return fmt.Sprintf(`"k%d":""`, i) })+`,"format"`, 1), nil
	}},
	{"unknown fields", "unknown field", func(n int) (string, []byte) {
		return header("", network(relu(0), ","+list(n/12, func(i int) string { return fmt.Sprintf(`"k%d":""`, i) }))), nil
	}},
	{"one field again and again", "occurs twice", func(n int) (string, []byte) {
		return header("", network(relu(0), ","+list(n/12, same(`"name":"n"`)))), nil
	}},
	{"parameters nobody wants", "takes no params", func(n int) (string, []byte) {
		return header("", network(`{"name":"0","kind":"relu","inputs":[-1],"params":{"x":[`+list(n/2, same("0"))+`]}}`, "")), nil
	}},
	{"a long number", "cannot unmarshal number", func(n int) (string, []byte) {
		return header("", network(`{"name":"0","kind":"dense","inputs":[-1],"params":{"out":`+strings.Repeat("9", n)+`}}`, "")), nil
	}},
	{"lines of thresholds", "", func(n int) (string, []byte) {
		c := max(n/16, 1)
		h := fmt.Sprintf(`,"t":{"dtype":"F64","shape":[%d,2],"data_offsets":[0,%d]}`, c, 16*c)
		l := `{"name":"q","kind":"quantize","inputs":[-1],"params":{"low":0,"levels":256,"line":"up"},"tensors":{"line_ends":"t"}}`
		data := make([]byte, 0, 16*c)
		for range c {
			data = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(data, 0), math.Float64bits(1.25))
		}
		return inNewest(header(h, channelsOf(c, l))), data
	}},
	{"bits of one channel", "", func(n int) (string, []byte) {
		h := fmt.Sprintf(`,"w":{"dtype":"U8","shape":[%d,1],"data_offsets":[0,%d]}`, n, n)
		l := fmt.Sprintf(`{"name":"d","kind":"dense","inputs":[-1],"params":{"out":%d},"tensors":{"weight":"w"}}`, n)
		return inNewest(header(h, network(l, ""))), make([]byte, n)
	}},
	{"numbers of 16 bits", "", func(n int) (string, []byte) {
		n /= 2
		h := fmt.Sprintf(`,"w":{"dtype":"BF16","shape":[%d,1],"data_offsets":[0,%d]}`, n, 2*n)
		l := fmt.Sprintf(`{"name":"d","kind":"dense","inputs":[-1],"params":{"out":%d},"tensors":{"weight":"w"}}`, n)
		return inNewest(header(h, network(l, ""))), make([]byte, 2*n)
	}},
	{"a long name of a tensor", "no layer uses the tensor", func(n int) (string, []byte) {
		return header(`,"`+strings.Repeat("x", n)+`":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`, network(relu(0), "")), make([]byte, 4)
	}},
	{"nested arrays", "exceeded max depth", func(n int) (string, []byte) {
		return header(`,"x":`+strings.Repeat("[", n)+strings.Repeat("]", n), network(relu(0), "")), nil
	}},
	{"nested arrays that package json takes", "nested more than 16 deep", func(n int) (string, []byte) {
		n = min(n, 9_900)
		return header(`,"x":`+strings.Repeat("[", n)+strings.Repeat("]", n), network(relu(0), "")), nil
	}},
	{"nested objects", "exceeded max depth", func(n int) (string, []byte) {
		n /= 20 // no more than package json nests
		return header("", network(`{"params":`+strings.Repeat(`{"":`, n)+"0"+strings.Repeat("}", n)+`}`, "")), nil
	}},
	{"white space", "", func(n int) (string, []byte) {
		return header("", network(relu(0), strings.Repeat(" ", n))), nil
	}},
	{"a large file without a header", "no JSON object", func(n int) (string, []byte) { return "", make([]byte, n) }},
}

// TestCost reads every kind of file.
func TestCost(t *testing.T) { loading.Test(t) }

func kinds() (all []costtest.Kind[[]byte]) {
	for _, k := range costly {
		all = append(all, costtest.Kind[[]byte]{Name: k.name, N: 10_000, Ends: k.ends, Make: func(n int) []byte { return file(k.file(n)) }})
	}
	return all
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

// TestUnits finds that a charge is lost.
func TestUnits(t *testing.T) { loading.Units(t) }

// FuzzCost makes files out of the kinds above and parts of them.
func FuzzCost(f *testing.F) {
	for i := range costly {
		f.Add([]byte{byte(i), byte(i + 7), 12, 184})
		f.Add([]byte{byte(i), byte(i), 35, 40, byte(77 * i), byte(77 * i >> 8), 0, 0})
	}
	loading.Fuzz(f, 500)
}

// spliced is what a program says: a file of one kind, or the beginning of one and the end of
// another, of a size below 64 KiB.
func spliced(program []byte) []byte {
	p := append(slices.Clone(program), make([]byte, 8)...)
	n, splice := int(binary.BigEndian.Uint16(p[2:])), int(binary.LittleEndian.Uint32(p[4:]))
	h, data := costly[int(p[0])%len(costly)].file(n)
	other, _ := costly[int(p[1])%len(costly)].file(n)
	if splice > 0 && len(h) > 0 && len(other) > 0 {
		h = h[:splice%len(h)] + other[(splice>>8)%len(other):]
	}
	return file(h, data)
}
