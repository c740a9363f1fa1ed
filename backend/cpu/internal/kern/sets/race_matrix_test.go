//go:build race

package sets

import (
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// racyMatrixCalls call the functions of Matrix, and the kernels of weights of ±1 and of 8 bits.
var racyMatrixCalls = []racyCall{
	{"LinesOfBits", func(s *kern.Set) (func(), []probe) {
		if s.Matrix == nil {
			return nil, nil
		}
		at := &kern.LineRows{Rows: 2, Before: 1, Inside: 3, After: 1, Step: 8, Row: 48, Planes: 2, Plane: 24, Mask: ^uint64(0)}
		dst, src := make([]uint8, 2*5*kern.LineBytes), make([]uint64, 12)
		return func() { s.Matrix.LinesOfBits(dst, src, at) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"LinesOfBytes", func(s *kern.Set) (func(), []probe) {
		if s.Matrix == nil {
			return nil, nil
		}
		const width = 7
		at := &kern.LineRows{Rows: 2, Inside: 3, After: 1, Step: width, Row: 3 * width, Mask: 1<<width - 1}
		dst, src := make([]uint8, 2*4*kern.LineBytes), make([]uint8, 2*3*width)
		return func() { s.Matrix.LinesOfBytes(dst, src, at) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"LinesOfRuns", func(s *kern.Set) (func(), []probe) {
		if s.Matrix == nil {
			return nil, nil
		}
		at := &kern.RunRows{Rows: 2, Pixels: 3, Step: 2, Row: 8, Runs: []kern.LineRun{{Mask: 15}, {Offset: 8 - 4, Mask: 15 << 4}}}
		dst, src := make([]uint8, 2*3*kern.LineBytes), make([]uint8, 3*8)
		return func() { s.Matrix.LinesOfRuns(dst, src, at) },
			slices.Concat(probes(written, "dst", dst), probes(read, "src", src), probes(read, "runs", at.Runs))
	}},
	racyMatrix("Bits", 4, func(f *kern.MatrixFilter, j *kern.MatrixJob, p *kern.MatrixPart, _ *kern.End, _ *kern.FakeQuantize, _ unsafe.Pointer) {
		f.Bits(j, p)
	}),
	racyMatrix("Sums32", 128, func(f *kern.MatrixFilter, j *kern.MatrixJob, p *kern.MatrixPart, _ *kern.End, _ *kern.FakeQuantize, _ unsafe.Pointer) {
		f.Sums32(j, p)
	}),
	racyMatrix("Floats", 128, func(f *kern.MatrixFilter, j *kern.MatrixJob, p *kern.MatrixPart, end *kern.End, _ *kern.FakeQuantize, added unsafe.Pointer) {
		f.Floats(j, p, end, end, added)
	}),
	racyMatrix("Levels", 32, func(f *kern.MatrixFilter, j *kern.MatrixJob, p *kern.MatrixPart, end *kern.End, fake *kern.FakeQuantize, added unsafe.Pointer) {
		f.Levels(j, p, end, fake, fake.Levels, end, added)
	}),
}

// racyMatrix calls kernels that write size bytes of a pixel, of two panels.
func racyMatrix(
	method string, size int,
	call func(*kern.MatrixFilter, *kern.MatrixJob, *kern.MatrixPart, *kern.End, *kern.FakeQuantize, unsafe.Pointer),
) racyCall {
	return racyCall{method + " of Matrix", func(s *kern.Set) (func(), []probe) {
		if s.Matrix == nil {
			return nil, nil
		}
		const pixels, panels, outputs, between, lines = 2, 2, 32, 8, 3
		f := kern.PackMatrixSigns(s.Matrix, make([]uint64, 2*outputs), outputs, 2)
		src, dst := make([]uint8, (lines+1)*kern.LineBytes), make([]uint8, size+between+size)
		table := make([]int32, 2*outputs)
		pixel := []kern.MatrixPixel{{}, {Sums: kern.LineBytes, Table: 4 * outputs}}
		end := &kern.End{Scale: make([]float32, outputs), Shift: make([]float32, outputs), Activation: kern.Activation{Slope: make([]float32, outputs)}}
		l := &kern.Levels{Scale: make([]float32, outputs), Shift: make([]float32, outputs), Rest: make([]float32, outputs)}
		fake := &kern.FakeQuantize{Levels: l, Scale: make([]float32, outputs), Shift: make([]float32, outputs)}
		added := make([]uint8, len(dst))
		part := &kern.MatrixPart{
			Taps: []uint32{0, kern.LineBytes}, Blocks: []kern.MatrixBlock{{Tiles: 1, Pixels: pixels}}, Panels: panels,
			Rows: lines, Last: lines, Line: kern.LineBytes, Memory: make([]uint8, kern.MatrixMemory),
		}
		j := &kern.MatrixJob{
			Src: unsafe.Pointer(&src[0]), Pixels: &pixel[0], Table: unsafe.Pointer(&table[0]),
			Dst: unsafe.Pointer(&dst[0]), DstStep: uintptr(size + between), Flip: unsafe.Pointer(&make([]uint8, 8)[0]),
		}
		all := slices.Concat(probes(written, "dst", dst[:size]), probes(alone, "between pixels", dst[size:size+between]),
			probes(written, "last dst", dst[size+between:]), probes(read, "lines", src), probes(read, "taps", part.Taps),
			probes(read, "table", table), probes(written, "memory", part.Memory))
		if method == "Floats" || method == "Levels" {
			all = slices.Concat(all, probes(read, "scale", end.Scale), probes(read, "shift", end.Shift), probes(read, "slope", end.Slope))
		}
		switch method {
		case "Floats":
			all = append(all, probes(read, "added", added[:size])...)
		case "Levels":
			all = slices.Concat(all, probes(read, "scale of levels", l.Scale), probes(read, "shift of levels", l.Shift), probes(read, "rest of levels", l.Rest),
				probes(read, "scale of values", fake.Scale), probes(read, "shift of values", fake.Shift))
		}
		return func() { call(f, j, part, end, fake, unsafe.Pointer(&added[0])) }, all
	}}
}
