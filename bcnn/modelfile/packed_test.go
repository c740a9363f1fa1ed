package modelfile

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	ieee "github.com/bitcnn/bitcnn/internal/f32"
)

// levelsOf is a network of levels of as many channels as there are lists of thresholds.
func levelsOf(low int, lists ...[]float32) *bcnn.Network {
	n := &bcnn.Network{Name: "levels", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 2, C: len(lists)}, DType: bcnn.Float32}}}
	n.Append("q", bcnn.Quantize{Low: low, Levels: len(lists[0]) + 1, Thresholds: slices.Concat(lists...)})
	return n
}

// thresholdsOf makes a list of f(level), from level −127 on.
func thresholdsOf(f func(level float64) float64) []float32 {
	list := make([]float32, 255)
	for k := range list {
		list[k] = float32(f(float64(k - 127)))
	}
	return list
}

// packable are networks that take less bytes when they are packed.
func packable() map[string]*bcnn.Network {
	r := rand.New(rand.NewPCG(11, 1))
	all := map[string]*bcnn.Network{}
	var plain, limited, kneed, jumps, means, near [][]float32
	for range 5 {
		slope, shift := math.Exp(r.Float64()*8-2), (r.Float64()-0.5)*4000
		whole := func(level float64) float64 { return math.Ceil((level-0.5)*slope - shift) }
		plain = append(plain, thresholdsOf(whole))
		least, most := whole(-100)-3, whole(90)+2
		limited = append(limited, thresholdsOf(func(level float64) float64 { return min(max(whole(level), least), most) }))
		kneed = append(kneed, thresholdsOf(func(level float64) float64 {
			if level <= 0 {
				return whole(level) - 3
			}
			return whole(level)
		}))
		jumps = append(jumps, thresholdsOf(func(level float64) float64 {
			if level < -5 {
				return -40_000_000
			}
			return whole(level)
		}))
		means = append(means, thresholdsOf(func(level float64) float64 { return whole(level) / 49 }))
		near = append(near, thresholdsOf(func(level float64) float64 { return (level - 0.5) * slope / 1000 }))
	}
	all["lines"], all["limits"], all["knees"], all["jumps"] = levelsOf(-128, plain...), levelsOf(-128, limited...), levelsOf(-128, kneed...), levelsOf(-128, jumps...)
	all["parts"], all["numbers"] = levelsOf(0, means...), levelsOf(-100, near...)
	off := slices.Clone(plain[0])
	off[20], off[200] = off[20]-1, off[200]+1
	all["shifts"] = levelsOf(-128, off)
	all["one threshold"] = levelsOf(-128, slices.Repeat([]float32{7}, 255), slices.Repeat([]float32{-3}, 255))
	bits := &bcnn.Network{Name: "bits", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 3, W: 3, C: 70}, DType: bcnn.Float32}}}
	bits.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	words := make([]uint64, 20*9*2)
	for i := range words {
		if words[i] = r.Uint64(); i%2 == 1 {
			words[i] &= 1<<6 - 1
		}
	}
	bits.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}, Out: 20, Groups: 1, Weights: bcnn.Weights{Bits: words}})
	all["bits"] = bits
	minus := *bits // whose last channels are −1
	minus.Layers = slices.Clone(bits.Layers)
	conv := minus.Layers[1].Op.(bcnn.Conv2D)
	conv.Weights.Bits = slices.Clone(words)
	for i := 1; i < len(words); i += 2 {
		conv.Weights.Bits[i] = 0
	}
	minus.Layers[1].Op = conv
	all["bits that are 0"] = &minus
	for name, f := range map[string]func(x float32) float32{
		"halves":   func(x float32) float32 { return ieee.FromHalf(ieee.ToHalf(float32(int(x*1000)) / 1024)) },
		"brains":   func(x float32) float32 { return fromBrain(toBrain(x * 1e20)) },
		"integers": func(x float32) float32 { return float32(int(x * 100)) },
	} {
		n := &bcnn.Network{Name: name, Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 40}, DType: bcnn.Float32}}}
		list := make([]float32, 400)
		for i := range list {
			list[i] = f(r.Float32()*2 - 1)
		}
		n.Append("dense", bcnn.Dense{Out: 10, Weights: bcnn.Weights{F32: list}})
		all[name] = n
	}
	return all
}

