package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// function writes the functions of tables. The places of the exponents are in registers;
// the rows of 16 intervals are loaded one by one and transposed, which takes less than
// gathering their columns.
func function() {
	constant := func(name string, v uint32) Mem { return ConstData(name, U32(v)) }
	magnitudes, mantissas := constant("magnitudes", 1<<31-1), constant("mantissas", 1<<23-1)
	infinity, one, infinite := constant("infinity", 0x7f800000), constant("one", 1), constant("infinite", 255)
	shifts, firsts := constant("shifts", 31), constant("firsts", 0xffe0)
	last, ofInfinity := constant("last", 62), constant("ofInfinity", 63)
	gen.Functions(zmm, func(f reg.Register) (func(reg.VecVirtual) (offsets, u reg.VecVirtual), func(func(lane, disp int) Mem) []reg.VecVirtual) {
		var places [2][2]reg.VecVirtual
		var from, width [2]reg.VecVirtual
		for sign := range places {
			for half := range places[sign] {
				places[sign][half] = ZMM()
				VMOVDQU32(Mem{Base: f, Disp: gen.FunctionPlaces + 128*sign + 64*half}, places[sign][half])
			}
			from[sign], width[sign] = ZMM(), ZMM()
			VPBROADCASTD(Mem{Base: f, Disp: gen.FunctionFrom + 4*sign}, from[sign])
			VPBROADCASTD(Mem{Base: f, Disp: gen.FunctionTo + 4*sign}, width[sign])
			VPSUBD(from[sign], width[sign], width[sign])
		}
		zero := ZMM()
		zmm.Zero(zero)
		locate := func(b reg.VecVirtual) (offsets, u reg.VecVirtual) {
			magnitude, i := ZMM(), ZMM()
			negative, special := K(), K()
			VPMOVD2M(b, negative)
			VPANDD_BCST(magnitudes, b, magnitude)
			VPSRLD(U8(23), magnitude, i)
			VPCMPEQD_BCST(infinite, i, special)
			VPSUBD_BCST(Mem{Base: f, Disp: gen.FunctionBelow}, i, i)
			VPMAXSD(zero, i, i)
			VPMINSD_BCST(last, i, i)
			VPBROADCASTD(ofInfinity, special, i)
			place, other := i, ZMM()
			VMOVDQA32(i, other)
			VPERMI2W(places[0][1], places[0][0], place)
			VPERMI2W(places[1][1], places[1][0], other)
			VMOVDQA32(other, negative, place)
			// The row: the first of the exponent, and what is left of the mantissa.
			shift, row := ZMM(), ZMM()
			VPANDD_BCST(shifts, place, shift)
			VPANDD_BCST(firsts, place, place)
			VPANDD_BCST(mantissas, b, row)
			VPSRLVD(shift, row, row)
			VPSLLD(U8(5), row, row)
			VPADDD(place, row, row)
			// The middle: the bits that tell intervals apart, and one behind them.
			m, start, span := ZMM(), ZMM(), ZMM()
			VPSUBD_BCST(one, shift, shift)
			VPSRLVD(shift, b, m)
			VPORD_BCST(one, m, m)
			VPSLLVD(shift, m, m)
			VPBLENDMD(from[1], from[0], negative, start)
			VPBLENDMD(width[1], width[0], negative, span)
			inner, ends := K(), K()
			VPCMPEQD_BCST(infinity, magnitude, ends)
			VPSUBD(start, magnitude, magnitude)
			VPCMPUD(U8(1), span, magnitude, inner) // <
			VMOVDQA32_Z(m, inner, m)
			VPSUBD_BCST(one, b, ends, b)
			VSUBPS(m, b, b)
			return row, b
		}
		columns := func(row func(lane, disp int) Mem) []reg.VecVirtual {
			var t [2][4]reg.VecVirtual
			for half := range t {
				var r [4]reg.VecVirtual
				for k := range r {
					r[k] = ZMM()
					VBROADCASTF32X8(row(8*half+k, 0), r[k])
					VINSERTF32X8(U8(1), row(8*half+4+k, 0), r[k], r[k])
				}
				t[half] = zmm.Transpose(r)
			}
			c := make([]reg.VecVirtual, 8)
			for k := range 4 {
				c[k], c[4+k] = ZMM(), ZMM()
				VSHUFF32X4(U8(0x88), t[1][k], t[0][k], c[k])
				VSHUFF32X4(U8(0xdd), t[1][k], t[0][k], c[4+k])
			}
			return c
		}
		return locate, columns
	})
}
