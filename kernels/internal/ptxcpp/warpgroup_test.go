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

// A matrix of 64 rows of 256 bits and one of 128 columns, as their halves lie behind each
// other in shared memory.
const wgmmaRows, wgmmaColumns, wgmmaWords = 64, 128, (64 + 128) * 8

// Products of bits, and of bytes.
const wgmmaBits, wgmmaBytes = "m64n128k256.s32.b1.b1.and.popc", "m64n128k32.s32.u8.s8"

// wgmmaKernel multiplies two matrices, which it copies to shared memory first, twice: the
// results are twice the counts. Each thread writes its 64.
func wgmmaKernel(name string, faults ...string) string {
	var d, stores []string
	for i := range 64 {
		d = append(d, fmt.Sprintf("%%d%d", i))
		stores = append(stores, fmt.Sprintf("	st.global.u32 [%%rd5+%d], %%d%d;", 4*i, i))
	}
	product := "	wgmma.mma_async.sync.aligned." + wgmmaBits + " {" + strings.Join(d, ", ") + "}, %rd6, %rd7, "
	text := `	.reg .b32 %d<64>;
	mov.u64 %rd3, dynamic;
	mul.wide.u32 %rd4, %r1, 16;
	add.s64 %rd5, %rd1, %rd4;
	add.s64 %rd4, %rd3, %rd4;
	cvt.u32.u64 %r4, %rd4;
	cp.async.cg.shared.global [%r4], [%rd5], 16, 16;
	cp.async.cg.shared.global [%r4+2048], [%rd5+2048], 16, 16;
	cp.async.cg.shared.global [%r4+4096], [%rd5+4096], 16, 16;
	cp.async.commit_group;
	cp.async.wait_group 0;
	fence.proxy.async.shared::cta;
	bar.sync 0;
	shr.u64 %rd6, %rd3, 4;
	add.s64 %rd7, %rd6, 128;
	add.s64 %rd6, %rd6, 34363932672;
	add.s64 %rd7, %rd7, 34368126976;
	mul.wide.u32 %rd5, %r1, 256;
	add.s64 %rd5, %rd2, %rd5;
	wgmma.fence.sync.aligned;
` + product + "0;\n" + product + "1;\n	wgmma.commit_group.sync.aligned;\n	wgmma.wait_group.sync.aligned 0;\n" + strings.Join(stores, "\n")
	for i := 0; i < len(faults); i += 2 {
		text = strings.ReplaceAll(text, faults[i], faults[i+1])
	}
	return body(name, text)
}

func wgmmaHead(text string) string {
	return strings.NewReplacer("7.8", "8.4", "sm_90", "sm_90a").Replace(head) + strings.TrimPrefix(text, head)
}

