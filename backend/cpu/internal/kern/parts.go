package kern

import (
	"math"
	"slices"
	"unsafe"
)

// PackParts lays out 16-bit weights as filters of 8 bits: one whose sums count 256 times, one for
// the rest, and further ones if the rest exceeds 8 bits, as it does for weights above 32,639. pack
// lays out each of them. The filter has sums only, with a DstStep of 4·BlockOutputs.
func PackParts(w []int16, outputs, rows, n int, pack func(w []int8, outputs, rows, n int) *WideFilter) *WideFilter {
	parts := PartsOfInt16(w)
	filter := pack(parts[0], outputs, rows, n)
	filter.Form = "parts of 8 bits"
	fix := make([]int32, outputs)
	for o := range filter.Fix {
		fix[o] = 256 * filter.Fix[o]
	}
	last := filter
	for _, part := range parts[1:] {
		last.rest = pack(part, outputs, rows, n)
		last = last.rest
		for o := range last.Fix {
			fix[o] += last.Fix[o]
		}
	}
	filter.Fix = fix
	return filter
}

// PartsOfInt16 returns parts of weights: 256 times the first and all others are their sums.
func PartsOfInt16(w []int16) [][]int8 {
	part, left := make([]int8, len(w)), slices.Clone(w)
	for i, v := range w {
		part[i] = int8(min((int(v)+128)>>8, math.MaxInt8))
		left[i] -= 256 * int16(part[i])
	}
	parts := [][]int8{part}
	for more := true; more; {
		more = false
		part = make([]int8, len(w))
		for i, v := range left {
			part[i] = int8(min(v, math.MaxInt8))
			left[i] -= int16(part[i])
			more = more || left[i] != 0
		}
		parts = append(parts, part)
	}
	return parts
}

const partPixels = 64

var (
	noTable   [BlockOutputs]int32
	noClasses [partPixels]uint32
	partRows  = func() (at [partPixels]uint32) { // the sums of each pixel, as a table
		for p := range at {
			at[p] = uint32(4 * BlockOutputs * p)
		}
		return at
	}()
)

// convParts is ConvSums for filters of PackParts, modulo 2³².
func (w *WideFilter) convParts(j *ConvJob, block, rowStep int) {
	all := *j
	for done := uintptr(0); done < all.Pixels; done += partPixels {
		pixels := min(all.Pixels-done, partPixels)
		job := all
		job.Pixels = pixels
		job.At = (*uint32)(unsafe.Add(unsafe.Pointer(all.At), 4*done))
		job.Dst = unsafe.Add(all.Dst, done*all.DstStep)
		*j = job
		j.Table, j.Class = unsafe.Pointer(&noTable[0]), &noClasses[0]
		w.convSums(j, block, rowStep)
		outputs := w.blocks[block].Outputs
		for p := range pixels {
			class := *(*uint32)(unsafe.Add(unsafe.Pointer(all.Class), 4*(done+p)))
			table := unsafe.Slice((*int32)(unsafe.Add(all.Table, class)), outputs)
			sums := unsafe.Slice((*int32)(unsafe.Add(job.Dst, p*all.DstStep)), outputs)
			for o, sum := range sums {
				sums[o] = sum<<8 + table[o]
			}
		}
		for rest := w.rest; rest != nil; rest = rest.rest {
			*j = job
			j.Table, j.Class = job.Dst, &partRows[0]
			rest.convSums(j, block, rowStep)
		}
	}
	*j = all
}
