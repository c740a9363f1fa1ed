package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// opcodeCase is an opcode with its operands: types of the registers, or constants, and what
// it makes of the operands, which are zero-extended. The result is what its register
// holds, zero-extended.
type opcodeCase struct {
	op       string
	dest     string
	operands []string // "b16", "b32", "b64", "f32", "pred", or a constant
	want     func(a []uint64) uint64
	nonzero  bool // the second operand
}

func (c opcodeCase) String() string {
	return strings.NewReplacer("f32", "f", "b", "", ",", "").Replace(c.op + " " + strings.Join(c.operands, " "))
}

// kernelOf computes the opcode on the row of four words that belongs to the thread.
func (c opcodeCase) kernelOf(name string) string {
	var b strings.Builder
	b.WriteString("	mul.wide.u32 %rd3, %r3, 32;\n	add.s64 %rd4, %rd1, %rd3;\n")
	registers := map[string]string{"b16": "%rs", "b32": "%r", "b64": "%rd", "f32": "%f", "pred": "%p"}
	args := []string{registers[c.dest] + "9"}
	for i, o := range c.operands {
		r, ok := registers[o]
		if !ok {
			args = append(args, o)
			continue
		}
		r += fmt.Sprint(5 + i)
		if o == "pred" {
			fmt.Fprintf(&b, "	ld.global.u8 %%r%d, [%%rd4+%d];\n	and.b32 %%r%[1]d, %%r%[1]d, 1;\n	setp.ne.b32 %[3]s, %%r%[1]d, 0;\n", 20+i, 8*i, r)
		} else {
			fmt.Fprintf(&b, "	ld.global.%s %s, [%%rd4+%d];\n", o, r, 8*i)
		}
		args = append(args, r)
	}
	fmt.Fprintf(&b, "	%s %s;\n", c.op, strings.Join(args, ", "))
	b.WriteString("	mul.wide.u32 %rd3, %r3, 8;\n	add.s64 %rd3, %rd2, %rd3;\n")
	if c.dest == "pred" {
		b.WriteString("	selp.u32 %r20, 1, 0, %p9;\n	st.global.u32 [%rd3], %r20;\n")
	} else {
		fmt.Fprintf(&b, "	st.global.%s [%%rd3], %s;\n", c.dest, args[0])
	}
	return body(name, b.String())
}

const rows = 1024

// interesting are operands where mistakes show: limits, shifts around the width, floats
// of every kind, as words of 32 bits.
var interesting = []uint32{
	0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000,
	0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffffe, 0x55555555, 0xaaaaaaaa, 0x12345678, 0x80808080, 0x7f7f7f7f,
	math.Float32bits(1), math.Float32bits(-1), math.Float32bits(0.5), math.Float32bits(-2.5), math.Float32bits(1.5),
	math.Float32bits(2147483648), math.Float32bits(-2147483648), math.Float32bits(4294967296), math.Float32bits(127.5),
	math.Float32bits(math.MaxFloat32), 0x00800000, 0x807fffff, 0x00000001, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345,
	math.Float32bits(16777216), math.Float32bits(1.0000001), math.Float32bits(3e-39), 0x33800000,
}

func operandRows(rng *rand.Rand) []uint64 {
	all := make([]uint64, 4*rows)
	for i := range all {
		word := func() uint64 {
			if rng.IntN(4) == 0 {
				return uint64(rng.Uint32())
			}
			return uint64(interesting[rng.IntN(len(interesting))])
		}
		all[i] = word() | word()<<32
		if rng.IntN(4) == 0 { // a small one of 64 bits
			all[i] = uint64(int64(int8(all[i])))
		}
	}
	return all
}

