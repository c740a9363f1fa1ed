package weights

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// layer is random weights of a kind, each off by a fraction of at most noise.
type layer struct {
	Rows
	kind  string
	noise float64
}

// kinds are what the weights of a filter of a random layer are made of.
var kinds = []string{"±α", "multiples", "few multiples", "two values", "two bases", "steps", "real"}

func randomLayer(r *rand.Rand) layer {
	l := layer{kind: kinds[r.IntN(len(kinds))], noise: []float64{0, 0, 0x1p-24, 0x1p-12, 1e-3, 0.02}[r.IntN(6)]}
	l.Out, l.RowLen = 1+r.IntN(4), []int{1, 2, 5, 31, 64, 65, 130}[r.IntN(7)]
	rows := 1 + r.IntN(3)
	for range l.Out {
		var values []float64
		a, b := math.Exp(r.NormFloat64()), math.Exp(r.NormFloat64())
		if r.IntN(4) == 0 {
			a = 1
		}
		switch l.kind {
		case "±α":
			values = []float64{-a, a}
		case "multiples":
			for k := -7; k <= 7; k++ {
				values = append(values, a*float64(k))
			}
		case "few multiples":
			values = []float64{-a, 0, a, 2 * a}[r.IntN(2):]
		case "two values":
			values = []float64{a, b - a}
		case "two bases":
			values = []float64{-a - b, -math.Abs(a - b), math.Abs(a - b), a + b}
		case "steps":
			values = []float64{-a, a * (2*r.Float64() - 1), a * (2*r.Float64() - 1), a}[:3+r.IntN(2)]
			values[len(values)-1] = a
		default:
			for range 50 {
				values = append(values, r.NormFloat64())
			}
		}
		for range rows * l.RowLen {
			x := values[r.IntN(len(values))] * (1 + l.noise*(2*r.Float64()-1))
			l.Values = append(l.Values, float32(x))
		}
	}
	return l
}

// requireOff checks that a decomposition is what it says: off is the distance of each weight from
// what it is taken for, as a fraction of unit, by its place. Its numbers are rounded to float32
// by so much.
func requireOff(t *testing.T, l layer, deviation, rounded float64, off func(o, i int, w float64) (distance, unit float64)) {
	t.Helper()
	most := 0.0
	for k, w := range l.Values {
		distance, unit := off(k/l.Size(), k, float64(w))
		if unit == 0 {
			require.LessOrEqual(t, distance, 0x1p-24*math.Abs(float64(w)))
			continue
		}
		most = max(most, distance/unit)
	}
	require.InDelta(t, most, deviation, rounded+1e-3*deviation, "the deviation")
}

