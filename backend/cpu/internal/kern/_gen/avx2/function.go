package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// function writes the functions of tables. The rows of 8 intervals are loaded one by one
// and transposed.
func function() {
	constant := func(name string, v uint64) Mem {
		v |= v << 32
		return table(name, words(v, v, v, v))
	}
	magnitudes, mantissas := constant("magnitudes", 1<<31-1), constant("mantissas", 1<<23-1)
	infinity, one, shifts := constant("infinity", 0x7f800000), constant("one", 1), constant("shifts", 31)
	gen.Functions(ymm, func(f reg.Register) (func(reg.VecVirtual) (offsets, u reg.VecVirtual), func(func(lane, disp int) Mem) []reg.VecVirtual) {
		locate := func(b reg.VecVirtual) (offsets, u reg.VecVirtual) {
			index, place, all := YMM(), YMM(), YMM()
			VPSRLD(U8(23), b, index)
			VPCMPEQD(all, all, all)
			VPGATHERDD(all, Mem{Base: f, Index: index, Scale: 4, Disp: gen.FunctionDirectory}, place)
			// The row: the first of the exponent, and what is left of the mantissa.
			shift, row := YMM(), YMM()
			VPAND(shifts, place, shift)
			VPSUBD(shift, place, place)
			VPAND(mantissas, b, row)
			VPSRLVD(shift, row, row)
			VPSLLD(U8(5), row, row)
			VPADDD(place, row, row)
			// The middle: the bits that tell intervals apart, and one behind them.
			m, magnitude, start, end, other := YMM(), YMM(), YMM(), YMM(), YMM()
			VPSUBD(one, shift, shift)
			VPSRLVD(shift, b, m)
			VPOR(one, m, m)
			VPSLLVD(shift, m, m)
			bound := func(disp int, v reg.VecVirtual) {
				VPBROADCASTD(Mem{Base: f, Disp: disp}, v)
				VPBROADCASTD(Mem{Base: f, Disp: disp + 4}, other)
				VBLENDVPS(b, other, v, v)
			}
			bound(gen.FunctionFrom, start)
			bound(gen.FunctionTo, end)
			VPAND(magnitudes, b, magnitude)
			VPCMPGTD(magnitude, start, start) // below the first
			VPCMPGTD(magnitude, end, end)
			VPANDN(end, start, start)
			VPAND(start, m, m)
			VPCMPEQD(infinity, magnitude, magnitude)
			VPADDD(magnitude, b, b)
			VSUBPS(m, b, b)
			return row, b
		}
		columns := func(row func(lane, disp int) Mem) []reg.VecVirtual {
			quarter := func(disp int) []reg.VecVirtual {
				var r [4]reg.VecVirtual
				for k := range r {
					r[k] = YMM()
					VBROADCASTF128(row(k, disp), r[k])
					VINSERTF128(U8(1), row(4+k, disp), r[k], r[k])
				}
				t := ymm.Transpose(r)
				return t[:]
			}
			last := quarter(16)
			return append(quarter(0), last...)
		}
		return locate, columns
	})
}