// TestWarpgroups: products of warpgroups are what their definition says, in any order of
// threads, and what a GPU would not forgive is found.
func TestWarpgroups(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const wait = "	wgmma.wait_group.sync.aligned 0;"
	faults := []struct{ name, from, to, want string }{
		{"nofence", "	wgmma.fence.sync.aligned;\n", "", "without a wgmma.fence"},
		{"nocommit", "	wgmma.commit_group.sync.aligned;\n", "", "a product that nobody waits for"},
		{"nowait", wait, "", "a product that nobody waits for"},
		{"waitforless", wait, "	wgmma.wait_group.sync.aligned 1;", "a product that nobody waits for"},
		{"noproxy", "	fence.proxy.async.shared::cta;\n", "", "did not make visible"},
		{"swizzled", "%rd6, 34363932672;", "%rd6, 4611686052791320576;", "is not known"},
		{"beyond", "%rd6, 34363932672;", "%rd6, 343601447944;", "illegal address"},
		{"overwritten", wait, "	st.shared.u32 [%rd4], %r1;\n" + wait, "was written while a product read it"},
		{"otherlanes", "	wgmma.fence", "	cvt.u64.u32 %rd8, %r1;\n	add.s64 %rd7, %rd7, %rd8;\n	wgmma.fence", "different operands"},
		{"otherwarps", "	wgmma.fence", "	shr.u32 %r5, %r1, 5;\n	cvt.u64.u32 %rd8, %r5;\n	sub.s64 %rd7, %rd7, %rd8;\n	wgmma.fence",
			"started different products"},
		{"otherregisters", "{%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7, %d8, %d9, %d10,", "{%d1, %d0, %d2, %d3, %d4, %d5, %d6, %d7, %d8, %d9, %d10,", ""},
		{"otherbarrier", "	bar.sync 0;", "	barrier.sync.aligned 2, 128;", "barrier 2 of 128 threads, by one of warpgroup 0"},
		{"otherthreads", "	bar.sync 0;", "	barrier.sync.aligned 1, 64;", "barrier 1 of 64 threads"},
	}
	text := wgmmaKernel("product") + wgmmaKernel("bytes", wgmmaBits, wgmmaBytes) +
		wgmmaKernel("warpgroup", "	bar.sync 0;", "	barrier.sync.aligned 1, 128;") +
		wgmmaKernel("stride", "34363932672", "38658899968")
	for _, f := range faults {
		text += wgmmaKernel(f.name, f.from, f.to)
	}
	m := compileHead(t, wgmmaHead(""), text)

	rng := rand.New(rand.NewPCG(9, 0))
	words := make([]uint32, wgmmaWords)
	var input []byte
	for i := range words {
		words[i] = rng.Uint32()
		input = binary.LittleEndian.AppendUint32(input, words[i])
	}
	row := func(begin, rows, r, k int) uint32 { return words[begin+(k/4*rows+r)*4+k%4] }
	want, wantBytes := make([]byte, 0, 128*64*4), make([]byte, 0, 128*64*4)
	for thread := range 128 {
		for i := range 64 {
			r, c := thread/32*16+thread%32/4+8*(i/2%2), i/4*8+2*(thread%4)+i%2
			count, sum := 0, int32(0)
			for k := range 8 {
				x, y := row(0, wgmmaRows, r, k), row(wgmmaRows*8, wgmmaColumns, c, k)
				count += bits.OnesCount32(x & y)
				sum += signedByUnsigned(y, x)
			}
			want = binary.LittleEndian.AppendUint32(want, uint32(2*count))
			wantBytes = binary.LittleEndian.AppendUint32(wantBytes, uint32(2*sum))
		}
	}
	on := func(order string) launch {
		return launch{threads: 128, dynamic: 4 * wgmmaWords, output: len(want), order: order}
	}
	for _, order := range []string{"forward", "reverse", "random:1"} {
		for _, kernel := range []string{"product", "warpgroup"} {
			got, message := m.run(t, kernel, on(order), input)
			require.Empty(t, message)
			require.Equal(t, want, got, kernel)
		}
		got, message := m.run(t, "bytes", on(order), input)
		require.Empty(t, message)
		require.Equal(t, wantBytes, got)
		got, message = m.run(t, "stride", on(order), input)
		require.Empty(t, message)
		require.NotEqual(t, want, got, "a wrong distance of groups of rows changes nothing")
		for _, f := range faults {
			got, message := m.run(t, f.name, on(order), input)
			if f.want == "" {
				require.NotEqual(t, want, got, f.name)
				continue
			}
			require.Contains(t, message, f.want, f.name)
		}
	}
}

// TestWarpgroupTargets: what only sm_90a has is no part of others.
func TestWarpgroupTargets(t *testing.T) {
	kernel := wgmmaKernel("k")
	_, err := translate(map[string]string{"k.ptx": wgmmaHead(kernel)})
	require.NoError(t, err)
	for _, c := range []struct{ head, want string }{
		{head, "it needs sm_90a"},
		{strings.Replace(wgmmaHead(""), "8.4", "7.8", 1), "it needs PTX 8.0"},
		{strings.Replace(wgmmaHead(""), "sm_90a", "sm_100a", 1), "it needs sm_90a"},
		{strings.Replace(wgmmaHead(""), "sm_90a", "sm_90b", 1), "the version or the target is not known"},
	} {
		_, err := translate(map[string]string{"k.ptx": c.head + strings.Replace(kernel, "	fence.proxy.async.shared::cta;\n", "", 1)})
		require.ErrorContains(t, err, c.want)
	}
	_, err = translate(map[string]string{"k.ptx": strings.Replace(wgmmaHead(wgmmaKernel("k", wgmmaBits, wgmmaBytes)), "8.4", "8.3", 1)})
	require.ErrorContains(t, err, "it needs PTX 8.4")
}
