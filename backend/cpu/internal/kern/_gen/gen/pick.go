package gen

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Picks writes the kernels that make vectors of the output of pieces of those of the
// input. piece loads what there is to know of one, and returns how to merge it into
// the vector of a pixel; the first one begins the vector.
func Picks(isa ISA, piece func(at func(disp int) Mem, first bool) (merge func(m Mem, v reg.VecVirtual))) {
	for pieces := range MaxPieces {
		pieces++
		name := fmt.Sprintf("pick%d%s", pieces, isa.Name)
		TEXT(name, NOSPLIT, "func(job *byte)")
		Doc(fmt.Sprintf("%s writes the vectors of the output of every pixel of a PickJob, of %d pieces each.", name, pieces))
		Pragma("noescape")
		job := Load(Param("job"), GP64())
		at := func(disp int) reg.GPVirtual {
			r := GP64()
			MOVQ(Mem{Base: job, Disp: disp}, r)
			return r
		}
		dst, src, table, vectors := at(PickDst), at(PickSrc), at(PickPieces), at(PickVectors)
		dstStep, srcStep := at(PickDstStep), at(PickSrcStep)
		out, in, pixels := GP64(), GP64(), GP64()
		Label("vector")
		var merges []func(reg.VecVirtual)
		for i := range pieces {
			offset := GP64()
			MOVQ(Mem{Base: table, Disp: PieceSize*i + PieceOffset}, offset)
			merge := piece(func(disp int) Mem { return Mem{Base: table, Disp: PieceSize*i + disp} }, i == 0)
			merges = append(merges, func(v reg.VecVirtual) { merge(Mem{Base: in, Index: offset, Scale: 1}, v) })
		}
		MOVQ(dst, out)
		MOVQ(src, in)
		MOVQ(Mem{Base: job, Disp: PickPixels}, pixels)
		Label("pixel")
		v := isa.Vec()
		for _, merge := range merges {
			merge(v)
		}
		VMOVUPS(v, Mem{Base: out})
		ADDQ(dstStep, out)
		ADDQ(srcStep, in)
		DECQ(pixels)
		JNE(LabelRef("pixel"))
		ADDQ(I32(4*isa.Lanes), dst)
		ADDQ(I32(PieceSize*pieces), table)
		DECQ(vectors)
		JNE(LabelRef("vector"))
		VZEROUPPER()
		RET()
	}
}