// Whatever is found in random weights, of which some are nearly what they look like, is what
// its definition says, and what has no noise is found.
func TestForms(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	found := map[string]int{}
	for n := range 6000 {
		l := randomLayer(r)
		within := []Tolerance{{}, {Rounding: OfFloat32}, {Rounding: 0x1p-11}, {Relative: 2e-3}, {Relative: 0.05, Rounding: OfFloat32}}[r.IntN(5)]
		signs := r.IntN(2) == 0
		ok := t.Run(fmt.Sprint(n, " ", l.kind, " ", l.noise), func(t *testing.T) {
			f, deviation, err := Binary(account(t), l.Rows, within)
			require.NoError(t, err)
			if f != nil {
				found["binary"]++
				sign := unpacked(t, f.Bits, l.Rows)
				requireOff(t, l, deviation, 3e-7, func(o, i int, w float64) (float64, float64) {
					a := float64(f.Alpha[o])
					return math.Abs(w - a*sign[i]), a
				})
				require.LessOrEqual(t, deviation, within.binary()+1e-7)
			}
			if l.kind == "±α" && l.noise == 0 {
				require.NotNil(t, f)
			}
			f, deviation, err = Integers(account(t), l.Rows, signs, within)
			require.NoError(t, err)
			if f != nil {
				found["integers"]++
				require.LessOrEqual(t, deviation, max(within.Relative, 2*Largest*within.Rounding)+1e-9)
				most := 0
				requireOff(t, l, deviation, 0x1p-24*Largest, func(o, i int, w float64) (float64, float64) {
					k := int(f.Int8[i])
					most = max(most, k, -k)
					a := float64(f.Alpha[o])
					return math.Abs(w - a*float64(k)), a
				})
				require.LessOrEqual(t, most, map[bool]int{true: LargestOfSigns, false: Largest}[signs])
			}
			if (l.kind == "±α" || l.kind == "few multiples") && l.noise == 0 && within.Rounding > 0 {
				require.NotNil(t, f)
			}
			two, err := TwoValues(account(t), l.Rows, within)
			require.NoError(t, err)
			if two != nil {
				found["two"]++
				require.LessOrEqual(t, two.Deviation, within.Relative)
				rounded := 0.0
				for o, a := range two.Alpha {
					rounded = max(rounded, 3e-7*(1+math.Abs(float64(two.Middle[o]/max(a, 1e-30)))))
				}
				requireOff(t, l, two.Deviation, rounded, func(o, i int, w float64) (float64, float64) {
					return math.Abs(w - float64(two.Alpha[o])*float64(two.Signs[i]) - float64(two.Middle[o])), float64(two.Alpha[o])
				})
			}
			if (l.kind == "±α" || l.kind == "two values") && l.noise == 0 && l.Size() >= fewestTaps && varied(l.Rows) {
				require.NotNil(t, two)
			}
			s, err := FindBases(account(t), l.Rows, within)
			require.NoError(t, err)
			if s != nil {
				found[fmt.Sprint(len(s.Signs), " bases")]++
				require.LessOrEqual(t, s.Deviation, 4*within.Rounding+1e-6)
				requireOff(t, l, s.Deviation, 3e-7, func(o, i int, w float64) (float64, float64) {
					sum, largest := 0.0, 0.0
					for m := range s.Signs {
						require.Contains(t, []float32{-1, 1}, s.Signs[m][i])
						sum += float64(s.Signs[m][i]) * float64(s.Alpha[m][o])
					}
					for _, x := range l.Filter(o) {
						largest = max(largest, math.Abs(float64(x)))
					}
					return math.Abs(w - sum), largest
				})
			}
		})
		if !ok {
			return
		}
	}
	for _, kind := range []string{"binary", "integers", "two", "2 bases", "3 bases"} {
		require.Greater(t, found[kind], 20, "%s: %v", kind, found)
	}
}

// varied reports whether each filter has two values.
func varied(rows Rows) bool {
	for o := range rows.Out {
		same := true
		for _, w := range rows.Filter(o) {
			same = same && w == rows.Filter(o)[0]
		}
		if same {
			return false
		}
	}
	return true
}

// unpacked returns ±1 of packed rows, whose padding must be 0.
func unpacked(t *testing.T, packed []uint64, rows Rows) []float64 {
	t.Helper()
	require.NoError(t, bits.CheckPadding(packed, rows.RowLen))
	words := bits.Words(rows.RowLen)
	out := make([]float64, len(rows.Values))
	for k := range out {
		row, c := k/rows.RowLen, k%rows.RowLen
		out[k] = -1
		if packed[row*words+c/64]>>(c%64)&1 != 0 {
			out[k] = 1
		}
	}
	return out
}

// The largest distance from ±α, from multiples and from two values that a tolerance allows, and
// the next larger one.
func TestTolerance(t *testing.T) {
	for _, within := range []Tolerance{{Relative: 0x1p-9}, {Rounding: 0x1p-10}} {
		for _, step := range []float64{0.999, 1.001} {
			d := step * 0x1p-9
			filter := []float32{1, float32(1 + d), float32(-1 + d), -1, 1, float32(1 - d)}
			f, deviation, err := Binary(account(t), Rows{filter, 1, 6}, within)
			require.NoError(t, err)
			require.Equal(t, step < 1, f != nil, "%v %v", within, step)
			require.InEpsilon(t, d, deviation, 1e-3)
		}
	}
	for _, step := range []float64{0.999, 1.001} {
		d := step * 0x1p-9
		filter := []float32{0, 2, float32(2 + d*2), 0, 2, 0}
		two, err := TwoValues(account(t), Rows{filter, 1, 6}, Tolerance{Relative: 0x1p-8})
		require.NoError(t, err)
		// Of the range, whose half is α, a weight is off by d·2 from its nearer end.
		require.Equal(t, d*2 <= 0x1p-8*(1+d), two != nil)
		f, deviation, err := Integers(account(t), Rows{[]float32{4, float32(1 + d), -2}, 1, 3}, true, Tolerance{Relative: 0x1p-9})
		require.NoError(t, err)
		require.Equal(t, step < 1, f != nil, deviation)
	}
}
