// Command neonv7 writes the kernels of the instruction set neonv7, that of 32-bit Arm
// processors. Go's assembler knows no vectors there, so they are words; check.sh of neon
// compares them with what they stand for.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

func main() {
	log.SetFlags(0)
	a := &asm{}
	a.dotBits()
	a.threshold()
	text := gen.Head("arm", "neonv7") + "#include \"textflag.h\"\n" + a.code.String()
	if err := os.WriteFile("../neonv7/kernels_arm.s", []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}
	stubs := gen.Stubs{Arch: "arm", Pkg: "neonv7"}
	stubs.Write(a.stubs.Bytes())
	stubs.Save()
}

// asm collects assembly in the syntax of Go, and the declarations of its functions.
type asm struct {
	code, stubs bytes.Buffer
}

func (a *asm) function(name, params string, args int, doc ...string) {
	a.stubs.WriteByte('\n')
	for _, line := range doc {
		if line != "" && line[0] != '\t' {
			line = " " + line
		}
		fmt.Fprintf(&a.stubs, "//%s\n", line)
	}
	fmt.Fprintf(&a.stubs, "//\n//go:noescape\nfunc %s(%s)\n", name, params)
	fmt.Fprintf(&a.code, "\n// func %s(%s)\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, params, name, args)
}

func (a *asm) op(format string, args ...any) { fmt.Fprintf(&a.code, "\t"+format+"\n", args...) }

func (a *asm) label(name string) { fmt.Fprintf(&a.code, "%s:\n", name) }

func (a *asm) word(code uint32, format string, args ...any) {
	fmt.Fprintf(&a.code, "\tWORD $0x%08x // %s\n", code, fmt.Sprintf(format, args...))
}

// The fields of the numbers of 64-bit registers; those of 128 bits are pairs of them.
func vd(r int) uint32 { return uint32(r&15<<12 | r>>4<<22) }
func vn(r int) uint32 { return uint32(r&15<<16 | r>>4<<7) }
func vm(r int) uint32 { return uint32(r&15 | r>>4<<5) }

// q3 and q2 write an instruction on 128-bit registers, d3 one on 64-bit registers.
func (a *asm) q3(code uint32, name string, d, n, m int) {
	a.word(code|vd(2*d)|vn(2*n)|vm(2*m), "%s q%d, q%d, q%d", name, d, n, m)
}

func (a *asm) q2(code uint32, name string, d, m int) {
	a.word(code|vd(2*d)|vm(2*m), "%s q%d, q%d", name, d, m)
}

func (a *asm) d3(code uint32, name string, d, n, m int) {
	a.word(code|vd(d)|vn(n)|vm(m), "%s d%d, d%d, d%d", name, d, n, m)
}

func (a *asm) veor(d, n, m int)    { a.q3(0xf3000150, "veor", d, n, m) }
func (a *asm) vand(d, n, m int)    { a.q3(0xf2000150, "vand", d, n, m) }
func (a *asm) vcnt(d, m int)       { a.q2(0xf3b00540, "vcnt.8", d, m) }
func (a *asm) vaddB(d, n, m int)   { a.q3(0xf2000840, "vadd.i8", d, n, m) }
func (a *asm) vsubS(d, n, m int)   { a.q3(0xf3200840, "vsub.i32", d, n, m) }
func (a *asm) vcgeS(d, n, m int)   { a.q3(0xf2200350, "vcge.s32", d, n, m) }
func (a *asm) vpaddlB(d, m int)    { a.q2(0xf3b002c0, "vpaddl.u8", d, m) }
func (a *asm) vpaddlH(d, m int)    { a.q2(0xf3b402c0, "vpaddl.u16", d, m) }
func (a *asm) vpaddB(d, n, m int)  { a.d3(0xf2000b10, "vpadd.i8", d, n, m) }
func (a *asm) vpaddS(d, n, m int)  { a.d3(0xf2200b10, "vpadd.i32", d, n, m) }
func (a *asm) vmovnS(d, m int)     { a.word(0xf3b60200|vd(d)|vm(2*m), "vmovn.i32 d%d, q%d", d, m) }
func (a *asm) vmovnH(d, m int)     { a.word(0xf3b20200|vd(d)|vm(2*m), "vmovn.i16 d%d, q%d", d, m) }
func (a *asm) vld1(d, n, from int) { a.move(0xf4200000, "vld1.8", d, n, from, false) }

// vld1p and vst1p move the pointer on.
func (a *asm) vld1p(d, n, from int) { a.move(0xf4200000, "vld1.8", d, n, from, true) }
func (a *asm) vst1p(d, n, to int)   { a.move(0xf4000000, "vst1.8", d, n, to, true) }

// move loads or stores n registers of 64 bits, 1, 2 or 4.
func (a *asm) move(code uint32, name string, d, n, at int, on bool) {
	list, post := fmt.Sprintf("{d%d-d%d}", d, d+n-1), ""
	if n == 1 {
		list = fmt.Sprintf("{d%d}", d)
	}
	code |= map[int]uint32{1: 0x700, 2: 0xa00, 4: 0x200}[n] | vd(d) | uint32(at)<<16 | 15
	if on {
		code, post = code&^2, "!"
	}
	a.word(code, "%s %s, [r%d]%s", name, list, at, post)
}

// dotBits writes the sums of 2 pixels × 8 outputs. The sums of bytes of two outputs are in
// one register.
func (a *asm) dotBits() {
	a.function("dotBits2x8", "dst0, dst1, from0, from1 *int32, x0, x1, w *uint64, rows, run, skip int", 40,
		"dotBits2x8 computes, for pixels p and outputs o < 8,", "",
		"\tdst_p[o] = from_p[o] − 2·Σ over i of popcount(x_p[i] XOR w[i][o])", "",
		"for rows of run words, skip bytes apart, of which there are 31 in all at most.")
	const x0, x1, w, rows, run, skip, left = 0, 1, 2, 3, 4, 5, 6
	const weights, value, temp = 8, 12, 14 // the accumulators are the first eight
	for i, name := range []string{"x0", "x1", "w", "rows", "run", "skip"} {
		a.op("MOVW %s+%d(FP), R%d", name, 16+4*i, i)
	}
	for q := range 8 {
		a.veor(q, q, q)
	}
	a.label("row")
	a.op("MOVW R%d, R%d", run, left)
	a.label("word")
	a.vld1p(2*weights, 4, w)
	a.vld1p(2*weights+4, 4, w)
	for p, x := range []int{x0, x1} {
		a.vld1(2*(value+p), 1, x)
		a.vld1p(2*(value+p)+1, 1, x)
	}
	for p := range 2 {
		for i := 0; i < 4; i += 2 {
			for k := range 2 {
				a.veor(temp+k, weights+i+k, value+p)
			}
			for k := range 2 {
				a.vcnt(temp+k, temp+k)
			}
			for k := range 2 {
				a.vaddB(4*p+i+k, 4*p+i+k, temp+k)
			}
		}
	}
	a.op("SUB.S $1, R%d", left)
	a.op("BNE word")
	a.op("ADD R%d, R%d", skip, x0)
	a.op("ADD R%d, R%d", skip, x1)
	a.op("SUB.S $1, R%d", rows)
	a.op("BNE row")
	const sum, from = 8, 10 // two registers each
	for p := range 2 {
		for i := range 4 {
			a.vpaddlB(temp, 4*p+i)
			a.vpaddlH(temp, temp)
			a.vpaddS(2*sum+i, 2*temp, 2*temp+1)
		}
		a.op("MOVW from%d+%d(FP), R0", p, 8+4*p)
		a.op("MOVW dst%d+%d(FP), R1", p, 4*p)
		a.vld1(2*from, 4, 0)
		for i := range 4 {
			a.vsubS(from+i%2, from+i%2, sum+i%2)
		}
		a.vst1p(2*from, 4, 1)
	}
	a.op("RET")
}

// threshold writes the comparison and packing of whole words.
func (a *asm) threshold() {
	a.function("threshold64", "dst *uint64, values, t *int32, words int", 16,
		"threshold64 sets, for o < 64·words, words > 0,", "",
		"\tbit o%64 of dst[o/64] = values[o] ≥ t[o]")
	const dst, values, t, words, pattern = 0, 1, 2, 3, 15
	for i, name := range []string{"dst", "values", "t", "words"} {
		a.op("MOVW %s+%d(FP), R%d", name, 4*i, i)
	}
	a.op("MOVW $·bitsOfBytes(SB), R4")
	a.vld1(2*pattern, 2, 4)
	const value, bound, bytes = 0, 8, 24 // two of four 128-bit registers, and 64-bit ones
	a.label("next")
	for v := range 4 { // 16 outputs each
		for h := range 2 {
			a.vld1p(2*value+4*h, 4, values)
			a.vld1p(2*bound+4*h, 4, t)
		}
		for i := range 4 {
			a.vcgeS(value+i, value+i, bound+i)
		}
		for i := range 4 {
			a.vmovnS(i, value+i)
		}
		for i := range 2 {
			a.vmovnH(i, i)
		}
		a.vand(0, 0, pattern)
		a.vpaddB(bytes+v, 0, 1)
	}
	a.vpaddB(bytes, bytes, bytes+1)
	a.vpaddB(bytes+2, bytes+2, bytes+3)
	a.vpaddB(bytes, bytes, bytes+2)
	a.vst1p(bytes, 1, dst)
	a.op("SUB.S $1, R%d", words)
	a.op("BNE next")
	a.op("RET")
}
