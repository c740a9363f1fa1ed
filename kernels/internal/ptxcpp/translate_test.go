package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommittedFiles translates what ships. Files that differ in their headers alone
// share their C++.
func TestCommittedFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../cu/ptx/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	texts := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[filepath.Base(file)] = string(text)
	}
	sources, err := translate(texts)
	require.NoError(t, err)
	for file, text := range texts {
		require.True(t, strings.Contains(sources["translations.cpp"], text), file)
	}
}

// statements makes a file of one kernel with these statements.
func statements(lines ...string) string { return head + body("k", strings.Join(lines, "\n")) }

// TestRefused: what is not known, or not right, is an error that says where and why.
func TestRefused(t *testing.T) {
	_, err := translate(map[string]string{"k.ptx": statements("add.s32 %r4, %r1, %r2;")})
	require.NoError(t, err)
	for _, c := range []struct{ what, text, want string }{
		{"opcode", statements("sin.approx.f32 %f1, %f2;"), "line 23: sin.approx.f32: the opcode is not known"},
		{"modifier", statements("fma.rn.ftz.f32 %f1, %f2, %f3, %f4;"), "fma.rn.ftz.f32: the opcode is not known"},
		{"product that may be contracted", statements("mul.f32 %f1, %f2, %f3;"), "mul.f32: the opcode is not known"},
		{"order of modifiers", statements("ld.v2.global.u32 {%r4, %r5}, [%rd1];"), "the opcode is not known"},
		{"vector of 32 bytes", statements("ld.global.v4.u64 {%rd3, %rd4, %rd5, %rd6}, [%rd1];"), "the opcode is not known"},
		{"scope of a load", statements("ld.acquire.cta.global.u32 %r4, [%rd1];"), "the opcode is not known"},
		{"matrix transposed", statements("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r4,%r5,%r6,%r7}, [%r1];"), "the opcode is not known"},
		{"shape", statements("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%r4,%r5,%r6,%r7}, {%r1,%r2}, {%r3}, {%r4,%r5,%r6,%r7};"), "the opcode is not known"},
		{"barrier of a part", statements("bar.sync 0, 64;"), "2 operands instead of 1"},
		{"another barrier", statements("bar.sync 1;"), "no constant from 0 to 0"},
		{"operands", statements("add.s32 %r4, %r1;"), "2 operands instead of 3"},
		{"register that is not declared", statements("add.s32 %r4, %r1, %r60;"), "%r60 is no register of its type"},
		{"register of another size", statements("add.s32 %r4, %r1, %rd1;"), "%rd1 is no register of its type"},
		{"float where an integer is", statements("add.s32 %r4, %r1, %f1;"), "%f1 is no register of its type"},
		{"integer where a predicate is", statements("@%r1 bra $L;", "$L:"), "%r1 is no register of its type"},
		{"result that is a constant", statements("add.s32 5, %r1, %r2;"), "the result is no register of its type"},
		{"narrow result", statements("cvt.u32.u64 %rs1, %rd1;"), "an operand is no register of its type"},
		{"constant that is too large", statements("add.s16 %rs1, %rs2, 65536;"), "65536 does not fit into 16 bits"},
		{"constant that is too small", statements("add.s16 %rs1, %rs2, -32769;"), "-32769 does not fit into 16 bits"},
		{"integer for a float", statements("add.rn.f32 %f1, %f2, 1;"), "an integer is no operand of type f32"},
		{"float for an integer", statements("add.s32 %r4, %r1, 0f3F800000;"), "a float is no operand of its type"},
		{"double", statements("mov.f32 %f1, 0d3FF0000000000000;"), "operand \"0d3FF0000000000000\" is not known"},
		{"octal", statements("mov.u32 %r4, 017;"), "operand \"017\" is not known"},
		{"special register", statements("mov.u32 %r4, %laneid;"), "%laneid is no register of its type"},
		{"table of lop3", statements("lop3.b32 %r4, %r1, %r2, %r3, 256;"), "no constant from 0 to 255"},
		{"label that is not there", statements("bra $L;"), `there is no label "$L"`},
		{"label twice", statements("$L:", "$L:"), "there are two labels $L"},
		{"shared array by ld.global", statements("ld.global.u32 %r4, [own];"), "own is not in the space of the instruction"},
		{"parameter by ld.shared", statements("ld.shared.u32 %r4, [k_param_0];"), "k_param_0 is not in the space of the instruction"},
		{"beyond a parameter", statements("ld.param.u64 %rd3, [k_param_1+4];"), "8 bytes at 4 are outside of k_param_1"},
		{"beyond an array", statements("ld.shared.u32 %r4, [own+510];"), "4 bytes at 510 are outside of own"},
		{"before an array", statements("ld.shared.u32 %r4, [own+-4];"), "4 bytes at -4 are outside of own"},
		{"narrow address", statements("ld.global.u32 %r4, [%r1];"), "%r1 is no register for an address"},
		{"vector of another length", statements("ld.global.v4.u32 {%r4, %r5}, [%rd1];"), "an operand has not the elements of .v4"},
		{"copy of 16 bytes in parts", statements("cp.async.cg.shared.global [%r1], [%rd1], 8, %r2;"), "8 bytes cannot be copied"},
		{"old target", strings.Replace(statements("cp.async.commit_group;"), "sm_90", "sm_75", 1), "it needs sm_80"},
		{"target that begins nothing early", strings.Replace(statements("griddepcontrol.wait;"), "sm_90", "sm_80", 1), "it needs sm_90"},
		{"old PTX", strings.Replace(statements("bar.warp.sync -1;"), "7.8", "5.0", 1), "it needs PTX 6.0"},
		{"architecture of its own", strings.Replace(statements(), "sm_90", "sm_a", 1), "the version or the target is not known"},
		{"small addresses", strings.Replace(statements(), "size 64", "size 32", 1), `line 3: "32" instead of "64"`},
		{"directive", head + ".global .align 4 .b8 table[16];\n", `directive ".global" is not known`},
		{"function", head + ".func (.reg .b32 r) f() { ret; }", `directive ".func" is not known`},
		{"directive of a kernel", strings.Replace(statements(), ".maxntid 1024", ".reqntid 1024", 1), `directive ".reqntid" is not known`},
		{"local memory", statements(".local .align 4 .b8 stack[16];"), "is not known"},
		{"pragma", statements(`.pragma "used_bytes_mask 1";`), "is not known"},
		{"registers of doubles", statements(".reg .f64 %fd<3>;"), `registers of type ".f64" are not known`},
		{"registers twice", statements(".reg .b32 %r<3>;"), "there are two registers %r0"},
		{"kernel twice", statements() + body("k", ""), "there are two entries k"},
		{"unaligned array", head + strings.Replace(body("k", ""), ".align 16", ".align 12", 1), "12 is no alignment"},
		{"end", head + ".visible .entry", "the text ends"},
		{"string", head + "\"abc\n", "a string does not end"},
		{"comment", head + "/* abc", "a comment does not end"},
		{"nothing", "", "\"\" instead of \".version\""},
		{"end of a C++ string", statements(`// )ptx"`), "it holds the end of a C++ string"},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, err := translate(map[string]string{"k.ptx": c.text})
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "k.ptx: ")
		})
	}
}

// FuzzTranslate: every text is translated or refused.
func FuzzTranslate(f *testing.F) {
	f.Add(statements("ld.global.v2.u32 {%r4, %r5}, [%rd1+8];", "@!%p1 bra $L;", "$L:"))
	f.Add(statements("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%r1,%r2}, {%r3}, {%r4}, {%r5,%r6};"))
	f.Add(statements("cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;", "atom.shared.cas.b32 %r1, [own+4], %r2, -1;"))
	f.Add(head + ".visible .entry empty(){}")
	f.Add(statements("lop3.b32 %r1, %r2, %r3, %r4, 0xe8;", "setp.gtu.f32 %p1, %f1, 0f7F800000;", "cvt.sat.s8.u64 %rs1, %rd1;"))
	f.Fuzz(func(t *testing.T, text string) {
		sources, err := translate(map[string]string{"k.ptx": text})
		if err == nil {
			require.NotEmpty(t, sources["translations.cpp"])
		}
	})
}
