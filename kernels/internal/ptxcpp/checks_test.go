package main

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// check is a kernel that the checks of accesses must find wrong, or, with no message, right.
type check struct {
	name, statements, want string
	blocks, threads        int
}

// ownAt puts the address of the thread's word of the array own, with some bits of its number
// flipped, into %rd3.
func ownAt(flip string) string {
	return "	xor.b32 %r4, %r1, " + flip + ";\n	mul.wide.u32 %rd3, %r4, 4;\n	mov.u64 %rd4, own;\n	add.s64 %rd3, %rd4, %rd3;\n"
}

func checks() []check {
	const (
		fill     = "	st.shared.u32 [%rd3], %r1;\n"
		read     = "	ld.shared.u32 %r5, [%rd3];\n"
		byThread = "	mul.wide.u32 %rd3, %r1, 4;\n	add.s64 %rd3, %rd2, %rd3;\n	st.global.u32 [%rd3], %r1;\n"
	)
	// Blocks leave a word each; the one that takes the last ticket reads them all.
	tickets := func(fence string) string {
		return `	mul.wide.u32 %rd3, %r2, 4;
	add.s64 %rd3, %rd2, %rd3;
	add.s32 %r4, %r2, 1;
	setp.ne.u32 %p1, %r1, 5;
	@%p1 bra $L;
	st.global.u32 [%rd3+64], %r4;
$L:
	bar.sync 0;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra $M;
` + fence + `	atom.global.add.u32 %r5, [%rd2], 1;
	st.shared.u32 [own], %r5;
$M:
	bar.sync 0;
	ld.shared.u32 %r5, [own];
	setp.ne.u32 %p1, %r5, 3;
	setp.ne.u32 %p2, %r1, 9;
	or.pred %p1, %p1, %p2;
	@%p1 ret;
	ld.global.u32 %r6, [%rd2+64];
	ld.global.u32 %r7, [%rd2+68];
	ld.global.u32 %r8, [%rd2+72];
	ld.global.u32 %r9, [%rd2+76];
	add.s32 %r6, %r6, %r7;
	add.s32 %r8, %r8, %r9;
	add.s32 %r6, %r6, %r8;
	st.global.u32 [%rd2+80], %r6;`
	}
	const race = "a race of"
	written := ownAt("0") + fill + "	bar.sync 0;\n"
	return []check{
		{"neighbour", written + ownAt("0") + fill + ownAt("1") + read, race, 1, 64},
		{"neighbour_behind_barrier_of_warp", ownAt("0") + fill + "	bar.warp.sync -1;\n" + ownAt("1") + read, "", 1, 64},
		{"other_warp_behind_barrier_of_warp", written + ownAt("0") + fill + "	bar.warp.sync -1;\n" + ownAt("32") + read, race, 1, 64},
		{"other_warp_behind_barrier", ownAt("0") + fill + "	bar.sync 0;\n" + ownAt("32") + read, "", 1, 64},
		{"next_round", ownAt("0") + fill + "	bar.sync 0;\n" + ownAt("63") + read + ownAt("0") + fill, race, 1, 64},
		{"two_blocks", byThread, race, 2, 64},
		{"one_block", byThread, "", 1, 64},
		{"atomics", "	atom.global.add.u32 %r4, [%rd2], 1;\n	red.global.add.u32 [%rd2], 1;", "", 2, 64},
		{"atomic_and_store", "	atom.global.add.u32 %r4, [%rd2], 1;\n	st.global.u32 [%rd2], %r1;", race, 1, 64},
		{"never_written", ownAt("0") + read, "never written", 1, 64},
		{"never_written_half", ownAt("0") + "	st.shared.u16 [%rd3], %rs1;\n" + read, "never written", 1, 32},
		{"written_halves", ownAt("0") + "	st.shared.u16 [%rd3], %rs1;\n	st.shared.u16 [%rd3+2], %rs1;\n" + read, "", 1, 32},
		{"behind_array", ownAt("0") + "	st.shared.u32 [%rd3+512], %r1;\n", "are in no array", 1, 1},
		{"behind_allocation", "	ld.global.u32 %r4, [%rd1+4096];", "4 bytes at 4096 of an allocation of 4096", 1, 32},
		{"over_the_end", "	ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd2+4080];\n	ld.global.v2.u32 {%r4, %r5}, [%rd2+4096];", "8 bytes at 4096 of an allocation", 1, 32},
		{"copy_from_behind", "	mov.u64 %rd4, own;\n	cvt.u32.u64 %r4, %rd4;\n	mov.u32 %r5, 4;\n	cp.async.ca.shared.global [%r4], [%rd1+4096], 4, %r5;\n	cp.async.commit_group;", "of an allocation of 4096", 1, 1},
		{"tickets", tickets("	membar.gl;\n"), "", 4, 32},
		{"tickets_without_fence", tickets(""), race, 4, 32},
		{"tickets_with_fence_of_block", tickets("	membar.cta;\n"), race, 4, 32},
	}
}

// TestChecks: wrong accesses and races are found, and nothing else is.
func TestChecks(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	text := exchangeBlocks("grid_barrier", signBit) + exchangeBlocks("open_grid_barrier", "setp.gt.s32 %p3, 0, 0")
	for _, c := range checks() {
		text += body(c.name, c.statements)
	}
	m := compileHead(t, head, text, "-DEMULATION_CHECKED")
	for _, order := range []string{"forward", "reverse", "random:1", "random:2"} {
		for _, c := range checks() {
			output, message := m.run(t, c.name, launch{blocks: c.blocks, threads: c.threads, output: 4096, order: order}, make([]byte, 4096))
			if c.want != "" {
				require.Contains(t, message, c.want, "%s, %s", c.name, order)
				continue
			}
			require.Empty(t, message, "%s, %s", c.name, order)
			if c.name == "tickets" {
				require.EqualValues(t, 1+2+3+4, binary.LittleEndian.Uint32(output[80:]))
			}
		}
		l := launch{blocks: 5, threads: 64, cooperative: true, output: 4096, order: order}
		_, message := m.run(t, "grid_barrier", l, make([]byte, 4096))
		require.Empty(t, message)
		_, message = m.run(t, "open_grid_barrier", l, make([]byte, 4096))
		require.Contains(t, message, "a race of", order)
	}
}