func TestOpcodes(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	cases := opcodeCases()
	var ptx strings.Builder
	for i, c := range cases {
		ptx.WriteString(c.kernelOf(fmt.Sprintf("k%d", i)))
	}
	m := compile(t, ptx.String())
	masks := map[string]uint64{"b16": 1<<16 - 1, "b32": 1<<32 - 1, "f32": 1<<32 - 1, "b64": math.MaxUint64, "pred": 1}
	rng := rand.New(rand.NewPCG(7, 11))
	tested := make(map[string]bool)
	for i, c := range cases {
		tested[c.op] = true
		operands := operandRows(rng)
		var input []byte
		for k := range operands {
			if mask := masks[c.operands[min(1, len(c.operands)-1)]]; c.nonzero && k%4 == 1 && operands[k]&mask == 0 {
				operands[k] |= 1
			}
			input = binary.LittleEndian.AppendUint64(input, operands[k])
		}
		output, message := m.run(t, fmt.Sprintf("k%d", i), launch{blocks: rows / 128, threads: 128, output: 8 * rows}, input)
		require.Empty(t, message, c)
		for row := range rows {
			var a []uint64
			for k, o := range c.operands {
				if mask, ok := masks[o]; ok {
					a = append(a, operands[4*row+k]&mask)
				}
			}
			got := binary.LittleEndian.Uint64(output[8*row:])
			if want := c.want(a); got != want {
				t.Fatalf("%s of %#x: %#x, want %#x", c, a, got, want)
			}
		}
	}
	// What computes is tested here, what moves, waits or exchanges in other tests.
	for op := range forms {
		switch first, _, _ := strings.Cut(op, "."); first {
		case "ld", "st", "atom", "red", "cp", "bra", "ret", "bar", "membar", "griddepcontrol", "vote", "shfl", "redux", "ldmatrix", "mma", "cvta", "barrier", "fence", "wgmma":
		default:
			require.True(t, tested[op], "%s is not tested", op)
		}
	}
}

// Types of the operands, by the type of an opcode.
func registerOf(scalarName string) string {
	switch scalarName {
	case "pred", "f32":
		return scalarName
	case "u8", "s8", "b8":
		return "b16"
	}
	return "b" + scalarName[1:]
}

func signed(v uint64, n int) int64 { return int64(v<<(64-n)) >> (64 - n) }
func low(v uint64, n int) uint64   { return v << (64 - n) >> (64 - n) }

// value is a word as its type sees it.
func value(v uint64, typ string) *big.Int {
	n := scalars[typ].bits
	if typ[0] == 's' {
		return big.NewInt(signed(v, n))
	}
	return new(big.Int).SetUint64(low(v, n))
}

// word is a number in so many bits.
func word(v *big.Int, n int) uint64 {
	m := new(big.Int).And(v, new(big.Int).SetUint64(math.MaxUint64>>(64-n)))
	return m.Uint64()
}

func repeat(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func clamp(v *big.Int, typ string) *big.Int {
	n := uint(scalars[typ].bits)
	low, high := new(big.Int), new(big.Int).Lsh(big.NewInt(1), n)
	if typ[0] == 's' {
		low, high = new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), n-1)), new(big.Int).Lsh(big.NewInt(1), n-1)
	}
	high.Sub(high, big.NewInt(1))
	switch {
	case v.Cmp(low) < 0:
		return low
	case v.Cmp(high) > 0:
		return high
	}
	return v
}

var intTypes = []string{"u16", "s16", "u32", "s32", "u64", "s64"}

func opcodeCases() []opcodeCase {
	var all []opcodeCase
	add := func(c opcodeCase) { all = append(all, c) }
	all = append(all, integerCases()...)
	all = append(all, bitCases()...)
	all = append(all, floatCases()...)
	for _, typ := range []string{"b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64"} {
		r := registerOf(typ)
		add(opcodeCase{op: "mov." + typ, dest: r, operands: []string{r}, want: func(a []uint64) uint64 { return a[0] }})
		add(opcodeCase{op: "selp." + typ, dest: r, operands: []string{r, r, "pred"}, want: func(a []uint64) uint64 {
			if a[2] != 0 {
				return a[0]
			}
			return a[1]
		}})
	}
	add(opcodeCase{op: "mov.pred", dest: "pred", operands: []string{"pred"}, want: func(a []uint64) uint64 { return a[0] }})
	add(opcodeCase{op: "mov.pred", dest: "pred", operands: []string{"-1"}, want: func([]uint64) uint64 { return 1 }})
	add(opcodeCase{op: "mov.u32", dest: "b32", operands: []string{"-1640531535"}, want: func([]uint64) uint64 { return 2654435761 }})
	add(opcodeCase{op: "mov.f32", dest: "f32", operands: []string{"0fBF800000"}, want: func([]uint64) uint64 { return 0xbf800000 }})
	return all
}