// What is packed comes back bit for bit, from less bytes.
func TestPacked(t *testing.T) {
	for name, n := range packable() {
		t.Run(name, func(t *testing.T) {
			b := encode(t, n)
			require.Contains(t, string(b[:200]), `"version":"11"`)
			require.Equal(t, encodeAs(t, n, true), b)
			plain := encodeAs(t, n, false)
			require.Less(t, len(b), len(plain)-leastBytes/2)
			if q, ok := n.Layers[0].Op.(bcnn.Quantize); ok && name != "shifts" {
				require.NotContains(t, string(b), lineShifts)
				require.Less(t, len(b), 1600+60*len(q.Thresholds)/255, "of each channel a few numbers")
			}
			back, err := Read(t.Context(), b, Options{})
			require.NoError(t, err)
			require.Equal(t, n, back)
			for i, l := range n.Layers {
				if q, ok := l.Op.(bcnn.Quantize); ok {
					for k, v := range back.Layers[i].Op.(bcnn.Quantize).Thresholds {
						require.Equal(t, math.Float32bits(q.Thresholds[k]), math.Float32bits(v), "threshold %d", k)
					}
				}
			}
			size, err := Size(n)
			require.NoError(t, err)
			require.Equal(t, int64(len(b)), size.Tensors+size.Metadata)
			old := bytes.Replace(b, []byte(`"version":"11"`), []byte(`"version":"10"`), 1)
			seal(old)
			_, err = Read(t.Context(), old, Options{})
			require.ErrorContains(t, err, "version 11 of the format, this file has version 10")
		})
	}
}

// Thresholds as kernels of integers make them, of any scale, shift and limits, lie on lines, and
// all bits come back whatever they are.
func TestLines(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	const trials = 300
	beside := 0
	for trial := range trials {
		fraction, exponent := int64(1<<30+r.IntN(1<<30)), r.IntN(12)
		shift, lo, hi := int64(r.IntN(20000)-10000), -int64(r.IntN(60000)+300), int64(r.IntN(60000)+300)
		away := trial%3 == 0
		level := func(x int64) int64 {
			y := ((x+shift)*fraction + 1<<30) >> 31
			half := int64(1) << exponent >> 1
			if away && y < 0 && exponent > 0 {
				half--
			}
			return min(max((y+half)>>exponent, -128), 127)
		}
		list := make([]float32, 0, 255)
		x := lo
		for l := int64(-127); l <= 127; l++ {
			for x <= hi && level(x) < l {
				x++
			}
			list = append(list, float32(x))
		}
		l := lined(list, 255, 128)
		require.NotNil(t, l, trial)
		require.Equal(t, list, l.thresholds(255))
		if len(l.shifts) > 0 {
			beside++
		}
	}
	require.LessOrEqual(t, beside, trials/100, "few lie beside a line")
	for name, list := range map[string][]float32{
		"random":            thresholdsOf(func(float64) float64 { return r.NormFloat64() }),
		"a curve":           thresholdsOf(func(level float64) float64 { return math.Exp(level / 9) }),
		"minus zero":        append(slices.Repeat([]float32{float32(math.Copysign(0, -1))}, 1), slices.Repeat([]float32{1}, 254)...),
		"large":             thresholdsOf(func(level float64) float64 { return level * 1e36 }),
		"next to each":      thresholdsOf(func(level float64) float64 { return float64(math.Float32frombits(uint32(1000 + level))) }),
		"few":               {1, 2, 3},
		"as many as enough": thresholdsOf(func(level float64) float64 { return level })[:fewestLevels-1],
	} {
		if l := lined(list, len(list), 0); l != nil {
			for k, v := range l.thresholds(len(list)) {
				require.Equal(t, math.Float32bits(list[k]), math.Float32bits(v), "%s %d", name, k)
			}
		}
		require.Equal(t, name == "large" || name == "next to each" || name == "as many as enough", lined(list, len(list), 0) != nil, name)
	}
}

// All numbers of 16 bits come back, and no other number becomes one.
func TestNarrowed(t *testing.T) {
	for h := range 1 << 16 {
		v := ieee.FromHalf(uint16(h))
		if !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) {
			require.Equal(t, uint16(h), ieee.ToHalf(v))
		}
		require.Equal(t, uint16(h), toBrain(fromBrain(uint16(h))))
	}
	for _, c := range []struct {
		list  []float32
		dtype string
	}{
		{[]float32{1, 0.5, -2048, 65504, 0x1p-24, 0}, f16},
		{[]float32{1, 1e-7 * 0}, f16},
		{[]float32{0x1p-24, 0x1p-14, 0x1.004p-14}, f16},
		{[]float32{65536, 0x1p-30, 0x1.02p100}, bf16},
		{[]float32{2049}, ""},
		{[]float32{0x1p-25, 0x1.004p0}, ""},
		{[]float32{0x1.001p-14}, ""},
		{[]float32{0.1}, ""},
	} {
		dtype, _, ok := narrowed(c.list)
		require.Equal(t, c.dtype, dtype, "%v", c.list)
		require.Equal(t, c.dtype != "", ok)
	}
}

