package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// barrier is the barrier of the grid of kernels/cu/cuda_min.h, on the word at [%rd1]; a
// thread leaves the loop when condition holds of the change of that word, %r12.
func barrier(label, condition string) string {
	return fmt.Sprintf(`	bar.sync 0;
	setp.ne.s32 %%p1, %%r1, 0;
	@%%p1 bra $done%[1]s;
	mov.u32 %%r4, %%nctaid.x;
	sub.s32 %%r5, -2147483647, %%r4;
	setp.eq.s32 %%p2, %%r2, 0;
	selp.b32 %%r6, %%r5, 1, %%p2;
	atom.acq_rel.gpu.global.add.u32 %%r10, [%%rd1], %%r6;
$wait%[1]s:
	ld.acquire.gpu.global.u32 %%r11, [%%rd1];
	xor.b32 %%r12, %%r11, %%r10;
	%[2]s;
	@%%p3 bra $wait%[1]s;
$done%[1]s:
	bar.sync 0;
`, label, condition)
}

const signBit = "setp.gt.s32 %p3, %r12, -1"

// exchangeBlocks writes a word by thread and reads, behind a barrier, that of the next
// block, twice.
func exchangeBlocks(name, condition string) string {
	part := func(n int) string {
		return fmt.Sprintf(`	mul.wide.u32 %%rd3, %%r3, 4;
	add.s64 %%rd4, %%rd1, %%rd3;
	add.s32 %%r20, %%r3, %d;
	st.global.u32 [%%rd4+256], %%r20;
%s	mov.u32 %%r4, %%nctaid.x;
	mov.u32 %%r5, %%ntid.x;
	mul.lo.s32 %%r4, %%r4, %%r5;
	add.s32 %%r6, %%r3, %%r5;
	rem.s32 %%r6, %%r6, %%r4;
	mul.wide.u32 %%rd5, %%r6, 4;
	add.s64 %%rd5, %%rd1, %%rd5;
	ld.global.u32 %%r21, [%%rd5+256];
	add.s64 %%rd6, %%rd2, %%rd3;
	st.global.u32 [%%rd6+%d], %%r21;
%s`, 1000*(n+1), barrier(fmt.Sprintf("A%d", n), condition), 2048*n, barrier(fmt.Sprintf("B%d", n), condition))
	}
	return body(name, part(0)+part(1))
}

// fault is a kernel that must fail, or, with no message, must not.
type fault struct {
	name, statements, want string
	launch                 launch
}

