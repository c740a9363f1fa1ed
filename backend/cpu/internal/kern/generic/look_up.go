package generic

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern"

// LookUp is that of kern.Set.
func LookUp(dst []float32, src []uint8, t *kern.FloatTables) {
	if 3%t.Tables == 0 {
		// Several at a time, as one table or the three of colours allow.
		a, b, c := table(t, 0), table(t, 1%t.Tables), table(t, 2%t.Tables)
		for len(src) >= 6 && len(dst) >= 6 {
			dst[0], dst[1], dst[2] = a[src[0]], b[src[1]], c[src[2]]
			dst[3], dst[4], dst[5] = a[src[3]], b[src[4]], c[src[5]]
			dst, src = dst[6:], src[6:]
		}
	}
	for first := range min(t.Tables, len(dst)) {
		values, in, out := table(t, first), src[first:], dst[first:]
		for i := 0; i < len(in) && i < len(out); i += t.Tables {
			out[i] = values[in[i]]
		}
	}
}

func table(t *kern.FloatTables, i int) *[kern.TableBytes]float32 {
	return (*[kern.TableBytes]float32)(t.Values[i*kern.TableBytes:])
}
