package main

import (
	"bytes"
	"fmt"
	"strings"
)

// asm collects assembly in the syntax of Go, and the declarations of its
// functions.
type asm struct {
	code, stubs bytes.Buffer
}

// noSplit is how much of the stack there always is.
const noSplit = 640

// function starts a function that takes the arguments params, or returns an int if
// there are none. size is the memory it needs on the stack.
func (a *asm) function(name, params string, size, args int, doc ...string) {
	a.stubs.WriteByte('\n')
	for _, line := range doc {
		if line != "" && line[0] != '\t' {
			line = " " + line
		}
		fmt.Fprintf(&a.stubs, "//%s\n", line)
	}
	if strings.Contains(params, "*") {
		fmt.Fprint(&a.stubs, "//\n//go:noescape\n")
	}
	result, flag := "", "NOSPLIT"
	if params == "" {
		result = " int"
	}
	if size > noSplit {
		flag = "0"
	}
	fmt.Fprintf(&a.stubs, "func %s(%s)%s\n", name, params, result)
	fmt.Fprintf(&a.code, "\n// func %s(%s)%s\nTEXT ·%s(SB), %s, $%d-%d\n", name, params, result, name, flag, size, args)
}

// op writes an instruction that Go's assembler knows.
func (a *asm) op(format string, args ...any) {
	fmt.Fprintf(&a.code, "\t"+format+"\n", args...)
}

func (a *asm) label(name string) { fmt.Fprintf(&a.code, "%s:\n", name) }

// word writes an instruction that Go's assembler lacks. The comment has it in
// the syntax of GNU as; check.sh assembles it and compares the words.
func (a *asm) word(code uint32, format string, args ...any) {
	fmt.Fprintf(&a.code, "\tWORD $0x%08x // %s\n", code, fmt.Sprintf(format, args...))
}

// zero clears a vector. VEOR with itself would wait for what was there before.
func (a *asm) zero(d int) { a.op("VMOVI $0, V%d.B16", d) }

// uadalp adds neighbouring bytes of n to the 16-bit lanes of d.
func (a *asm) uadalp(n, d int) {
	a.word(0x6e206800|uint32(n<<5|d), "uadalp v%d.8h, v%d.16b", d, n)
}

// uaddlp is uadalp for lanes that were 0.
func (a *asm) uaddlp(n, d int) {
	a.word(0x6e202800|uint32(n<<5|d), "uaddlp v%d.8h, v%d.16b", d, n)
}

// ldrq loads the vector at the sum of two registers, whose numbers are base and
// index.
func (a *asm) ldrq(base, index, d int) {
	a.word(0x3ce06800|uint32(index<<16|base<<5|d), "ldr q%d, [x%d, x%d]", d, base, index)
}

// uadalpH adds neighbouring 16-bit lanes of n to the 32-bit lanes of d.
func (a *asm) uadalpH(n, d int) {
	a.word(0x6e606800|uint32(n<<5|d), "uadalp v%d.4s, v%d.8h", d, n)
}

// sqxtn saturates 32-bit lanes of n to 16 bits, into the low half of d or into
// the high one.
func (a *asm) sqxtn(high bool, n, d int) {
	if high {
		a.word(0x4e614800|uint32(n<<5|d), "sqxtn2 v%d.8h, v%d.4s", d, n)
		return
	}
	a.word(0x0e614800|uint32(n<<5|d), "sqxtn v%d.4h, v%d.4s", d, n)
}

// cmgeH sets 16-bit lanes of d to all ones where n ≥ m, signed.
func (a *asm) cmgeH(n, m, d int) {
	a.word(0x4e603c00|uint32(m<<16|n<<5|d), "cmge v%d.8h, v%d.8h, v%d.8h", d, n, m)
}