func faults() []fault {
	var all []fault
	add := func(name, want string, statements ...string) {
		all = append(all, fault{name: name, want: want, statements: strings.Join(statements, "\n")})
	}
	offset := func(n int) string { return fmt.Sprintf("	add.s64 %%rd3, %%rd1, %d;", n) }
	for _, width := range []int{2, 4, 8} {
		typ := fmt.Sprintf("u%d", 8*width)
		register := "%" + map[int]string{2: "rs", 4: "r", 8: "rd"}[width] + "9"
		for n := 1; n < width; n++ {
			add(fmt.Sprintf("load%d_%d", width, n), fmt.Sprintf("is not a multiple of %d", width), offset(n), "	ld.global."+typ+" "+register+", [%rd3];")
		}
		add(fmt.Sprintf("load%d", width), "", offset(width), "	ld.global."+typ+" "+register+", [%rd3];")
		add(fmt.Sprintf("store%d", width), fmt.Sprintf("is not a multiple of %d", width), offset(width/2), "	st.global."+typ+" [%rd3], "+register+";")
		add(fmt.Sprintf("generic%d", width), fmt.Sprintf("is not a multiple of %d", width), offset(width/2), "	st."+typ+" [%rd3], "+register+";")
		add(fmt.Sprintf("own%d", width), fmt.Sprintf("is not a multiple of %d", width), fmt.Sprintf("	st.shared.%s [own+%d], %s;", typ, width/2, register))
		add(fmt.Sprintf("parameter%d", width), fmt.Sprintf("is not a multiple of %d", width), "	mov.b64 %rd4, faults_param_0;", fmt.Sprintf("	ld.param.%s %s, [%%rd4+%d];", typ, register, width/2))
	}
	add("vector8", "is not a multiple of 8", offset(4), "	ld.global.v2.u32 {%r4, %r5}, [%rd3];")
	add("vector16", "is not a multiple of 16", offset(8), "	ld.global.v4.f32 {%f4, %f5, %f6, %f7}, [%rd3];")
	add("store16", "is not a multiple of 16", offset(8), "	st.global.v4.u32 [%rd3], {%r4, %r5, %r6, %r7};")
	add("constant16", "is not a multiple of 16", offset(8), "	ld.global.nc.v4.u32 {%r4, %r5, %r6, %r7}, [%rd3];")
	add("atomic", "is not a multiple of 4", offset(2), "	atom.global.add.u32 %r4, [%rd3], 1;")
	add("atomic64", "is not a multiple of 8", offset(4), "	atom.global.add.u64 %rd4, [%rd3], 1;")
	add("reduction", "is not a multiple of 4", offset(2), "	red.global.add.u32 [%rd3], 1;")
	add("release", "is not a multiple of 4", offset(2), "	atom.acq_rel.gpu.global.add.u32 %r4, [%rd3], 1;")
	add("acquire", "is not a multiple of 4", offset(2), "	ld.acquire.gpu.global.u32 %r4, [%rd3];")
	add("copy_from", "is not a multiple of 16", offset(8), "	mov.u64 %rd4, own;", "	cvt.u32.u64 %r4, %rd4;", "	mov.u32 %r5, 16;",
		"	cp.async.cg.shared.global [%r4], [%rd3], 16, %r5;")
	add("copy_to", "is not a multiple of 8", "	mov.u64 %rd4, own;", "	cvt.u32.u64 %r4, %rd4;", "	mov.u32 %r5, 8;",
		"	cp.async.ca.shared.global [%r4+4], [%rd1], 8, %r5;")
	add("copy_size", "cp.async of 17 bytes of 16", "	mov.u64 %rd4, own;", "	cvt.u32.u64 %r4, %rd4;", "	mov.u32 %r5, 17;",
		"	cp.async.cg.shared.global [%r4], [%rd1], 16, %r5;")
	add("ldmatrix", "is not a multiple of 16", "	mov.u64 %rd4, own;", "	cvt.u32.u64 %r4, %rd4;",
		"	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5,%r6,%r7,%r8}, [%r4+8];")

	add("beyond_dynamic", "4 bytes at 704 are outside of the 704 bytes", "	mov.u64 %rd4, dynamic;", "	ld.shared.u32 %r4, [%rd4+128];")
	add("end_of_dynamic", "", "	mov.u64 %rd4, dynamic;", "	ld.shared.u32 %r4, [%rd4+124];")
	add("wide_at_end", "16 bytes at 704 are outside", "	mov.u64 %rd4, dynamic;", "	ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%rd4+128];")
	add("before_own", "are outside", "	mov.u64 %rd4, own;", "	ld.shared.u32 %r4, [%rd4+-4];")
	add("shared_by_zero", "are outside", "	mov.u64 %rd4, 0;", "	ld.shared.u32 %r4, [%rd4];")
	add("pointer_as_shared", "are outside", "	ld.shared.u32 %r4, [%rd1];")
	add("shared_as_pointer", "illegal address", "	mov.u64 %rd4, own;", "	st.u32 [%rd4], %r1;")
	add("beyond_parameters", "8 bytes at 24 are outside of the 24 bytes", "	mov.b64 %rd4, faults_param_0;", "	ld.param.u64 %rd5, [%rd4+24];")
	add("division", "division by zero", "	mov.u32 %r4, 0;", "	div.s32 %r5, %r1, %r4;")
	add("remainder", "division by zero", "	mov.u32 %r4, 0;", "	rem.u32 %r5, %r1, %r4;")

	some := "	setp.lt.u32 %p1, %r1, 7;\n	@%p1 bra $L;"
	add("lanes_that_end", "without the lanes 0x7f", "	setp.lt.u32 %p1, %r1, 7;", "	@%p1 ret;", "	vote.sync.ballot.b32 %r4, %p1, -1;")
	add("lanes_that_are_known_to_end", "", "	setp.lt.u32 %p1, %r1, 7;", "	@%p1 ret;", "	vote.sync.ballot.b32 %r4, %p1, -128;")
	add("lane_out_of_mask", "by lane 0, which is not in its mask", "	vote.sync.ballot.b32 %r4, %p1, -2;")
	add("lanes_at_two_places", "divergent barrier", some, "	vote.sync.ballot.b32 %r4, %p1, -1;", "	ret;", "$L:", "	vote.sync.ballot.b32 %r4, %p1, -1;")
	add("two_masks", "divergent barrier", "	setp.lt.u32 %p1, %r1, 7;", "	selp.b32 %r4, -1, 127, %p1;", "	or.b32 %r4, %r4, -128;",
		"	selp.b32 %r5, %r4, 2147483647, %p1;", "	setp.ne.u32 %p2, %r1, 31;", "	@%p2 vote.sync.ballot.b32 %r6, %p1, %r5;")
	add("shuffle_from_outside", "shfl of lane 7, which is not in its mask 0x7f", some, "	ret;", "$L:", "	shfl.sync.idx.b32 %r4, %r1, 7, 31, 127;")
	add("shuffle_without_lanes", "without the lanes 0x7f", "	setp.lt.u32 %p1, %r1, 7;", "	@%p1 ret;", "	shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;")
	add("reduction_without_lanes", "without the lanes 0x7f", "	setp.lt.u32 %p1, %r1, 7;", "	@%p1 ret;", "	redux.sync.add.s32 %r4, %r1, -1;")
	add("warp_without_lanes", "without the lanes 0x7f", "	setp.lt.u32 %p1, %r1, 7;", "	@%p1 ret;", "	bar.warp.sync -1;")
	add("tensor_core_without_lanes", "without the lanes 0x7f", "	setp.lt.u32 %p1, %r1, 7;", "	@%p1 ret;",
		"	mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%r4,%r5}, {%r6}, {%r7}, {%r4,%r5};")
	add("matrix_without_lanes", "without the lanes 0x7f", "	setp.lt.u32 %p1, %r1, 7;", "	@%p1 ret;", "	mov.u64 %rd4, own;", "	cvt.u32.u64 %r4, %rd4;",
		"	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5,%r6,%r7,%r8}, [%r4];")
	add("block_without_threads", "divergent barrier", "	setp.lt.u32 %p1, %r1, 7;", "	@%p1 ret;", "	bar.sync 0;")
	add("barriers_at_two_places", "divergent barrier", some, "	bar.sync 0;", "	ret;", "$L:", "	bar.sync 0;")
	add("poll", "divergent barrier: waits for ever", "$L:", "	ld.acquire.gpu.global.u32 %r4, [%rd1];", "	setp.ne.s32 %p1, %r4, 12345;", "	@%p1 bra $L;")
	add("poll_volatile", "divergent barrier: waits for ever", "$L:", "	ld.volatile.global.u32 %r4, [%rd1];", "	setp.ne.s32 %p1, %r4, 12345;", "	@%p1 bra $L;")
	for i := range all {
		all[i].launch = launch{dynamic: 128, output: 64}
	}
	all = append(all,
		fault{"half_a_warp", "	vote.sync.ballot.b32 %r4, %p1, -1;", "without the lanes 0xffff0000", launch{threads: 48, output: 64}},
		fault{"no_dynamic_memory", "	ld.shared.u32 %r4, [dynamic];", "4 bytes at 576 are outside of the 576 bytes", launch{output: 64}})
	return all
}

