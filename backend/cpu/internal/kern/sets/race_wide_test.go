//go:build race

package sets

import (
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// racyWideCalls call the functions of Wide that are no convolutions.
var racyWideCalls = []racyCall{
	{"Expand", func(s *kern.Set) (func(), []probe) {
		if s.Wide == nil || s.Wide.Expand == nil {
			return nil, nil
		}
		dst, src := make([]uint8, 8*racyN), row[uint32]()
		return func() { s.Wide.Expand(dst, src) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"ExpandBytes", func(s *kern.Set) (func(), []probe) {
		if s.Wide == nil || s.Wide.ExpandBytes == nil {
			return nil, nil
		}
		dst, src := make([]uint8, 8*racyN), row[uint32]()
		return func() { s.Wide.ExpandBytes(dst, src) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"Parities", func(s *kern.Set) (func(), []probe) {
		if s.Wide == nil || s.Wide.Parities == nil {
			return nil, nil
		}
		dst := row[uint32]()
		return func() { s.Wide.Parities(dst) }, probes(written, "dst", dst)
	}},
	{"Patches", func(s *kern.Set) (func(), []probe) {
		if s.Wide == nil || s.Wide.Patches == nil {
			return nil, nil
		}
		const rows, run, step, pixels = 3, 12, 20, 5
		at := make([]uint32, pixels)
		for p := range at {
			at[p] = uint32(8 * p)
		}
		dst, src := make([]uint8, pixels*40+60), make([]uint8, 4+8*(pixels-1)+2*step+run)
		return func() { s.Wide.Patches(dst, unsafe.Pointer(&src[4]), at, rows, run, step) },
			slices.Concat(probes(written, "dst", dst[:pixels*40]), probes(read, "src", src), probes(read, "at", at))
	}},
	{"Winograd", func(s *kern.Set) (func(), []probe) {
		if s.Wide == nil || s.Wide.Winograd == nil {
			return nil, nil
		}
		const squares, step, row = 4, 64, 10*64 + 8
		dst, src := make([]uint8, kern.Squares*squares*step), make([]uint8, 3*row+10*step)
		return func() {
			s.Wide.Winograd.Transform(&kern.WinogradInput{
				Dst: unsafe.Pointer(&dst[0]), Src: unsafe.Pointer(&src[0]), Step: step, Row: row, DstStep: step, Plane: squares * step, Squares: squares, Vectors: 1,
			})
		}, slices.Concat(probes(written, "dst", dst), probes(read, "src", src), probes(alone, "between rows", src[10*step:row]))
	}},
	{"Sums of Winograd", func(s *kern.Set) (func(), []probe) {
		if s.Wide == nil || s.Wide.Winograd == nil {
			return nil, nil
		}
		const squares = 4
		f := kern.PackWinograd(make([]int8, 2*kern.BlockOutputs*9*64), 2*kern.BlockOutputs, 64, 1, 0)
		dst, src := make([]int32, kern.Squares*squares*kern.BlockOutputs), make([]uint8, kern.Squares*squares*64)
		return func() {
			s.Wide.Winograd.Sums(&kern.WinogradSums{Dst: unsafe.Pointer(&dst[0]), Src: unsafe.Pointer(&src[0]), Squares: squares}, f, 1)
		}, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"Floats of Winograd", func(s *kern.Set) (func(), []probe) { return racyWinograd[float32](s, false) }},
	{"Levels of Winograd", func(s *kern.Set) (func(), []probe) { return racyWinograd[uint8](s, true) }},
}

// racyWinograd makes outputs of sums: two rows of pixels, with a gap between them.
func racyWinograd[T float32 | uint8](s *kern.Set, levels bool) (func(), []probe) {
	if s.Wide == nil || s.Wide.Winograd == nil {
		return nil, nil
	}
	const squares, row = 4, 8*kern.BlockOutputs + 16
	dst, added, src := make([]T, row+8*kern.BlockOutputs), make([]float32, row+8*kern.BlockOutputs), make([]int32, kern.Squares*squares*kern.BlockOutputs)
	size := unsafe.Sizeof(dst[0])
	job := func() *kern.WinogradJob {
		j := &kern.WinogradJob{Row: size * row, Plane: 4 * squares * kern.BlockOutputs}
		j.Dst, j.DstStep = unsafe.Pointer(&dst[0]), size*kern.BlockOutputs
		j.Src, j.Pixels = unsafe.Pointer(&src[0]), squares
		return j
	}
	var rows [6][]float32
	for i := range rows {
		rows[i] = make([]float32, kern.BlockOutputs)
	}
	end := kern.End{Scale: rows[0], Shift: rows[1]}
	end.Slope = rows[2]
	probed := slices.Concat(probes(written, "dst", dst), probes(alone, "between rows", dst[8*kern.BlockOutputs:row]), probes(read, "src", src),
		probes(read, "scale", rows[0]), probes(read, "shift", rows[1]), probes(read, "slope", rows[2]))
	if levels {
		l := kern.Levels{Scale: rows[3], Shift: rows[4], Rest: rows[5]}
		return func() { s.Wide.Winograd.EndLevels(job(), &end, &l) }, append(probed, slices.Concat(probes(read, "level", rows[3]), probes(read, "move", rows[4]), probes(read, "rest", rows[5]))...)
	}
	return func() { s.Wide.Winograd.EndFloats(job(), &end, unsafe.Pointer(&added[0])) },
		append(probed, slices.Concat(probes(read, "added", added), probes(alone, "between rows of added", added[8*kern.BlockOutputs:row]))...)
}

// racyConvs calls the wide kernels of bits, of bytes, or of those with weights of 8 or 16 bits. There are two classes of
// pixels.
func racyConvs(kind string) []racyCall {
	const outputs, pixels, rows, taps, step = 64, 8, 3, 96, 2
	conv := func(method string, size, alike int, call func(w *kern.WideFilter, j *kern.ConvJob)) racyCall {
		return racyCall{method + " of " + kind, func(s *kern.Set) (func(), []probe) {
			if s.Wide == nil {
				return nil, nil
			}
			var w *kern.WideFilter
			switch {
			case kind == "bits":
				w = s.Wide.PackBits(randomBits(racyRandom(), outputs*rows, taps), outputs, rows, taps)
			case kind == "carries":
				if s.Wide.PackCarries != nil {
					w = s.Wide.PackCarries(randomBits(racyRandom(), outputs*rows, taps), outputs, rows, taps, 1)
				}
				if w == nil {
					return nil, nil
				}
			case kind == "bytes":
				w = s.Wide.PackBytes(randomBits(racyRandom(), outputs*rows, taps), outputs, rows, taps)
			case s.Wide.PackInt8 == nil || method == "Conv" || method == "ConvPooled":
				return nil, nil
			case kind == "16-bit weights":
				w = s.Wide.PackInt16(slices.Repeat([]int16{32639}, outputs*rows*taps), outputs, rows, taps)
			default: // the largest, which have kernels of their own
				w = s.Wide.PackInt8(slices.Repeat([]int8{127}, outputs*rows*taps), outputs, rows, taps, 255)
			}
			if method == "ConvPooled" && !w.Pools() || method == "ConvFloats" && !w.EndsFloats() || method == "ConvLevels" && !w.EndsLevels() {
				return nil, nil
			}
			runs := rows
			if kind == "carries" {
				runs = 1
			}
			patch := runs * w.RunBytes
			src, at, class := make([]uint8, pixels*patch), make([]uint32, pixels), make([]uint32, pixels)
			for p := range pixels {
				at[p], class[p] = uint32(p*patch), uint32(p/alike*4*kern.BlockOutputs)
			}
			table := make([]int32, 2*kern.BlockOutputs)
			used := table[:class[pixels-1]/4+kern.BlockOutputs]
			dst := make([]uint8, (pixels-1)*step*size+size)
			between := dst[size : step*size]
			if method == "ConvPooled" {
				dst = dst[:(pixels/4-1)*step*size+size]
			}
			j := &kern.ConvJob{Dst: unsafe.Pointer(&dst[0]), DstStep: uintptr(step * size), Src: unsafe.Pointer(&src[0]),
				At: &at[0], Class: &class[0], Table: unsafe.Pointer(&table[0]), Pixels: pixels}
			all := slices.Concat(probes(written, "dst", dst), probes(alone, "between pixels", between),
				probes(read, "patches", src), probes(read, "at", at), probes(read, "class", class),
				probes(read, "table", used), probes(read, "first weights", w.Piece(0, 0, 0)),
				probes(read, "last weights", w.Piece(outputs-1, runs-1, w.Pieces()-1)))
			if len(used) < len(table) {
				all = append(all, probes(alone, "another class", table[kern.BlockOutputs:])...)
			}
			if method == "ConvFloats" || method == "ConvLevels" {
				end := kern.End{Scale: make([]float32, outputs), Shift: make([]float32, outputs), Activation: kern.Activation{Slope: make([]float32, outputs)}}
				added := make([]uint8, len(dst))
				all = slices.Concat(all, probes(read, "scale", end.Scale), probes(read, "shift", end.Shift), probes(read, "slope", end.Slope))
				if method == "ConvLevels" {
					l := &kern.Levels{Scale: make([]float32, outputs), Shift: make([]float32, outputs), Rest: make([]float32, outputs)}
					return func() { w.ConvLevels(j, 0, w.RunBytes, &end, l) },
						slices.Concat(all, probes(read, "scale of levels", l.Scale), probes(read, "shift of levels", l.Shift), probes(read, "rest of levels", l.Rest))
				}
				all = append(all, probes(read, "added", added)...)
				return func() { w.ConvFloats(j, 0, w.RunBytes, &end, unsafe.Pointer(&added[0])) }, all
			}
			return func() { call(w, j) }, all
		}}
	}
	return []racyCall{
		conv("ConvFloats", 4*outputs, 4, nil),
		conv("ConvLevels", outputs, 4, nil),
		conv("Conv", 8, 4, func(w *kern.WideFilter, j *kern.ConvJob) { w.Conv(j, 0, w.RunBytes) }),
		conv("ConvSums", 4*outputs, 4, func(w *kern.WideFilter, j *kern.ConvJob) { w.ConvSums(j, 0, w.RunBytes) }),
		conv("ConvPooled", 8, pixels, func(w *kern.WideFilter, j *kern.ConvJob) { w.ConvPooled(j, 0, w.RunBytes, true) }),
	}
}
