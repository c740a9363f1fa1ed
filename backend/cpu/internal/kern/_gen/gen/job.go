// Package gen is what the generators of the instruction sets share: the places
// of fields, and parts of kernels for amd64.
package gen

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// MaxPieces is the number of pieces that kernels behind a PickJob take.
const MaxPieces = 4

// Tiles writes a loop over the pixels of a DotJob or FMAJob, so many at a time,
// for kernels of AVX. body gets pointers to their patches, store writes the
// results of pixel p.
func Tiles(job reg.Register, pixels int, body func(x []reg.GPVirtual), store func(p int, dst reg.Register)) {
	TilesSSE(job, pixels, body, store)
	VZEROUPPER()
	RET()
}

// TilesSSE is Tiles without the end of the function.
func TilesSSE(job reg.Register, pixels int, body func(x []reg.GPVirtual), store func(p int, dst reg.Register)) {
	Label("next")
	CMPQ(Mem{Base: job, Disp: TilePixels}, U8(pixels))
	JLT(LabelRef("done"))
	x := make([]reg.GPVirtual, pixels)
	for p := range x {
		x[p] = GP64()
		if p == 0 {
			MOVQ(Mem{Base: job, Disp: TileSrc}, x[p])
		} else {
			MOVQ(x[p-1], x[p])
			ADDQ(Mem{Base: job, Disp: TileStep}, x[p])
		}
	}
	body(x)
	dst := GP64()
	MOVQ(Mem{Base: job, Disp: TileDst}, dst)
	for p := range pixels {
		store(p, dst)
		ADDQ(Mem{Base: job, Disp: TileDstStep}, dst)
	}
	MOVQ(dst, Mem{Base: job, Disp: TileDst})
	last := x[pixels-1]
	ADDQ(Mem{Base: job, Disp: TileStep}, last)
	MOVQ(last, Mem{Base: job, Disp: TileSrc})
	SUBQ(U8(pixels), Mem{Base: job, Disp: TilePixels})
	JMP(LabelRef("next"))
	Label("done")
}

// Rows writes a loop over the runs of patches: i counts the bytes from the first
// one, and body, which moves it on, gets the end of the run.
func Rows(job reg.Register, body func(i, end reg.GPVirtual)) {
	i, row, end := GP64(), GP64(), GP64()
	XORQ(i, i)
	MOVQ(Mem{Base: job, Disp: TileRows}, row)
	Label("row")
	MOVQ(Mem{Base: job, Disp: TileRun}, end)
	ADDQ(i, end)
	body(i, end)
	ADDQ(Mem{Base: job, Disp: TileSkip}, i)
	DECQ(row)
	JNE(LabelRef("row"))
}

// DotWeights returns the places of the weights of one or four blocks of a
// DotJob, and a function that moves them on by so many bytes.
func DotWeights(job reg.Register, blocks int) (at []Mem, advance func(bytes int)) {
	w, w3, block := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: TileWeights}, w)
	MOVQ(Mem{Base: job, Disp: DotBlock}, block)
	if blocks == 1 {
		return []Mem{{Base: w}}, func(bytes int) { ADDQ(U8(bytes), w) }
	}
	LEAQ(Mem{Base: w, Index: block, Scale: 2}, w3)
	ADDQ(block, w3)
	at = []Mem{{Base: w}, {Base: w, Index: block, Scale: 1}, {Base: w, Index: block, Scale: 2}, {Base: w3}}
	return at, func(bytes int) {
		ADDQ(U8(bytes), w)
		ADDQ(U8(bytes), w3)
	}
}

// DotDoc writes the comment of a kernel behind DotBits.
func DotDoc(name string, pixels, outputs int) {
	Doc(name+" computes, for every pixel p, "+strconv.Itoa(pixels)+" at a time, and each of "+strconv.Itoa(outputs)+" outputs o,",
		"with x the words of its patch,",
		"",
		"\tdst[p][o] = K − 2·Σ over i of popcount(x[i] XOR w[i][o])",
		"",
		"and takes the pixels off the job.")
	Pragma("noescape")
}