func TestFaults(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	var ptx strings.Builder
	for i, f := range faults() {
		ptx.WriteString(strings.ReplaceAll(body(fmt.Sprintf("fault%d", i), f.statements), "faults_param", fmt.Sprintf("fault%d_param", i)))
	}
	m := compile(t, ptx.String())
	for i, f := range faults() {
		for _, order := range []string{"forward", "reverse", "random:2"} {
			f.launch.order = order
			_, message := m.run(t, fmt.Sprintf("fault%d", i), f.launch, make([]byte, 1024))
			if f.want == "" {
				require.Empty(t, message, f.name)
			} else {
				require.Contains(t, message, f.want, "%s, %s", f.name, order)
			}
		}
	}
}

// TestGridBarrier: blocks meet at the barrier as a GPU has it; one that does not wait
// gives wrong words, one that waits for another bit never ends.
func TestGridBarrier(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := compile(t, exchangeBlocks("right", signBit)+exchangeBlocks("open", "setp.gt.s32 %p3, 0, 0")+
		exchangeBlocks("wrong_bit", "and.b32 %r12, %r12, 1073741824;\n	setp.eq.s32 %p3, %r12, 0"))
	const blocks, threads = 5, 64
	l := launch{blocks: blocks, threads: threads, cooperative: true, output: 4096}
	exchanged := func(output []byte) bool {
		for round := range 2 {
			for i := range blocks * threads {
				want := uint32((i+threads)%(blocks*threads) + 1000*(round+1))
				if binary.LittleEndian.Uint32(output[2048*round+4*i:]) != want {
					return false
				}
			}
		}
		return true
	}
	for _, order := range []string{"forward", "reverse", "random:1", "random:2"} {
		l.order = order
		output, message := m.run(t, "right", l, make([]byte, 4096))
		require.Empty(t, message)
		require.True(t, exchanged(output), order)
		output, message = m.run(t, "open", l, make([]byte, 4096))
		require.Empty(t, message)
		require.False(t, exchanged(output), order)
		_, message = m.run(t, "wrong_bit", l, make([]byte, 4096))
		require.Contains(t, message, "waits for ever", order)
		// Where blocks are not there at once, the first waits for the others for ever.
		alone := l
		alone.cooperative = false
		_, message = m.run(t, "right", alone, make([]byte, 4096))
		require.Contains(t, message, "waits for ever", order)
	}
}

