package weights

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/budget"
)

func account(t *testing.T) *budget.Budget { return budget.New(t.Context(), math.MaxInt64) }

// What filters of weights are, and up to which distance.
func TestFindKinds(t *testing.T) {
	for _, c := range []struct {
		name   string
		rows   []float32 // two filters
		coded  bool
		within Tolerance
		want   string // of the form; "" for none
		alpha  []float32
		nearly bool
	}{
		{"±1", []float32{1, -1, 1, -1, -1, 1}, false, Tolerance{}, "±1", []float32{1, 1}, false},
		{"±α", []float32{0.5, -0.5, 0.5, -3, -3, 3}, false, Tolerance{}, "±α", []float32{0.5, 3}, false},
		{"nearly ±α", []float32{0.5, -0.501, 0.5, -3, -3, 3}, false, Tolerance{}, "", nil, true},
		{"within a tolerance", []float32{0.5, -0.501, 0.5, -3, -3, 3}, false, Tolerance{Relative: 0.002}, "±α", []float32{0.5005, 3}, true},
		{"rounded", []float32{1 - 0x1p-11, -1 - 0x1p-11, 1, -1, -1, 1}, false, Tolerance{Rounding: 0x1p-10}, "±1", []float32{1, 1}, true},
		{"zeros", []float32{0, -1, 1, -1, -1, 1}, false, Tolerance{}, "", nil, false},
		{"zeros of codes", []float32{0, -1, 1, -1, -1, 1}, true, Tolerance{}, "integers", []float32{1, 1}, false},
		{"multiples", []float32{0.25, -0.5, 0, -1, -1, 1}, true, Tolerance{}, "multiples of α", []float32{0.25, 1}, false},
		{"real", []float32{0.25, -0.5917, 0.1113, -1, -1, 1}, true, Tolerance{}, "", nil, false},
		{"nothing but zeros", []float32{0, 0, 0, 1, -1, 1}, true, Tolerance{}, "integers", []float32{1, 1}, false},
		{"no number", []float32{1, float32(math.NaN()), 1, 1, 1, 1}, true, Tolerance{}, "", nil, false},
		{"infinite", []float32{1, float32(math.Inf(1)), 1, 1, 1, 1}, true, Tolerance{}, "", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, deviation, err := Find(account(t), Rows{c.rows, 2, 3}, c.coded, true, c.within)
			require.NoError(t, err)
			require.Equal(t, c.nearly, deviation > 0, deviation)
			if c.want == "" {
				require.Nil(t, f)
				return
			}
			require.Equal(t, c.want, f.String())
			require.InDeltaSlice(t, c.alpha, f.Alpha, 1e-6)
			for i, w := range c.rows {
				k := float64(0)
				if f.Int8 != nil {
					k = float64(f.Int8[i])
				} else if k = -1; f.Bits[i/3]>>(i%3)&1 != 0 {
					k = 1
				}
				require.InDelta(t, w, k*float64(f.Alpha[i/3]), (c.within.binary()+1e-9)*float64(f.Alpha[i/3]))
			}
		})
	}
}

// Each row of weights is packed on its own, and what a form costs in products of bits.
func TestPackAndProducts(t *testing.T) {
	packed, err := Pack(account(t), Rows{[]float32{1, -1, 1, 1, -1, -1}, 1, 2})
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 3, 0}, packed)
	for _, c := range []struct {
		want int
		w    []int8
	}{
		{1, []int8{1, -1}}, {2, []int8{0, 1, -1}}, {3, []int8{3, -1, 1}}, {6, []int8{3, 2}}, {4, []int8{4, -2}},
		{5, []int8{-5, 1}}, {8, []int8{-4, 1}}, {4, []int8{-4, 2}}, {12, []int8{-6, 0, 1}}, {2, []int8{-2}}, {6, []int8{6, 4}},
	} {
		require.Equal(t, c.want, (&Form{Int8: c.w}).Products(), c.w)
	}
	require.Equal(t, 1, (&Form{Bits: packed}).Products())
	require.Equal(t, 2, (&Form{Int8: []int8{0, 0}}).Products())
}

// Weights of two values are α·±1 + m.
func TestTwo(t *testing.T) {
	rows := []float32{0.75, -0.25, -0.25, 0.75, 0.75, 2, 2, 2, 2, 2}
	two, err := TwoValues(account(t), Rows{rows, 2, 5}, Tolerance{})
	require.NoError(t, err)
	for i, w := range rows {
		require.InDelta(t, w, two.Alpha[i/5]*two.Signs[i]+two.Middle[i/5], 1e-9)
	}
	require.Zero(t, two.Deviation)
	for name, rows := range map[string][]float32{
		"three values": {1, 0, 2, 1, 0}, "few weights": {1, 0, 1, 0}, "one value": {3, 3, 3, 3, 3}, "infinite": {1, float32(math.Inf(1)), 1, 1, 1},
		"no number": {1, float32(math.NaN()), 1, 1, 1},
	} {
		two, err := TwoValues(account(t), Rows{rows, 1, len(rows)}, Tolerance{})
		require.NoError(t, err)
		require.Nil(t, two, name)
	}
	near := []float32{1, -0.5, 1.001, -0.5, 1}
	two, err = TwoValues(account(t), Rows{near, 1, 5}, Tolerance{Relative: 0.01})
	require.NoError(t, err)
	require.InDelta(t, 0.00133, two.Deviation, 1e-4)
	two, err = TwoValues(account(t), Rows{near, 1, 5}, Tolerance{})
	require.NoError(t, err)
	require.Nil(t, two)
}

// Weights of a few values are sums of α·±1.
func TestSumsOfBases(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float32
		bases  int // 0 for none
	}{
		{"±(a + b) and ±(a − b)", []float32{-0.7, -0.2, 0.2, 0.7}, 2},
		{"three steps", []float32{-0.7, -0.3, 0.25, 0.7}, 3},
		{"two steps", []float32{-0.7, 0.2, 0.7}, 2},
		{"±α", []float32{-0.7, 0.7}, 0},
		{"five values", []float32{-0.7, -0.3, 0.1, 0.2, 0.7}, 0},
		{"lopsided", []float32{-0.6, -0.3, 0.25, 0.7}, 0},
		{"a value next to 0", []float32{-0.7, 1e-5, 0.7}, 0},
		{"a value next to another", []float32{-0.7, 0.6999, 0.7}, 0},
		{"infinite", []float32{float32(math.Inf(-1)), 0, float32(math.Inf(1))}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := FindBases(account(t), Rows{c.values, 1, len(c.values)}, Tolerance{})
			require.NoError(t, err)
			if c.bases == 0 {
				require.Nil(t, s)
				return
			}
			require.Len(t, s.Signs, c.bases)
			for i, w := range c.values {
				sum := 0.0
				for m := range s.Signs {
					sum += float64(s.Signs[m][i] * s.Alpha[m][0])
				}
				require.InDelta(t, w, sum, 1e-6)
			}
			require.Less(t, s.Deviation, 1e-6)
		})
	}
}
