package generic

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
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
func packBytes(w []uint64, outputs, k int, zeroPoint uint8) *kern.DotBytesWeights {
	words, groups := bits.Words(k), num.RoundUp(k, group)/group
	padded := num.RoundUp(outputs, Block)
	b := &kern.DotBytesWeights{Outputs: outputs, K: k, Data: make([]uint8, padded*groups), Fix: make([]int32, padded)}
	for o := range outputs {
		row := w[o*words:][:words]
		for g := range groups {
			at := g * group
			b.Data[o*groups+g] = uint8(row[at/bits.WordBits] >> (at % bits.WordBits) & (1<<group - 1))
		}
		for c := range k {
			b.Fix[o] += int32(zeroPoint) * int32(bits.At(row, c))
		}
	}
	return b
}

// dotBytes computes Σ x·w as 2·Σ_{w=+1} x − Σ x. The sums over the taps of
// weight +1 are looked up: of every four taps, all 16 partial sums are computed
// once for four pixels and serve all outputs (the method of four Russians).
func dotBytes(dst []int32, stride int, src []uint8, at *kern.Patches, w *kern.DotBytesWeights, first, n int) {
	n = num.RoundUp(n, Block)
	groups := num.RoundUp(w.K, group) / group
	var taps [chunk * group]uint64
	var tables [chunk][1 << group]uint64
	fix := w.Fix[first:][:n]
	for p := 0; p < at.Pixels; p += lanes {
		var rows [lanes][]int32
		d := rows[:min(lanes, at.Pixels-p)]
		for l := range d {
			d[l] = dst[(p+l)*stride:][:n]
		}
		for g := 0; g < groups; g += chunk {
			tab := tables[:min(chunk, groups-g)]
			transpose(&taps, src, at, p, g*group)
			total := fillTables(tab, &taps)
			for o := 0; o < n; o += 2 {
				i := (first+o)*groups + g
				a, b := lookUp(tab, w.Data[i:], w.Data[i+groups:])
				t := total
				for l := range d {
					x, y := 2*int32(a&0xffff)-int32(t&0xffff), 2*int32(b&0xffff)-int32(t&0xffff)
					if out := d[l][o:][:2]; g == 0 {
						out[0], out[1] = x-fix[o], y-fix[o+1]
					} else {
						out[0], out[1] = out[0]+x, out[1]+y
					}
					a, b, t = a>>16, b>>16, t>>16
				}
			}
		}
	}
}

// lookUp adds the table entries that the weights of two outputs choose.
func lookUp(tab [][1 << group]uint64, v, w []uint8) (a, b uint64) {
	v, w = v[:len(tab)], w[:len(tab)]
	for i := range tab {
		a += tab[i][v[i]&(1<<group-1)]
		b += tab[i][w[i]&(1<<group-1)]
	}
	return a, b
}

// transpose puts the taps from tap on, of pixel p and its right neighbours,
// side by side into words, and zeros behind the last tap. Where there are fewer
// pixels than lanes, the last pixel fills the rest.
func transpose(taps *[chunk * group]uint64, src []uint8, at *kern.Patches, p, tap int) {
	last := at.Pixels - 1
	p0, p1, p2, p3 := p*at.Step, min(p+1, last)*at.Step, min(p+2, last)*at.Step, min(p+3, last)*at.Step
	row, i := tap/at.RowLen, tap%at.RowLen
	out := taps[:]
	for len(out) > 0 && row < at.Rows {
		n := min(at.RowLen-i, len(out))
		v := src[row*at.RowStep+i:]
		v0, v1, v2, v3 := v[p0:][:n], v[p1:][:n], v[p2:][:n], v[p3:][:n]
		for j := range out[:n] {
			out[j] = uint64(v0[j]) | uint64(v1[j])<<16 | uint64(v2[j])<<32 | uint64(v3[j])<<48
		}
		out = out[n:]
		row, i = row+1, 0
	}
	clear(out[:min(len(out), group)])
}

// fillTables computes all sums of subsets of every four taps. It returns the
// sum of all taps.
func fillTables(tab [][1 << group]uint64, taps *[chunk * group]uint64) uint64 {
	var total uint64
	for g := range tab {
		x := (*[group]uint64)(taps[g*group%len(taps):])
		e := &tab[g]
		a, b, c, d := x[0], x[1], x[2], x[3]
		ab, cd := a+b, c+d
		e[0], e[1], e[2], e[3] = 0, a, b, ab
		e[4], e[5], e[6], e[7] = c, a+c, b+c, ab+c
		e[8], e[9], e[10], e[11] = d, a+d, b+d, ab+d
		e[12], e[13], e[14], e[15] = cd, a+cd, b+cd, ab+cd
		total += ab + cd
	}
	return total
}