// TestMemory moves words through all spaces and widths.
func TestMemory(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	ptx := perLane("widths", `	ld.global.u8 %rs1, [%rd4+3];
	cvt.u32.u16 %r40, %rs1;
	ld.global.s8 %r41, [%rd4+3];
	ld.global.s16 %r42, [%rd4+6];
	ld.global.u16 %r43, [%rd4+6];
	ld.global.s32 %rd6, [%rd4+4];
	shr.s64 %rd7, %rd6, 32;
	cvt.u32.u64 %r44, %rd7;
	ld.global.v2.u64 {%rd6, %rd7}, [%rd4+16];
	cvt.u32.u64 %r45, %rd7;
	st.global.u8 [%rd5+24], %r20;
	ld.global.u32 %r46, [%rd5+24];
	mul.wide.u32 %rd6, %r1, 16;
	mov.u64 %rd7, dynamic;
	add.s64 %rd7, %rd7, %rd6;
	st.shared.v4.u32 [%rd7], {%r20, %r21, %r22, %r23};
	bar.sync 0;
	ld.shared.v2.u32 {%r47, %r48}, [%rd7+8];
	mov.b64 %rd6, widths_param_1;
	ld.param.u64 %rd7, [%rd6];
	cvta.to.global.u64 %rd7, %rd7;
	cvta.global.u64 %rd7, %rd7;
	sub.s64 %rd7, %rd7, %rd2;
	cvt.u32.u64 %r49, %rd7;`) +
		perLane("copies", `	mul.wide.u32 %rd6, %r1, 16;
	mov.u64 %rd7, own;
	add.s64 %rd7, %rd7, %rd6;
	st.shared.v4.u32 [%rd7], {%r40, %r40, %r40, %r40};
	cvt.u32.u64 %r4, %rd7;
	rem.u32 %r5, %r1, 17;
	cp.async.cg.shared.global [%r4], [%rd4+16], 16, %r5;
	cp.async.commit_group;
	ld.shared.u32 %r44, [%rd7];
	mov.u32 %r6, 4;
	cp.async.ca.shared.global [%r4+12], [%rd4], 4, %r6;
	cp.async.commit_group;
	cp.async.wait_group 1;
	ld.shared.v4.u32 {%r40, %r41, %r42, %r43}, [%rd7];
	cp.async.wait_group 0;
	ld.shared.u32 %r45, [%rd7+12];`)
	operations := []struct {
		op string
		f  func(old, v uint32) uint32
	}{
		{"add.u32", func(old, v uint32) uint32 { return old + v }}, {"add.s32", func(old, v uint32) uint32 { return old + v }},
		{"min.u32", func(old, v uint32) uint32 { return min(old, v) }}, {"max.u32", func(old, v uint32) uint32 { return max(old, v) }},
		{"min.s32", func(old, v uint32) uint32 { return uint32(min(int32(old), int32(v))) }},
		{"max.s32", func(old, v uint32) uint32 { return uint32(max(int32(old), int32(v))) }},
		{"and.b32", func(old, v uint32) uint32 { return old & v }}, {"or.b32", func(old, v uint32) uint32 { return old | v }},
		{"xor.b32", func(old, v uint32) uint32 { return old ^ v }},
		{"exch.b32", func(_, v uint32) uint32 { return v }},
	}
	var atomics strings.Builder
	for i, o := range operations {
		fmt.Fprintf(&atomics, "	st.global.u32 [%%rd5], %%r20;\n	atom.global.%s %%r4, [%%rd5], %%r21;\n	ld.global.u32 %%r5, [%%rd5];\n	add.s32 %%r%d, %%r4, %%r5;\n", o.op, 40+i)
		if o.op == "exch.b32" {
			continue
		}
		fmt.Fprintf(&atomics, "	st.global.u32 [%%rd5], %%r20;\n	red.%s [%%rd5], %%r21;\n	ld.global.u32 %%r5, [%%rd5];\n	add.s32 %%r%d, %%r%[2]d, %%r5;\n", o.op, 40+i)
	}
	atomics.WriteString(`	st.shared.u32 [own], 7;
	bar.sync 0;
	atom.shared.add.u32 %r4, [own], 3;
	bar.sync 0;
	ld.shared.u32 %r50, [own];
	and.b32 %r4, %r20, 1;
	st.global.u32 [%rd5], %r4;
	atom.cas.b32 %r51, [%rd5], 1, 99;
	ld.global.u32 %r52, [%rd5];
	cvt.u64.u32 %rd6, %r21;
	shl.b64 %rd6, %rd6, 32;
	cvt.u64.u32 %rd7, %r20;
	or.b64 %rd6, %rd6, %rd7;
	st.global.u64 [%rd5], %rd6;
	atom.global.add.u64 %rd7, [%rd5], %rd6;
	red.global.add.u64 [%rd5], %rd6;
	atom.exch.b64 %rd6, [%rd5], %rd7;
	add.s64 %rd7, %rd7, %rd6;
	cvt.u32.u64 %r53, %rd7;
	shr.u64 %rd7, %rd7, 32;
	cvt.u32.u64 %r54, %rd7;`)
	m := compile(t, ptx+perLane("atomics", atomics.String()))
	in := laneRows(rand.New(rand.NewPCG(5, 6)))
	words := func(kernel string) func(lane, i int) uint32 {
		output, message := m.run(t, kernel, launch{dynamic: 512, output: len(in.bytes())}, in.bytes())
		require.Empty(t, message)
		return func(lane, i int) uint32 { return binary.LittleEndian.Uint32(output[64*lane+4*i:]) }
	}
	got := words("widths")
	for l := range 32 {
		w := in[l]
		for i, want := range []uint32{w[0] >> 24, uint32(int32(w[0]) >> 24), uint32(int32(w[1]) >> 16), w[1] >> 16,
			uint32(int32(w[1]) >> 31), w[6], w[0] & 255, w[2], w[3], 0} {
			require.Equal(t, want, got(l, i), "widths, lane %d, word %d", l, i)
		}
	}
	got = words("copies")
	for l := range 32 {
		var source []byte
		for _, w := range in[l][4:8] {
			source = binary.LittleEndian.AppendUint32(source, w)
		}
		copied := make([]byte, 16)
		copy(copied, source[:l%17])
		for i := range 4 {
			require.Equal(t, binary.LittleEndian.Uint32(copied[4*i:]), got(l, i), "copies, lane %d, word %d", l, i)
		}
		require.Zero(t, got(l, 4), "a copy came before it was waited for")
		require.Equal(t, in[l][0], got(l, 5))
	}
	got = words("atomics")
	for l := range 32 {
		for i, o := range operations {
			old, v := in[l][0], in[l][1]
			want := old + o.f(old, v)
			if o.op != "exch.b32" {
				want += o.f(old, v)
			}
			require.Equal(t, want, got(l, i), "%s, lane %d", o.op, l)
		}
		require.EqualValues(t, 7+32*3, got(l, 10))
		bit := in[l][0] & 1
		require.Equal(t, bit, got(l, 11))
		require.Equal(t, bit*99, got(l, 12))
		w := uint64(in[l][1])<<32 | uint64(in[l][0])
		require.Equal(t, 4*w, uint64(got(l, 14))<<32|uint64(got(l, 13)), "64 bits, lane %d", l)
	}
}
