package main

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// perLane is a kernel that reads 16 words of its lane into %r20 …, and writes %r40 … .
func perLane(name, statements string) string {
	var b strings.Builder
	b.WriteString("	mul.wide.u32 %rd3, %r3, 64;\n	add.s64 %rd4, %rd1, %rd3;\n	add.s64 %rd5, %rd2, %rd3;\n")
	for i := range 16 {
		fmt.Fprintf(&b, "	ld.global.u32 %%r%d, [%%rd4+%d];\n	mov.u32 %%r%d, 0;\n", 20+i, 4*i, 40+i)
	}
	b.WriteString(statements)
	for i := range 16 {
		fmt.Fprintf(&b, "\n	st.global.u32 [%%rd5+%d], %%r%d;", 4*i, 40+i)
	}
	return body(name, b.String())
}

type lanes [32][16]uint32

func laneRows(rng *rand.Rand) (l lanes) {
	for i := range l {
		for k := range l[i] {
			l[i][k] = rng.Uint32()
		}
	}
	return l
}

func (l lanes) bytes() []byte {
	var b []byte
	for _, lane := range l {
		for _, word := range lane {
			b = binary.LittleEndian.AppendUint32(b, word)
		}
	}
	return b
}

// tensorCase is a shape of mma: an element of the result is the sum over the words
// of a row of one matrix and of a column of the other.
type tensorCase struct {
	op           string
	words        int // of the result, by lane
	wordsX       int
	wordsY       int
	rows, depth  int // depth in words
	multiplyWord func(x, y uint32) int32
}

func popcount(x uint32) int32 { return int32(bits.OnesCount32(x)) }

