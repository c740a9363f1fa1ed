//go:build cuda && opencl && cgo && linux && (amd64 || arm64)

package bitcnn_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// envModes has the checksum of compute for a process of its own.
const envModes = "BITCNN_MODES_WANT"

// TestModesOfDrivers: a driver that sets another mode of the floating-point unit as it is
// loaded, as one does that was built with -ffast-math, and in each call, changes no bits of
// what the processor computes.
func TestModesOfDrivers(t *testing.T) {
	want := os.Getenv(envModes)
	if want == "" {
		inOtherMode(t, "LD_LIBRARY_PATH=%s")
		return
	}
	runtime.LockOSThread() // drivers are loaded in this thread
	defer runtime.UnlockOSThread()
	digits, err := bitcnn.Bundled("digits")
	require.NoError(t, err)
	for _, device := range []string{"opencl", "cuda"} {
		_, err := bitcnn.Open(t.Context(), digits, bitcnn.Options{Device: device})
		require.ErrorIs(t, err, bitcnn.ErrUnavailable)
		require.ErrorContains(t, err, "error 999") // of a call
		got, err := compute(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got, device)
	}
	computeInThreads(t, want)
}

// TestModeOfProgram: nor does a library that sets another mode before the Go runtime
// starts, whose threads then all have it.
func TestModeOfProgram(t *testing.T) {
	want := os.Getenv(envModes)
	if want == "" {
		inOtherMode(t, "LD_PRELOAD=%s/libOpenCL.so.1")
		return
	}
	computeInThreads(t, want)
}

// inOtherMode runs the test in a process that finds drivers that set another mode, by a
// variable of its environment with their folder.
func inOtherMode(t *testing.T, variable string) {
	if _, err := exec.LookPath("cc"); err != nil {
		testenv.Absent(t, "cc", err)
	}
	dir := t.TempDir()
	for library, symbols := range map[string]string{"libOpenCL.so.1": "opencl", "libcuda.so.1": "cuda"} {
		text, err := exec.Command("cc", "-shared", "-fPIC", "-Ibackend/"+symbols+"/internal/shim",
			"backend/internal/trampoline/testdata/driver.c", "-o", filepath.Join(dir, library)).CombinedOutput()
		require.NoError(t, err, "%s", text)
	}
	want, err := compute(t.Context())
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), envModes+"="+want, fmt.Sprintf(variable, dir))
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
}

func computeInThreads(t *testing.T, want string) {
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			got, err := compute(t.Context())
			assert.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
	all.Wait()
}

// compute loads, opens and runs models on the processor, and returns the checksum of their
// outputs.
func compute(ctx context.Context) (string, error) {
	sum := fnv.New64a()
	for _, name := range []string{"digits", "vehiclenet"} {
		m, err := bitcnn.Bundled(name)
		if err != nil {
			return "", err
		}
		s, err := bitcnn.Open(ctx, m, bitcnn.Options{Device: "cpu", MaxBatch: 4, Threads: 2})
		if err != nil {
			return "", err
		}
		in := bitcnn.NewTensor(bitcnn.Uint8, 4, s.Inputs()[0].Shape)
		for i := range in.U8 {
			in.U8[i] = uint8(i * i)
		}
		out, err := s.Predict(ctx, in)
		if err := errors.Join(err, s.Close()); err != nil {
			return "", err
		}
		sum.Write(unsafe.Slice((*byte)(unsafe.Pointer(&out[0].F32[0])), 4*len(out[0].F32)))
	}
	return fmt.Sprintf("%x", sum.Sum64()), nil
}
