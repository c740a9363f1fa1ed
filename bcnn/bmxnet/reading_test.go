package bmxnet

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Attributes as the versions of MXNet write them.
func TestAttributes(t *testing.T) {
	read := func(text string) attributes {
		if text == "-" {
			return attributes{}
		}
		return attributes{"a": text}
	}
	for text, want := range map[string]struct {
		flag bool
		err  bool
	}{
		"True": {true, false}, "true": {true, false}, "1": {true, false}, "False": {false, false}, "false": {false, false}, "0": {false, false},
		"-": {true, false}, "None": {true, false}, "": {true, false}, "yes": {true, true}, "2": {true, true},
	} {
		got, err := try.Do(func() bool { return read(text).flag("a", true) })
		require.Equal(t, want.err, err != nil, text)
		if !want.err {
			require.Equal(t, want.flag, got, text)
		}
	}
	require.False(t, read("-").flag("a", false))
	for text, want := range map[string]struct {
		number int
		err    bool
	}{
		"-": {7, false}, "None": {7, false}, "3": {3, false}, "5": {5, false}, "3L": {3, false}, "2": {7, true}, "6": {7, true}, "x": {7, true}, "3.5": {7, true}, "L": {7, true},
	} {
		got, err := try.Do(func() int { return read(text).integer("a", 7, 3, 5) })
		require.Equal(t, want.err, err != nil, text)
		if !want.err {
			require.Equal(t, want.number, got, text)
		}
	}
	for text, want := range map[string]struct {
		number float32
		err    bool
	}{"-": {0.5, false}, "None": {0.5, false}, "2": {2, false}, "-1e-05": {-1e-5, false}, "nan": {0, true}, "inf": {0, true}, "-Inf": {0, true}, "x": {0, true}, "1e39": {0, true}} {
		got, err := try.Do(func() float32 { return read(text).number("a", 0.5) })
		require.Equal(t, want.err, err != nil, text)
		if !want.err {
			require.Equal(t, want.number, got, text)
		}
	}
	many := "(" + strings.Repeat("1,", maxDims-1) + "1)"
	for text, want := range map[string]struct {
		list []int
		err  bool
	}{
		"-": {nil, false}, "None": {nil, false}, "()": {nil, false}, " ": {nil, false}, "(3, 4)": {[]int{3, 4}, false}, "[3,4]": {[]int{3, 4}, false}, "3": {[]int{3}, false},
		"(3,)": {[]int{3}, false}, "(3L, 4L)": {[]int{3, 4}, false}, " (2, 5) ": {[]int{2, 5}, false}, "(1, 4)": {[]int{1, 4}, false}, "(,3)": {nil, true}, "(0, 4)": {nil, true},
		"(1, 6)": {nil, true}, "(1, x)": {nil, true}, many: {make([]int, maxDims), false}, many + ", 1": {nil, true},
	} {
		got, err := try.Do(func() []int { return read(text).list("a", 1, 5) })
		if text == many {
			require.Len(t, got, maxDims)
			continue
		}
		require.Equal(t, want.list, got, text)
		require.Equal(t, want.err, err != nil, text)
	}
	for text, want := range map[string]struct {
		pair [2]int
		err  bool
	}{"-": {[2]int{9, 9}, false}, "(2, 3)": {[2]int{2, 3}, false}, "(2,)": {[2]int{9, 9}, true}, "(2, 3, 4)": {[2]int{9, 9}, true}, "(65536, 1)": {[2]int{65536, 1}, false}, "(65537, 1)": {[2]int{9, 9}, true}} {
		got, err := try.Do(func() [2]int { y, x := read(text).pair("a", 9, 1); return [2]int{y, x} })
		require.Equal(t, want.err, err != nil, text)
		if !want.err {
			require.Equal(t, want.pair, got, text)
		}
	}
	require.EqualError(t, try.Run(func() { read("x").flag("a", true) }), `a is "x", want True or False`)
	window := attributes{"kernel": "(1, 2)", "stride": "(3, 4)", "dilate": "(5, 6)", "pad": "(7, 8)"}.window()
	require.Equal(t, bcnn.Window{KH: 1, KW: 2, StrideH: 3, StrideW: 4, DilationH: 5, DilationW: 6, Pad: bcnn.Padding{Top: 7, Left: 8, Bottom: 7, Right: 8}}, window)
	window = attributes{}.window()
	require.Equal(t, bcnn.Window{StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}, window)
}

