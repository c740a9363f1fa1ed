package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

const head = ".version 7.8\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 dynamic[];\n"

// machine runs the kernels of a PTX text, translated and compiled.
type machine struct{ program, ptx string }

// compile builds a machine for kernels, which follow head.
func compile(t *testing.T, kernels string) machine {
	t.Helper()
	return compileHead(t, head, kernels)
}

func compileHead(t *testing.T, head, kernels string, flags ...string) machine {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		testenv.Absent(t, "cuda-emulator", errors.New("the emulated machine is for Linux on amd64 and arm64"))
	}
	if _, err := exec.LookPath("g++"); err != nil {
		testenv.Absent(t, "g++", err)
	}
	dir := t.TempDir()
	m := machine{filepath.Join(dir, "run"), filepath.Join(dir, "test.ptx")}
	require.NoError(t, os.WriteFile(m.ptx, []byte(head+kernels), 0o644))
	require.NoError(t, run(dir, []string{m.ptx}))
	cu := filepath.Join(testenv.Root(t), "kernels", "cu")
	// What is read here is what the go command knows that the result depends on.
	for _, pattern := range []string{"emulation/*", "emulation/selftest/*", "*.h"} {
		sources, err := filepath.Glob(filepath.Join(cu, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, sources)
		for _, file := range sources {
			if filepath.Ext(file) != "" {
				_, err := os.ReadFile(file)
				require.NoError(t, err)
			}
		}
	}
	sources, err := filepath.Glob(filepath.Join(dir, "*.cpp"))
	require.NoError(t, err)
	for _, name := range []string{"engine", "fibers", "waits", "warpgroup", "tensor", "races", "registry", "system", "selftest/ptx_run"} {
		sources = append(sources, filepath.Join(cu, "emulation", name+".cpp"))
	}
	args := append(append([]string{"-std=c++17", "-O1", "-fno-exceptions", "-ffp-contract=off", "-fno-strict-aliasing", "-w",
		"-I" + cu, "-o", m.program}, flags...), sources...)
	text, err := exec.Command("g++", args...).CombinedOutput()
	require.NoError(t, err, string(text))
	return m
}

// launch is how a kernel is launched: on one block of one warp, if nothing is said.
type launch struct {
	blocks, threads, dynamic int
	cooperative              bool
	output                   int // bytes
	order                    string
}

// run launches a kernel; what failed is told by the message.
func (m machine) run(t *testing.T, kernel string, l launch, input []byte) (output []byte, message string) {
	t.Helper()
	if l.blocks == 0 {
		l.blocks = 1
	}
	if l.threads == 0 {
		l.threads = 32
	}
	cooperative := 0
	if l.cooperative {
		cooperative = 1
	}
	args := []string{m.ptx, kernel}
	for _, n := range []int{l.blocks, l.threads, l.dynamic, cooperative, l.output} {
		args = append(args, strconv.Itoa(n))
	}
	cmd := exec.Command(m.program, args...)
	cmd.Env = append(os.Environ(), "BCNN_EMULATOR_ORDER="+l.order)
	cmd.Stdin = bytes.NewReader(input)
	var errText bytes.Buffer
	cmd.Stderr = &errText
	output, err := cmd.Output()
	if err == nil {
		return output, ""
	}
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit) && exit.ExitCode() == 1, "%v: %s", err, &errText)
	return nil, errText.String()
}

// body is a kernel of two pointers, which are in %rd1 and %rd2, with the number of the
// thread in %r1, of the block in %r2 and of the thread in the grid in %r3.
func body(name, statements string) string {
	return fmt.Sprintf(`.visible .entry %s(
	.param .u64 %[1]s_param_0,
	.param .u64 %[1]s_param_1
)
.maxntid 1024, 1, 1
{
	.reg .pred %%p<10>;
	.reg .b16 %%rs<10>;
	.reg .b32 %%r<60>;
	.reg .f32 %%f<20>;
	.reg .b64 %%rd<20>;
	.shared .align 16 .b8 own[512];
	ld.param.u64 %%rd1, [%[1]s_param_0];
	ld.param.u64 %%rd2, [%[1]s_param_1];
	mov.u32 %%r1, %%tid.x;
	mov.u32 %%r2, %%ctaid.x;
	mov.u32 %%r3, %%ntid.x;
	mad.lo.s32 %%r3, %%r2, %%r3, %%r1;
%s
	ret;
}
`, name, statements)
}