// cmgeS is cmgeH for 32-bit lanes.
func (a *asm) cmgeS(n, m, d int) {
	a.word(0x4ea03c00|uint32(m<<16|n<<5|d), "cmge v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// cmgtS is cmgeS for n > m.
func (a *asm) cmgtS(n, m, d int) {
	a.word(0x4ea03400|uint32(m<<16|n<<5|d), "cmgt v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// sshr31 sets 32-bit lanes of d to all ones where the sign of n is set.
func (a *asm) sshr31(n, d int) {
	a.word(0x4f210400|uint32(n<<5|d), "sshr v%d.4s, v%d.4s, #31", d, n)
}

// fcmge is cmgeS for float32.
func (a *asm) fcmge(n, m, d int) {
	a.word(0x6e20e400|uint32(m<<16|n<<5|d), "fcmge v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// scvtf converts int32 lanes to float32.
func (a *asm) scvtf(n, d int) {
	a.word(0x4e21d800|uint32(n<<5|d), "scvtf v%d.4s, v%d.4s", d, n)
}

// list is n registers from first on, as loads and stores take them.
func list(first, n int, lanes string) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("V%d.%s", first+i, lanes)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// cmhs sets bytes of d to all ones where n ≥ m, unsigned.
func (a *asm) cmhs(n, m, d int) {
	a.word(0x6e203c00|uint32(m<<16|n<<5|d), "cmhs v%d.16b, v%d.16b, v%d.16b", d, n, m)
}

// cmhi is cmhs for n > m.
func (a *asm) cmhi(n, m, d int) {
	a.word(0x6e203400|uint32(m<<16|n<<5|d), "cmhi v%d.16b, v%d.16b, v%d.16b", d, n, m)
}

// fcmgt sets lanes of d to all ones where n > m.
func (a *asm) fcmgt(n, m, d int) {
	a.word(0x6ea0e400|uint32(m<<16|n<<5|d), "fcmgt v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// fcmeq is fcmgt for n = m.
func (a *asm) fcmeq(n, m, d int) {
	a.word(0x4e20e400|uint32(m<<16|n<<5|d), "fcmeq v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// fcmeqZero sets lanes of d to all ones where n is +0 or −0.
func (a *asm) fcmeqZero(n, d int) {
	a.word(0x4ea0d800|uint32(n<<5|d), "fcmeq v%d.4s, v%d.4s, #0.0", d, n)
}

// bic sets d to the bits of n that are not in m.
func (a *asm) bic(n, m, d int) {
	a.word(0x4e601c00|uint32(m<<16|n<<5|d), "bic v%d.16b, v%d.16b, v%d.16b", d, n, m)
}

// fadd adds float32 lanes.
func (a *asm) fadd(n, m, d int) {
	a.word(0x4e20d400|uint32(m<<16|n<<5|d), "fadd v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// fsub subtracts float32 lanes of m from those of n.
func (a *asm) fsub(n, m, d int) {
	a.word(0x4ea0d400|uint32(m<<16|n<<5|d), "fsub v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// fmul multiplies float32 lanes.
func (a *asm) fmul(n, m, d int) {
	a.word(0x6e20dc00|uint32(m<<16|n<<5|d), "fmul v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// fdiv divides float32 lanes of n by those of m.
func (a *asm) fdiv(n, m, d int) {
	a.word(0x6e20fc00|uint32(m<<16|n<<5|d), "fdiv v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// fmaxnm takes the larger lane of n and m, or that of m where n is a quiet NaN.
func (a *asm) fmaxnm(n, m, d int) {
	a.word(0x4e20c400|uint32(m<<16|n<<5|d), "fmaxnm v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// fminnm is fmaxnm for the smaller one.
func (a *asm) fminnm(n, m, d int) {
	a.word(0x4ea0c400|uint32(m<<16|n<<5|d), "fminnm v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// frintm rounds float32 lanes down.
func (a *asm) frintm(n, d int) {
	a.word(0x4e219800|uint32(n<<5|d), "frintm v%d.4s, v%d.4s", d, n)
}

// fcvtns converts float32 lanes to the nearest int32, or the even one of two.
func (a *asm) fcvtns(n, d int) {
	a.word(0x4e21a800|uint32(n<<5|d), "fcvtns v%d.4s, v%d.4s", d, n)
}

// fcvtzs converts float32 lanes to int32 without what is behind the point.
func (a *asm) fcvtzs(n, d int) {
	a.word(0x4ea1b800|uint32(n<<5|d), "fcvtzs v%d.4s, v%d.4s", d, n)
}

// fmlaLane adds the products of n with one lane of m to d.
func (a *asm) fmlaLane(m, lane, n, d int) {
	a.word(0x4f801000|uint32(lane&1<<21|lane>>1<<11|m<<16|n<<5|d), "fmla v%d.4s, v%d.4s, v%d.s[%d]", d, n, m, lane)
}

// fmulLane multiplies n by one lane of m.
func (a *asm) fmulLane(n, m, lane, d int) {
	a.word(0x4f809000|uint32(lane&1<<21|lane>>1<<11|m<<16|n<<5|d), "fmul v%d.4s, v%d.4s, v%d.s[%d]", d, n, m, lane)
}

// fcmlt0 sets lanes of d to all ones where n < 0.
func (a *asm) fcmlt0(n, d int) {
	a.word(0x4ea0e800|uint32(n<<5|d), "fcmlt v%d.4s, v%d.4s, #0.0", d, n)
}

// ushlS shifts 32-bit lanes of n by those of m: left, or right where they are
// negative.
func (a *asm) ushlS(n, m, d int) {
	a.word(0x6ea04400|uint32(m<<16|n<<5|d), "ushl v%d.4s, v%d.4s, v%d.4s", d, n, m)
}

// ushlD is ushlS for 64-bit lanes.
func (a *asm) ushlD(n, m, d int) {
	a.word(0x6ee04400|uint32(m<<16|n<<5|d), "ushl v%d.2d, v%d.2d, v%d.2d", d, n, m)
}

// umull multiplies bytes to 16-bit lanes.
func (a *asm) umull(n, m, d int) {
	a.word(0x2e20c000|uint32(m<<16|n<<5|d), "umull v%d.8h, v%d.8b, v%d.8b", d, n, m)
}

// umlal adds the products of bytes to 16-bit lanes.
func (a *asm) umlal(n, m, d int) {
	a.word(0x2e208000|uint32(m<<16|n<<5|d), "umlal v%d.8h, v%d.8b, v%d.8b", d, n, m)
}

// shrn8 keeps the upper bytes of 16-bit lanes.
func (a *asm) shrn8(n, d int) {
	a.word(0x0f088400|uint32(n<<5|d), "shrn v%d.8b, v%d.8h, #8", d, n)
}

// arguments loads the arguments of a function, eight bytes each.
func (a *asm) arguments(names ...string) {
	for i, name := range names {
		a.op("MOVD %s+%d(FP), R%d", name, 8*i, i)
	}
}

// constants fills vectors with 64-bit words, two for each.
func (a *asm) constants(first int, words ...uint64) {
	for i, w := range words {
		a.op("MOVD $%#x, R26", w)
		a.op("VMOV R26, V%d.D[%d]", first+i/2, i%2)
	}
}