// Heads of arrays as four versions of MXNet write them, at the ends of what is read.
func TestHeadsOfArrays(t *testing.T) {
	le := binary.LittleEndian
	words := func(list ...uint32) []byte {
		var b []byte
		for _, v := range list {
			b = le.AppendUint32(b, v)
		}
		return b
	}
	deep := words(maxDims)
	for range maxDims {
		deep = append(deep, words(1)...)
	}
	deep = append(deep, words(1, 0, float32s, 0x3f800000)...)
	for _, c := range []struct {
		name string
		data []byte
		want array
		err  string
	}{
		{"of version 0", words(2, 1, 2, 1, 0, uint8s, 0x0605), array{dims: []int{1, 2}, dtype: uint8s, data: []byte{5, 6}}, ""},
		{"of version 1", words(magicV1, 1, 2, 0, 1, 0, uint8s, 0x0605), array{dims: []int{2}, dtype: uint8s, data: []byte{5, 6}}, ""},
		{"of version 2", words(magicV2, 0, 1, 2, 0, 1, 0, uint8s, 0x0605), array{dims: []int{2}, dtype: uint8s, data: []byte{5, 6}}, ""},
		{"of version 3", words(magicV3, 0, 1, 2, 0, 1, 0, uint8s, 0x0605), array{dims: []int{2}, dtype: uint8s, data: []byte{5, 6}}, ""},
		{"sparse", words(magicV3, 2, 1, 2, 0, 1, 0, uint8s), array{}, "storage type 2: sparse arrays are not supported"},
		{"cut before its storage", words(magicV3), array{}, "the file ends too early"},
		{"of no dimension", words(0), array{}, ""},
		{"of 32 dimensions", deep, array{dims: []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, data: []byte{0, 0, 0x80, 0x3f}}, ""},
		{"of 33", words(33), array{}, "it has 33 dimensions, at most 32 are supported"},
		{"as many values as there may be", words(1, maxValues, 1, 0, uint8s), array{}, "the file ends too early"},
		{"one more", words(1, maxValues+1, 1, 0, uint8s), array{}, "it has more than 2147483647 values"},
		{"as many in two", words(2, maxValues, 1, 1, 0, uint8s), array{}, "the file ends too early"},
		{"more in two", words(2, 1<<16, 1<<15, 1, 0, uint8s), array{}, "it has more than 2147483647 values"},
		{"of the last type", words(1, 1, 1, 0, int64s, 1, 2), array{dims: []int{1}, dtype: int64s, data: []byte{1, 0, 0, 0, 2, 0, 0, 0}}, ""},
		{"of a type that there is not", words(1, 1, 1, 0, int64s+1, 1, 2), array{}, "element type 7 is not supported"},
		{"of type −1", words(1, 1, 1, 0, math.MaxUint32, 1, 2), array{}, "element type -1 is not supported"},
		{"cut before its type", words(1, 1, 1, 0), array{}, "the file ends too early"},
		{"cut in its data", words(1, 3, 1, 0, int64s, 1, 2), array{}, "the file ends too early"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &reader{data: c.data}
			a, err := r.array()
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want.dims, a.dims)
			require.Equal(t, c.want.data, a.data)
			require.Equal(t, c.want.dtype, a.dtype)
		})
	}
	sizes := map[int32]int{float32s: 4, float64s: 8, float16s: 2, uint8s: 1, int32s: 4, int8s: 1, int64s: 8}
	for dtype, size := range sizes {
		require.Equal(t, 3, array{dtype: dtype, data: make([]byte, 3*size)}.len())
		r := &reader{data: append(words(1, 3, 1, 0, uint32(dtype)), make([]byte, 3*size)...)}
		a, err := r.array()
		require.NoError(t, err)
		require.Len(t, a.data, 3*size)
		require.Len(t, r.data, r.at)
		bits, err := a.wordBits()
		if size < 4 {
			require.ErrorContains(t, err, fmt.Sprintf("packed weights in elements of type %d", dtype))
		} else {
			require.NoError(t, err)
			require.Equal(t, 8*size, bits)
		}
	}
}

// Names lose arg: or aux:, once, and a reserved word is not looked at.
func TestNamesOfArrays(t *testing.T) {
	file := paramsFile(magicV2, []testArray{{name: "arg:a", dims: []int{0}}, {name: "aux:b", dims: []int{0}}, {name: "c", dims: []int{0}}, {name: "arg:aux:d", dims: []int{0}}})
	file[8] = 1
	b := budget.New(t.Context(), 1<<20)
	params, err := decodeParams(file, b)
	require.NoError(t, err)
	var names []string
	for name := range params {
		names = append(names, name)
	}
	require.ElementsMatch(t, []string{"a", "b", "c", "aux:d"}, names)
	require.EqualValues(t, 4*arrayUnits+4*nameUnits+len("arg:aaux:bcarg:aux:d"), b.Used())
}