// Rows of bits of any number of channels.
func TestPackedBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for channels := 1; channels <= 130; channels++ {
		words := (channels + 63) / 64
		list := make([]uint64, 4*words)
		for i := range list {
			if list[i] = r.Uint64(); i%words == words-1 && channels%64 != 0 {
				list[i] &= 1<<(channels%64) - 1
			}
		}
		n := rowBytes(list, words)
		require.LessOrEqual(t, n, (channels+7)/8)
		require.Equal(t, list, unpackedBits(packedBits(list, words, n), n))
	}
	require.Equal(t, 9, rowBytes(make([]uint64, 4), 2))
}

func TestWhatIsWrongWithPackedIsNamed(t *testing.T) {
	b := packable()["knees"]
	valid := string(encodeAs(t, b, true))
	for _, c := range []struct{ old, new, want string }{
		{`\"line\":\"up\"`, `\"line\":\"no\"`, `line is "no", want "up" or "near"`},
		{`,\"knee\":128`, `,\"knee\":255`, "knee = 255, want less than 255 thresholds"},
		{`,\"knee\":128`, `,\"knee\":-12`, "knee = -12"},
		{`,\"knee\":128`, `            `, "line_ends: no tensor of F64 with 2 numbers of each channel"},
		{`,\"knee\":128`, `,\"parts\":-1`, "parts = -1"},
		{`,\"knee\":128`, `,\"parts\":9999`, "parts = 9999 with line \"up\", want at most 4096"},
		{`\"line\":\"up\",\"knee\":128`, `\"knee\":128              `, `takes no tensor "line_ends"`},
		{`\"levels\":256`, `\"levels\":999`, "999 levels, want 2 to 256"},
		{`"shape":[5,4]`, `"shape":[4,5]`, "no tensor of F64 with 4 numbers of each channel"},
		{`"dtype":"F64"`, `"dtype":"U64"`, "no tensor of F64"},
		{`\"line_ends\":\"q.line_ends\"`, `\"line_zzzz\":\"q.line_ends\"`, "no tensor of F64"},
	} {
		require.Contains(t, valid, c.old)
		bad := replaced(valid, c.old, c.new)
		_, err := Read(t.Context(), bad, Options{})
		require.ErrorContains(t, err, c.want, "%s → %s", c.old, c.new)
	}
	// Numbers that are none.
	for _, v := range []float64{math.NaN(), math.Inf(1), 1e300} {
		bad := []byte(valid)
		at := len(bad) - 5*4*8
		for i := range 8 {
			bad[at+i] = byte(math.Float64bits(v) >> (8 * i))
		}
		seal(bad)
		_, err := Read(t.Context(), bad, Options{})
		require.Error(t, err, v)
	}
	// What a tensor becomes is limited, not what it is in the file.
	_, err := Read(t.Context(), []byte(valid), Options{Limits: bcnn.Limits{TensorBytes: 5*255*4 - 1}})
	require.ErrorContains(t, err, fmt.Sprintf("a tensor takes %d bytes", 5*255*4))
	for name, bytes := range map[string]int64{"bits": 20 * 9 * 16, "halves": 1600} {
		_, err := Read(t.Context(), encodeAs(t, packable()[name], true), Options{Limits: bcnn.Limits{TensorBytes: bytes - 1}})
		require.ErrorContains(t, err, fmt.Sprintf("takes %d bytes, at most %d are allowed", bytes, bytes-1), name)
	}
}

// replaced changes the header of a file, and seals it.
func replaced(file, old, with string) []byte {
	if pad := len(old) - len(with); pad > 0 {
		with += strings.Repeat(" ", pad)
		if i := strings.LastIndex(with, `"`); strings.HasPrefix(with, `"`) && i >= 0 {
			with = strings.TrimRight(with, " ") + strings.Repeat(" ", pad)
		}
	}
	b := []byte(strings.Replace(file, old, with, 1))
	for len(b) > len(file) { // blanks behind the header make room
		i := bytes.Index(b, []byte("}  "))
		b = slices.Delete(b, i+1, i+2)
	}
	seal(b)
	return b
}
