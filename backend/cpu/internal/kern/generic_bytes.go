package kern

import (
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

const (
	// group is the number of taps that one look-up sums.
	group = 4
	// lanes is the number of pixels that a word holds side by side, as 16-bit
	// unsigned sums.
	lanes = 4
	// chunk is the number of look-ups whose sums fit into 16 bits:
	// 64·4·255 = 65280.
	chunk = 64
)

// packBytes stores, for every output, one byte for every four taps: the bits
// of those whose weight is +1.
func packBytes(w []uint64, outputs, k int, zeroPoint uint8) *Bytes {
	words, groups := bits.Words(k), (k+group-1)/group
	padded := (outputs + genericBlock - 1) / genericBlock * genericBlock
	b := &Bytes{Outputs: outputs, K: k, data: make([]uint8, padded*groups), fix: make([]int32, padded)}
	for o := range outputs {
		row := w[o*words:][:words]
		for g := range groups {
			at := g * group
			b.data[o*groups+g] = uint8(row[at/bits.WordBits] >> (at % bits.WordBits) & (1<<group - 1))
		}
		for c := range k {
			b.fix[o] += int32(zeroPoint) * int32(bits.At(row, c))
		}
	}
	return b
}

// dotBytes computes Σ x·w as 2·Σ_{w=+1} x − Σ x. The sums over the taps of
// weight +1 are looked up: of every four taps, all 16 partial sums are computed
// once for four pixels and serve all outputs (the method of four Russians).
func dotBytes(dst []int32, stride int, src []uint8, at *Patches, w *Bytes, first, n int) {
	n = (n + genericBlock - 1) / genericBlock * genericBlock
	groups := (w.K + group - 1) / group
	var tables [chunk][1 << group]uint64
	for p := 0; p < at.Pixels; p += lanes {
		pixels := min(lanes, at.Pixels-p)
		var sum [lanes]int32 // Σ x
		for g := 0; g < groups; g += chunk {
			tab := tables[:min(chunk, groups-g)]
			total := fillTables(tab, src, at, p, pixels, g*group)
			for l := range sum {
				sum[l] += int32(total >> (16 * l) & 0xffff)
			}
			for o := range n {
				acc := lookUp(tab, w.data[(first+o)*groups+g:])
				d := dst[p*stride+o:]
				for l := range pixels {
					if v := int32(acc & 0xffff); g == 0 {
						d[l*stride] = v
					} else {
						d[l*stride] += v
					}
					acc >>= 16
				}
			}
		}
		for l := range pixels {
			d := dst[(p+l)*stride:][:n]
			for o, fix := range w.fix[first:][:n] {
				d[o] = 2*d[o] - sum[l] - fix
			}
		}
	}
}

// lookUp adds the table entries that the weights choose.
func lookUp(tab [][1 << group]uint64, w []uint8) uint64 {
	w = w[:len(tab)]
	var acc uint64
	for i := range tab {
		acc += tab[i][w[i]&(1<<group-1)]
	}
	return acc
}

// fillTables computes the partial sums of the taps from tap on of a patch and
// its right neighbours. It returns the sums of all these taps.
func fillTables(tab [][1 << group]uint64, src []uint8, at *Patches, p, pixels, tap int) uint64 {
	var total uint64
	row, i := tap/at.RowLen, tap%at.RowLen
	base := p * at.Step
	for t := range tab {
		var x [group]uint64
		for j := range x {
			if row == at.Rows {
				break // the taps that fill up the last group are 0
			}
			v := src[base+row*at.RowStep+i:]
			for l := range pixels {
				x[j] |= uint64(v[l*at.Step]) << (16 * l)
			}
			if i++; i == at.RowLen {
				row, i = row+1, 0
			}
		}
		e := &tab[t]
		a, b, c, d := x[0], x[1], x[2], x[3]
		ab, cd := a+b, c+d
		*e = [1 << group]uint64{
			0, a, b, ab,
			c, a + c, b + c, ab + c,
			d, a + d, b + d, ab + d,
			cd, a + cd, b + cd, ab + cd,
		}
		total += ab + cd
	}
	return total
}