// Operators on weights alone, and what they are refused for.
func TestConstants(t *testing.T) {
	for _, c := range []struct {
		op    string
		attrs []any
		dims  []int
		want  []int // the dimensions of what it computes, nil where it is refused
	}{
		{"mean", []any{"axis", 0, "exclude", 1, "keepdims", 1}, []int{2, 3, 4}, []int{2, 1, 1}},
		{"mean", []any{"axis", "(0,)", "exclude", "True", "keepdims", "True"}, []int{2}, []int{2}},
		{"mean", []any{"axis", 1, "exclude", 1, "keepdims", 1}, []int{2, 3}, nil},
		{"mean", []any{"axis", "x", "exclude", 1, "keepdims", 1}, []int{2, 3}, nil},
		{"mean", []any{"exclude", 1, "keepdims", 1}, []int{2, 3}, nil},
		{"mean", []any{"axis", 0, "exclude", 0, "keepdims", 1}, []int{2, 3}, nil},
		{"mean", []any{"axis", 0, "keepdims", 1}, []int{2, 3}, nil},
		{"mean", []any{"axis", 0, "exclude", 1}, []int{2, 3}, nil},
		{"mean", []any{"axis", 0, "exclude", 1, "keepdims", "maybe"}, []int{2, 3}, nil},
		{"mean", []any{"axis", 0, "exclude", 1, "keepdims", 1}, []int{2, 0}, nil},
		{"mean", []any{"axis", 0, "exclude", 1, "keepdims", 1}, []int{}, nil},
		{"transpose", []any{"axes", "(1, 0)"}, []int{3, 1}, []int{1, 3}},
		{"transpose", []any{"axes", "(1, 2, 0)"}, []int{3, 1, 1}, []int{1, 1, 3}},
		{"transpose", []any{"axes", "(0, 1)"}, []int{1, 1}, []int{1, 1}},
		{"transpose", []any{"axes", "(1, 0)"}, []int{3, 2}, nil},
		{"transpose", []any{"axes", "(0,)"}, []int{3, 1}, nil},
		{"transpose", []any{"axes", "(0, 1, 2)"}, []int{3, 1}, nil},
		{"transpose", []any{"axes", "(0, 2)"}, []int{3, 1}, nil},
		{"transpose", []any{"axes", "(0, 0)"}, []int{3, 1}, nil},
		{"transpose", []any{"axes", "(0, -1)"}, []int{3, 1}, nil},
		{"abs", nil, []int{2, 3}, []int{2, 3}},
		{"det_sign", nil, []int{2, 3}, []int{2, 3}},
		{"BlockGrad", nil, []int{2, 3}, []int{2, 3}},
	} {
		g := newGraph()
		w := g.param("arg:", append(c.dims, make([]int, max(1-len(c.dims), 0))...)...)
		if c.op == "mean" {
			w = g.op("abs", nil, w)
		}
		at := g.op(c.op, attributes2(c.attrs...), w)
		im, err := begin(t.Context(), 1<<10, 1<<10, shape)
		require.NoError(t, err)
		require.NoError(t, im.read(g.symbol(), g.file()))
		if len(c.dims) == 0 { // as the file has one of no dimensions
			im.params["w1"] = array{}
		}
		if c.op == "mean" {
			im.folded[w], _ = im.constant(&im.nodes[w])
		}
		var ok bool
		a, err := try.Do(func() (a array) { a, ok = im.constant(&im.nodes[at]); return a })
		if c.want == nil {
			require.Error(t, err, "%+v", c)
			continue
		}
		require.NoError(t, err, "%+v", c)
		require.True(t, ok)
		require.Equal(t, c.want, a.dims, "%+v", c)
		require.Equal(t, c.op == "det_sign", a.signs)
		got, err := a.floats(im.budget)
		require.NoError(t, err)
		for i, v := range g.constant(at) {
			require.InDelta(t, v, got[i], 1e-6)
		}
	}
}

// Weights beside a tensor are one number, or one for each channel.
func TestWeightsBesideTensors(t *testing.T) {
	for _, c := range []struct {
		flat bool
		dims []int
		ok   bool
	}{
		{false, []int{1}, true}, {false, []int{1, 1}, true}, {false, []int{4, 1, 1}, true}, {false, []int{1, 4, 1, 1}, true}, {false, []int{1, 1, 1, 1}, true},
		{false, []int{4}, false}, {false, []int{4, 1}, false}, {false, []int{1, 1, 4, 1}, false}, {false, []int{3, 1, 1}, false}, {false, []int{4, 1, 1, 1}, false},
		{false, []int{1, 4, 5, 1}, false}, {false, []int{1, 4, 1, 6}, false}, {false, []int{1, 1, 4, 1, 1}, false}, {false, []int{1, 1, 1, 1, 1}, false},
		{true, []int{120}, true}, {true, []int{1, 120}, true}, {true, []int{1}, true}, {true, []int{120, 1}, false}, {true, []int{4}, false}, {true, []int{4, 1, 1}, false},
	} {
		for _, swapped := range []bool{false, true} {
			g := newGraph()
			x := 0
			if c.flat {
				x = g.op("Flatten", nil)
			}
			w := g.param("arg:", c.dims...)
			if swapped {
				x, w = w, x
			}
			g.op("elemwise_sub", nil, x, w)
			if c.ok {
				requireSame(t, g, 4, 5, 6)
				continue
			}
			_, _, err := Decode(t.Context(), g.symbol(), g.file(), shape)
			require.ErrorContains(t, err, "want one weight, or one for each channel")
		}
	}
}
