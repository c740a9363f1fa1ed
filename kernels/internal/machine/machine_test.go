package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const log = `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for __internal
    0 bytes stack frame, 400 bytes spill stores, 400 bytes spill loads
ptxas info    : Function properties for a
    8 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Function properties for b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers
`

const listing = `	.section	.text.a,"ax",@progbits
.text.a:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_9:
        /*0010*/                   LDG.E R2, [R4.64] ;
.L_x_1:
        /*0020*/                   IMAD R2, R2, R2, R2 ;
        /*0030*/              @!P1 BRA ` + "`(.L_x_1)" + ` ;
.L_x_2:
        /*0040*/               @P0 POPC R3, R2 ;
        /*0050*/                   BMMA.168256.AND.POPC R4, R8, R10, R4 ;
        /*0060*/                   BRA ` + "`(.L_x_3)" + ` ;
        /*0064*/                   CALL.REL.NOINC ` + "`(.L_x_2)" + ` ;
        /*0066*/                   CALL.REL.NOINC ` + "`($__internal_0_$__cuda_sm_10x_mma_bit_internal_and_m16n8k256)" + ` ;
        /*0068*/                   CALL.REL.NOINC ` + "`($a$__cuda_sm70_votesync_ballot)" + ` ;
.L_x_3:
        /*0070*/              @UP2 IMMA.16832.U8.S8 R4, R8, R10, R4 ;
        /*0080*/               @P0 BRA ` + "`(.L_x_2)" + ` ;
        /*0090*/               @P0 BRA ` + "`(.L_x_9)" + ` ;
        /*00a0*/                   EXIT ;
.L_x_4:
        /*00b0*/                   BRA ` + "`(.L_x_4)" + ` ;
        /*00c0*/                   NOP ;
	.section	.text.b,"ax",@progbits
.text.b:
.L_x_5:
        /*0000*/                   IGMMA.64x128x32.U8.S8 R24, gdesc[UR16], R24, gsb0 ;
        /*0008*/               @P0 BRA ` + "`(.L_x_5)" + ` ;
        /*0000*/                   CALL.REL.NOINC ` + "`($__internal_0_$__cuda_x)" + ` ;
        /*0010*/                   EXIT ;
`

func TestMeasured(t *testing.T) {
	kernels, err := parseLog([]byte(log))
	require.NoError(t, err)
	addCode(kernels, []byte(listing))
	require.Equal(t, map[string]*code{
		"a": {Registers: 40, Spills: 20, Instructions: 15, Loop: 8, Tensor: 3, Popc: 1},
		"b": {Registers: 255, Instructions: 4, Loop: 2, Tensor: 1},
	}, kernels)
	for _, bad := range []string{
		"ptxas info    : (C7519) Potential Performance Loss: wgmma.mma_async instructions are serialized due to it",
		"ptxas info    : Used 3 registers", "Compiling entry function 'a' for 'sm_90'",
	} {
		_, err := parseLog([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestTable(t *testing.T) {
	rows := []row{
		{"f", "a", 80, code{Registers: 3, Instructions: 9}},
		{"f", "a", 90, code{Registers: 3, Instructions: 9}},
		{"f", "a", 120, code{Registers: 4, Spills: 8, Calls: []string{"x", "y"}, Instructions: 10, Loop: 7, Tensor: 2, Popc: 1}},
		{"f", "b", 90, code{Registers: 1, Instructions: 1}},
	}
	text := formatTable(rows)
	require.Equal(t, columns+"f\ta\t80,90\t3\t0\t-\t9\t0\t0\t0\nf\ta\t120\t4\t8\tx,y\t10\t7\t2\t1\nf\tb\t90\t1\t0\t-\t1\t0\t0\t0\n", string(text))
	again, err := parseTable(text)
	require.NoError(t, err)
	require.Equal(t, rows, again)
	require.Empty(t, exceeded(rows, again))
	for _, bad := range []string{"", "x\n", columns + "f\ta\n", strings.Replace(string(text), "\t4\t", "\tq\t", 1), strings.Replace(string(text), "80,90", "80,", 1)} {
		_, err := parseTable([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestLimits(t *testing.T) {
	limit := row{"f", "a", 90, code{Registers: 40, Spills: 8, Calls: []string{"x"}, Instructions: 100, Loop: 50, Tensor: 4, Popc: 3}}
	for _, c := range []struct {
		change func(r *row)
		want   []string
	}{
		{func(r *row) { r.Registers, r.Spills, r.Instructions, r.Loop, r.Calls, r.Popc = 39, 0, 99, 49, nil, 9 }, nil},
		{func(r *row) { r.Registers++ }, []string{"a for sm_90: 41 registers, the limit is 40"}},
		{func(r *row) { r.Spills++ }, []string{"a for sm_90: 9 bytes of spills, the limit is 8"}},
		{func(r *row) { r.Calls = []string{"x", "z"} }, []string{"a for sm_90: calls z"}},
		{func(r *row) { r.Instructions++ }, []string{"a for sm_90: 101 instructions, the limit is 100"}},
		{func(r *row) { r.Loop++ }, []string{"a for sm_90: 51 instructions in the main loop, the limit is 50"}},
		{func(r *row) { r.Tensor-- }, []string{"a for sm_90: 3 tensor instructions in the main loop, and there were 4"}},
		{func(r *row) { r.arch = 120 }, []string{"a for sm_120: no limits", "a for sm_90: limits, but no kernel"}},
	} {
		r := limit
		c.change(&r)
		require.Equal(t, c.want, exceeded([]row{r}, []row{limit}))
	}
}

func TestAssembled(t *testing.T) {
	dir := t.TempDir()
	_, err := assembled(dir)
	require.ErrorContains(t, err, "no PTX")
	for _, name := range []string{"a.sm53.ptx", "a.sm80.ptx", "b.sm90.ptx", "d.sm90a.ptx"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	work, err := assembled(dir)
	require.NoError(t, err)
	count := make(map[string]int)
	for _, j := range work {
		if j.alone {
			require.Equal(t, job{"d", filepath.Join(dir, "d.sm90a.ptx"), 90, true}, j)
			require.Equal(t, "sm_90a", j.target())
		}
		count[filepath.Base(j.file)]++
	}
	require.Equal(t, map[string]int{"a.sm53.ptx": 6, "a.sm80.ptx": 10, "b.sm90.ptx": 6, "d.sm90a.ptx": 1}, count)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c.ptx"), nil, 0o644))
	_, err = assembled(dir)
	require.ErrorContains(t, err, "c.ptx")
}