func integerCases() []opcodeCase {
	var all []opcodeCase
	add := func(c opcodeCase) { all = append(all, c) }
	type of func(a, b *big.Int) *big.Int
	for _, typ := range intTypes {
		r, n := registerOf(typ), scalars[typ].bits
		binary := func(op string, f of) {
			add(opcodeCase{op: op + "." + typ, dest: r, operands: []string{r, r}, nonzero: op == "div" || op == "rem",
				want: func(a []uint64) uint64 { return word(f(value(a[0], typ), value(a[1], typ)), n) }})
		}
		binary("add", func(a, b *big.Int) *big.Int { return a.Add(a, b) })
		binary("sub", func(a, b *big.Int) *big.Int { return a.Sub(a, b) })
		binary("mul.lo", func(a, b *big.Int) *big.Int { return a.Mul(a, b) })
		binary("div", func(a, b *big.Int) *big.Int { return a.Quo(a, b) })
		binary("rem", func(a, b *big.Int) *big.Int { return a.Rem(a, b) })
		binary("min", func(a, b *big.Int) *big.Int {
			if a.Cmp(b) < 0 {
				return a
			}
			return b
		})
		binary("max", func(a, b *big.Int) *big.Int {
			if a.Cmp(b) > 0 {
				return a
			}
			return b
		})
		for name, holds := range map[string]func(int) bool{
			"eq": func(c int) bool { return c == 0 }, "ne": func(c int) bool { return c != 0 }, "lt": func(c int) bool { return c < 0 },
			"le": func(c int) bool { return c <= 0 }, "gt": func(c int) bool { return c > 0 }, "ge": func(c int) bool { return c >= 0 },
		} {
			add(opcodeCase{op: "setp." + name + "." + typ, dest: "pred", operands: []string{r, r}, want: func(a []uint64) uint64 {
				return truth(holds(value(a[0], typ).Cmp(value(a[1], typ))))
			}})
		}
		// Shifts clamp at the width.
		add(opcodeCase{op: "shr." + typ, dest: r, operands: []string{r, "b32"}, want: func(a []uint64) uint64 {
			return word(value(a[0], typ).Rsh(value(a[0], typ), uint(a[1])), n)
		}})
		if n <= 32 {
			product := func(op string, dest, shift int, f func(p, c *big.Int) *big.Int, sources int) {
				add(opcodeCase{op: op + "." + typ, dest: fmt.Sprintf("b%d", dest), operands: []string{r, r, fmt.Sprintf("b%d", dest)}[:sources],
					want: func(a []uint64) uint64 {
						p := value(a[0], typ)
						p.Mul(p, value(a[1], typ)).Rsh(p, uint(shift))
						if f != nil {
							f(p, new(big.Int).SetUint64(a[2]))
						}
						return word(p, dest)
					}})
			}
			sum := func(p, c *big.Int) *big.Int { return p.Add(p, c) }
			product("mul.hi", n, n, nil, 2)
			product("mul.wide", 2*n, 0, nil, 2)
			product("mad.lo", n, 0, sum, 3)
			product("mad.wide", 2*n, 0, sum, 3)
		}
		if typ[0] == 's' {
			add(opcodeCase{op: "neg." + typ, dest: r, operands: []string{r}, want: func(a []uint64) uint64 { return low(-a[0], n) }})
			add(opcodeCase{op: "abs." + typ, dest: r, operands: []string{r}, want: func(a []uint64) uint64 {
				return word(new(big.Int).Abs(value(a[0], typ)), n)
			}})
		}
	}
	for name, f := range map[string]of{
		"add.sat": func(a, b *big.Int) *big.Int { return a.Add(a, b) }, "sub.sat": func(a, b *big.Int) *big.Int { return a.Sub(a, b) },
	} {
		add(opcodeCase{op: name + ".s32", dest: "b32", operands: []string{"b32", "b32"}, want: func(a []uint64) uint64 {
			return word(clamp(f(value(a[0], "s32"), value(a[1], "s32")), "s32"), 32)
		}})
	}
	types := append([]string{"u8", "s8"}, intTypes...)
	for _, to := range types {
		for _, from := range types {
			r := registerOf(to)
			source := []string{registerOf(from)}
			filled := func(v *big.Int) uint64 { // the register is filled with zeros or the sign
				return word(value(word(v, scalars[to].bits), to), map[string]int{"b16": 16, "b32": 32, "b64": 64}[r])
			}
			add(opcodeCase{op: "cvt." + to + "." + from, dest: r, operands: source, want: func(a []uint64) uint64 {
				return filled(value(a[0], from))
			}})
			add(opcodeCase{op: "cvt.sat." + to + "." + from, dest: r, operands: source, want: func(a []uint64) uint64 {
				return filled(clamp(value(a[0], from), to))
			}})
		}
	}
	// Registers that are wider than the types.
	add(opcodeCase{op: "cvt.s32.s8", dest: "b64", operands: []string{"b32"}, want: func(a []uint64) uint64 { return uint64(int64(int8(a[0]))) }})
	return all
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func bitCases() []opcodeCase {
	var all []opcodeCase
	add := func(op, dest string, operands []string, want func(a []uint64) uint64) {
		all = append(all, opcodeCase{op: op, dest: dest, operands: operands, want: want})
	}
	for typ, n := range map[string]int{"b16": 16, "b32": 32, "b64": 64, "pred": 1} {
		add("and."+typ, typ, repeat(typ, 2), func(a []uint64) uint64 { return a[0] & a[1] })
		add("or."+typ, typ, repeat(typ, 2), func(a []uint64) uint64 { return a[0] | a[1] })
		add("xor."+typ, typ, repeat(typ, 2), func(a []uint64) uint64 { return a[0] ^ a[1] })
		add("not."+typ, typ, repeat(typ, 1), func(a []uint64) uint64 { return low(^a[0], n) })
		if typ == "pred" {
			continue
		}
		add("shl."+typ, typ, []string{typ, "b32"}, func(a []uint64) uint64 { return low(a[0]<<a[1], n) })
		add("shr."+typ, typ, []string{typ, "b32"}, func(a []uint64) uint64 { return a[0] >> a[1] })
		add("setp.eq."+typ, "pred", repeat(typ, 2), func(a []uint64) uint64 { return truth(a[0] == a[1]) })
		add("setp.ne."+typ, "pred", repeat(typ, 2), func(a []uint64) uint64 { return truth(a[0] != a[1]) })
	}
	add("popc.b32", "b32", repeat("b32", 1), func(a []uint64) uint64 { return uint64(bits.OnesCount64(a[0])) })
	add("clz.b32", "b32", repeat("b32", 1), func(a []uint64) uint64 { return uint64(bits.LeadingZeros32(uint32(a[0]))) })
	add("brev.b32", "b32", repeat("b32", 1), func(a []uint64) uint64 { return uint64(bits.Reverse32(uint32(a[0]))) })
	for mode, limit := range map[string]func(n uint64) uint64{
		"wrap": func(n uint64) uint64 { return n % 32 }, "clamp": func(n uint64) uint64 { return min(n, 32) },
	} {
		add("shf.l."+mode+".b32", "b32", repeat("b32", 3), func(a []uint64) uint64 { return low((a[1]<<32|a[0])<<limit(a[2])>>32, 32) })
		add("shf.r."+mode+".b32", "b32", repeat("b32", 3), func(a []uint64) uint64 { return low((a[1]<<32|a[0])>>limit(a[2]), 32) })
	}
	// Only the low eight bits of position and length count.
	for _, typ := range []string{"u32", "s32", "u64", "s64"} {
		n := scalars[typ].bits
		r := registerOf(typ)
		add("bfe."+typ, r, []string{r, "b32", "b32"}, func(a []uint64) uint64 {
			position, length := int(a[1]&255), int(a[2]&255)
			var d uint64
			for i := range n {
				at := position + i
				if i >= length || at >= n {
					if typ[0] == 'u' || length == 0 {
						continue
					}
					at = min(position+length-1, n-1)
				}
				d |= a[0] >> at & 1 << i
			}
			return d
		})
		if typ[0] == 'u' {
			add("bfi."+r, r, []string{r, r, "b32", "b32"}, func(a []uint64) uint64 {
				position, length := int(a[2]&255), int(a[3]&255)
				d := a[1]
				for i := range length {
					if at := position + i; at < n {
						d = d&^(1<<at) | a[0]>>i&1<<at
					}
				}
				return d
			})
		}
	}
	add("prmt.b32", "b32", repeat("b32", 3), func(a []uint64) uint64 {
		var d uint64
		for i := range 4 {
			s := a[2] >> (4 * i) & 15
			b := (a[1]<<32 | a[0]) >> (8 * (s & 7)) & 255
			if s&8 != 0 {
				b = uint64(uint8(int8(b) >> 7))
			}
			d |= b << (8 * i)
		}
		return d
	})
	for _, x := range []string{"u", "s"} {
		for _, y := range []string{"u", "s"} {
			if x == "s" && y == "u" {
				continue
			}
			add("dp4a."+x+"32."+y+"32", "b32", repeat("b32", 3), func(a []uint64) uint64 {
				sum := int64(a[2])
				for i := range 4 {
					sum += value(a[0]>>(8*i), x+"8").Int64() * value(a[1]>>(8*i), y+"8").Int64()
				}
				return low(uint64(sum), 32)
			})
		}
	}
	for table := range 256 {
		add("lop3.b32", "b32", []string{"b32", "b32", "b32", fmt.Sprint(table)}, func(a []uint64) uint64 {
			var d uint64
			for i := range 32 {
				d |= uint64(table) >> (a[0]>>i&1<<2 | a[1]>>i&1<<1 | a[2]>>i&1) & 1 << i
			}
			return d
		})
	}
	return all
}
