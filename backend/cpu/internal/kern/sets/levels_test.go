package sets

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/internal/f32"
)

func TestLookUp(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, tables := range []int{1, 2, 3, 5} {
			values := make([]float32, tables*kern.TableBytes)
			for i := range values {
				values[i] = math.Float32frombits(rng.Uint32())
			}
			for _, n := range []int{0, 1, 63, 64, 65, 128, 191, 192, 193, 2*192 + 100} {
				src := make([]uint8, n)
				for i := range src {
					src[i] = uint8(rng.Uint32())
				}
				dst, check := guarded[float32](t, n)
				s.LookUp(dst, src, kern.NewFloatTables(values))
				check()
				for i, v := range dst {
					want := values[i%tables*kern.TableBytes+int(src[i])]
					requireEqual(t, math.Float32bits(want), math.Float32bits(v), "value %d of %d, %d tables", i, n, tables)
				}
			}
		}
	})
}

func TestLevels(t *testing.T) {
	inf := float32(math.Inf(1))
	special := []float32{float32(math.NaN()), inf, -inf, 0, float32(math.Copysign(0, -1)), math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -0.5, 0.5, 1.5, 2.5}
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, row := range []int{1, 3, 7, 8, 9, 15, 16, 31, 32, 33, 40, 64, 100} {
			for _, n := range []int{0, 1, 7, 8, row, row + 1, 2*row + 9, 3 * row} {
				for _, most := range []int{1, 3, 15, 255} {
					l := &kern.Levels{Offset: int32(rng.IntN(most+1) * rng.IntN(2)), Down: rng.IntN(3) == 0, Truncate: rng.IntN(3) == 0}
					l.Least, l.Most = float32(-l.Offset), float32(most)-float32(l.Offset)
					for range row {
						l.Scale, l.Shift = append(l.Scale, float32(math.Exp(rng.NormFloat64()))), append(l.Shift, float32(rng.NormFloat64()*float64(most))-float32(l.Offset))
					}
					if rng.IntN(2) == 0 {
						for _, s := range l.Scale {
							l.Rest = append(l.Rest, s*(1-rng.Float32())/[]float32{1, 1 << 12, 1 << 24}[rng.IntN(3)])
						}
					}
					if rng.IntN(2) == 0 {
						lists := 1 + rng.IntN(3)
						for range lists * (most + 1) {
							l.Table = append(l.Table, float32(rng.NormFloat64()*float64(most)))
						}
						for range row {
							l.List = append(l.List, int32(rng.IntN(lists)*(most+1))+l.Offset)
						}
					}
					src := make([]float32, n)
					low := float32(rng.IntN(300) - 150)
					bytes, check := guarded[uint8](t, n)
					floats, checkFloats := guarded[float32](t, n)
					wantBytes, wantFloats := make([]uint8, n), make([]float32, n)
					for i := range src {
						src[i] = float32(rng.NormFloat64() * float64(most))
						switch rng.IntN(4) {
						case 0:
							src[i] = special[rng.IntN(len(special))]
						case 1:
							src[i] = float32(math.Round(float64(src[i])))
						}
						// By the definition, in float64 where that is as good.
						y := float64(src[i])
						if l.Down {
							y = math.Floor(y)
						}
						if l.Rest != nil {
							y = float64(f32.FMA(float32(y), l.Scale[i%row], float32(y*float64(l.Rest[i%row]))))
						} else {
							y = float64(float32(y * float64(l.Scale[i%row])))
						}
						v := float64(float32(y + float64(l.Shift[i%row])))
						if math.IsNaN(v) {
							v = float64(l.Least)
						}
						round := math.RoundToEven
						if l.Truncate {
							round = math.Trunc
						}
						k := int(round(min(max(v, float64(l.Least)), float64(l.Most)))) + int(l.Offset)
						if l.Table != nil && src[i] >= l.Table[int(l.List[i%row]-l.Offset)+k] {
							k++
						}
						wantBytes[i], wantFloats[i] = uint8(min(k, 255)), low+float32(k)
						if k == 256 { // more than a table of thresholds gives
							src[i], wantBytes[i], wantFloats[i] = -inf, 0, low
							if l.Table != nil && -inf >= l.Table[l.List[i%row]-l.Offset] {
								t.Fatal("drawn")
							}
						}
					}
					s.LevelBytes(bytes, src, l)
					s.LevelFloats(floats, src, l, low)
					check()
					checkFloats()
					require.Equal(t, wantBytes, append([]uint8{}, bytes...), "%d of rows of %d to %d", n, row, most)
					require.Equal(t, wantFloats, append([]float32{}, floats...), "%d of rows of %d to %d", n, row, most)
				}
			}
		}
	})
}