var tensorCases = []tensorCase{
	{"m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 2, 1, 1, 8, 4, func(x, y uint32) int32 { return popcount(x ^ y) }},
	{"m16n8k256.row.col.s32.b1.b1.s32.and.popc", 4, 4, 2, 16, 8, func(x, y uint32) int32 { return popcount(x & y) }},
	{"m16n8k256.row.col.s32.b1.b1.s32.xor.popc", 4, 4, 2, 16, 8, func(x, y uint32) int32 { return popcount(x ^ y) }},
	{"m16n8k32.row.col.s32.s8.s8.s32", 4, 4, 2, 16, 8, func(x, y uint32) int32 {
		var sum int32
		for i := range 4 {
			sum += int32(int8(x>>(8*i))) * int32(int8(y>>(8*i)))
		}
		return sum
	}},
	{"m16n8k32.row.col.s32.s8.u8.s32", 4, 4, 2, 16, 8, signedByUnsigned},
	{"m8n8k16.row.col.s32.s8.u8.s32", 2, 1, 1, 8, 4, signedByUnsigned},
	{"m16n8k32.row.col.s32.u8.s8.s32", 4, 4, 2, 16, 8, func(x, y uint32) int32 { return signedByUnsigned(y, x) }},
	{"m8n8k16.row.col.s32.u8.s8.s32", 2, 1, 1, 8, 4, func(x, y uint32) int32 { return signedByUnsigned(y, x) }},
}

func signedByUnsigned(x, y uint32) (sum int32) {
	for i := range 4 {
		sum += int32(int8(x>>(8*i))) * int32(uint8(y>>(8*i)))
	}
	return sum
}

func list(first, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%%r%d", first+i))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// result multiplies matrices of which the lanes hold the words that the PTX ISA says:
// the word i of lane l is that of row l/4 + 8·(i mod 2), and l mod 4 + 4·(i/2) in depth.
func (c tensorCase) result(in lanes) (out lanes) {
	x, y := make(map[[2]int]uint32), make(map[[2]int]uint32)
	for l := range 32 {
		for i := range c.wordsX {
			x[[2]int{l/4 + 8*(i%2), l%4 + 4*(i/2)}] = in[l][i]
		}
		for i := range c.wordsY {
			y[[2]int{l / 4, l%4 + 4*i}] = in[l][4+i]
		}
	}
	for l := range 32 {
		for i := range c.words {
			row, column := l/4+8*(i/2), 2*(l%4)+i%2
			sum := int32(in[l][8+i])
			for k := range c.depth {
				sum += c.multiplyWord(x[[2]int{row, k}], y[[2]int{column, k}])
			}
			out[l][i] = uint32(sum)
		}
	}
	return out
}

func TestWarps(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	var ptx strings.Builder
	for i, c := range tensorCases {
		ptx.WriteString(perLane(fmt.Sprintf("mma%d", i), fmt.Sprintf("mma.sync.aligned.%s %s, %s, %s, %s;", c.op, list(40, c.words),
			list(20, c.wordsX), list(24, c.wordsY), list(28, c.words))))
	}
	const everyone, third = 1<<32 - 1, 0x49249249
	// Operand c of shfl is the bound and, eight bits higher, the mask of the segment.
	shuffles := []struct {
		mode string
		b, c int
		from func(lane, b int) int
	}{
		{"up", 3, 0x1800, func(l, b int) int { return l - b }},
		{"down", 5, 0x181f, func(l, b int) int { return l + b }},
		{"bfly", 9, 0x1f, func(l, b int) int { return l ^ b }},
		{"bfly", 17, 0x100f, func(l, b int) int { return l ^ b }},
		{"idx", 37, 0x101f, func(l, b int) int { return l&16 | b&15 }},
		{"idx", 7, 0x1f, func(_, b int) int { return b }},
	}
	for i, s := range shuffles {
		ptx.WriteString(perLane(fmt.Sprintf("shfl%d", i), fmt.Sprintf("shfl.sync.%s.b32 %%r40, %%r20, %d, %d, -1;", s.mode, s.b, s.c)))
	}
	ptx.WriteString(perLane("votes", `	and.b32 %r4, %r20, 3;
	setp.ne.b32 %p1, %r4, 0;
	vote.sync.ballot.b32 %r40, %p1, -1;
	vote.sync.any.pred %p2, %p1, -1;
	selp.u32 %r41, 1, 0, %p2;
	vote.sync.all.pred %p2, %p1, -1;
	selp.u32 %r42, 1, 0, %p2;
	rem.u32 %r4, %r1, 3;
	setp.ne.b32 %p2, %r4, 0;
	@%p2 bra $others;
	vote.sync.ballot.b32 %r43, %p1, 0x49249249;
	bra.uni $end;
$others:
	vote.sync.ballot.b32 %r43, %p1, 0xb6db6db6;
$end:
	bar.warp.sync -1;`))
	reductions := []struct {
		op string
		f  func(a, b uint32) uint32
	}{
		{"add.u32", func(a, b uint32) uint32 { return a + b }},
		{"add.s32", func(a, b uint32) uint32 { return a + b }},
		{"min.u32", func(a, b uint32) uint32 { return min(a, b) }},
		{"min.s32", func(a, b uint32) uint32 { return uint32(min(int32(a), int32(b))) }},
		{"max.u32", func(a, b uint32) uint32 { return max(a, b) }},
		{"max.s32", func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) }},
		{"and.b32", func(a, b uint32) uint32 { return a & b }},
		{"or.b32", func(a, b uint32) uint32 { return a | b }},
		{"xor.b32", func(a, b uint32) uint32 { return a ^ b }},
	}
	var redux strings.Builder
	for i, r := range reductions {
		fmt.Fprintf(&redux, "	redux.sync.%s %%r%d, %%r20, -1;\n", r.op, 40+i)
	}
	redux.WriteString("	rem.u32 %r4, %r1, 3;\n	setp.ne.b32 %p2, %r4, 0;\n	@%p2 bra $end;\n	redux.sync.add.s32 %r49, %r20, 0x49249249;\n$end:")
	ptx.WriteString(perLane("redux", redux.String()))
	// Rows of shared memory in an order that is not that of the lanes.
	ptx.WriteString(perLane("ldmatrix", `	mov.u64 %rd6, own;
	xor.b32 %r4, %r1, 5;
	mul.wide.u32 %rd7, %r4, 16;
	add.s64 %rd6, %rd6, %rd7;
	st.shared.v4.u32 [%rd6], {%r20, %r21, %r22, %r23};
	bar.sync 0;
	cvt.u32.u64 %r5, %rd6;
	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r40,%r41,%r42,%r43}, [%r5];`))
	m := compile(t, ptx.String())
	rng := rand.New(rand.NewPCG(1, 2))
	for _, order := range []string{"forward", "reverse", "random:3"} {
		in := laneRows(rng)
		check := func(kernel string, want func(lane int) []uint32) {
			t.Helper()
			output, message := m.run(t, kernel, launch{output: len(in.bytes()), order: order}, in.bytes())
			require.Empty(t, message, kernel)
			for l := range 32 {
				var got []uint32
				w := want(l)
				for i := range w {
					got = append(got, binary.LittleEndian.Uint32(output[64*l+4*i:]))
				}
				require.Equal(t, w, got, "%s, lane %d", kernel, l)
			}
		}
		for i, c := range tensorCases {
			want := c.result(in)
			check(fmt.Sprintf("mma%d", i), func(l int) []uint32 { return want[l][:c.words] })
		}
		for i, s := range shuffles {
			check(fmt.Sprintf("shfl%d", i), func(l int) []uint32 {
				from := s.from(l, s.b)
				// Beyond the bound of the segment a lane gets its own value.
				if s.mode == "up" && from < l&^7 || s.mode == "down" && from > l|7 || s.mode == "bfly" && s.c == 0x100f && from > l|15 {
					from = l
				}
				return []uint32{in[from][0]}
			})
		}
		ballot := func(mask uint32) (b uint32) {
			for l := range 32 {
				if mask>>l&1 != 0 && in[l][0]&3 != 0 {
					b |= 1 << l
				}
			}
			return b
		}
		check("votes", func(l int) []uint32 {
			mine := uint32(third)
			if l%3 != 0 {
				mine = ^mine
			}
			all := ballot(everyone)
			return []uint32{all, uint32(truth(all != 0)), uint32(truth(all == everyone)), ballot(mine)}
		})
		check("redux", func(l int) []uint32 {
			var want []uint32
			for _, r := range reductions {
				v := in[0][0]
				for k := 1; k < 32; k++ {
					v = r.f(v, in[k][0])
				}
				want = append(want, v)
			}
			var some uint32
			for k := 0; k < 32; k += 3 {
				some += in[k][0]
			}
			if l%3 != 0 {
				some = 0
			}
			return append(want, some)
		})
		check("ldmatrix", func(l int) []uint32 {
			var want []uint32
			for matrix := range 4 {
				row := 8*matrix + l/4 // the address of that lane
				want = append(want, in[row][l%4])
			}
			return want
		})
	}
}
