package testenv

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequire(t *testing.T) {
	t.Setenv(EnvRequire, "")
	require.False(t, Required("cuda"))
	require.NoError(t, CheckRequired("cpu", "cpu:avx2"))
	t.Setenv(EnvRequire, "cpu:avx2, cuda:1 ,opencl,")
	for name, want := range map[string]bool{
		"cpu": true, "cpu:avx2": true, "cpu:avx": false, "cpu:generic": false,
		"cuda": true, "cuda:1": true, "cuda:0": false, "opencl": true, "opencl:0": false, "": false,
	} {
		require.Equal(t, want, Required(name), name)
	}
	require.NoError(t, CheckRequired("cpu", "cpu:avx2", "cpu:generic"))
	require.NoError(t, CheckRequired("cuda", "cuda:1"))
	require.ErrorContains(t, CheckRequired("cpu", "cpu:generic"), `lists "cpu:avx2"; known are cpu, cpu:generic`)

	outcome := func(name string) *recorder {
		r := &recorder{TB: t}
		Absent(r, name, errors.New("no driver"))
		return r
	}
	require.Equal(t, &recorder{TB: t, failed: true}, outcome("opencl"))
	require.Equal(t, &recorder{TB: t, skipped: true}, outcome("vulkan"))
}

// recorder notes what would have become of a test.
type recorder struct {
	testing.TB
	failed, skipped bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Fatalf(string, ...any) { r.failed = true }
func (r *recorder) Fatal(...any)          { r.failed = true }
func (r *recorder) Skipf(string, ...any)  { r.skipped = r.skipped || !r.failed }

func TestSharedData(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(EnvSharedData, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "there"), nil, 0o644))
	require.Equal(t, filepath.Join(dir, "there"), SharedData(t, "there"))

	t.Setenv(EnvRequire, "")
	outcome := func(name string) *recorder {
		r := &recorder{TB: t}
		SharedData(r, name)
		return r
	}
	require.True(t, outcome("not there").failed)
	t.Setenv(EnvSharedData, filepath.Join(dir, "nowhere"))
	require.True(t, outcome("there").skipped)
	t.Setenv(EnvRequire, "shared-data")
	require.False(t, outcome("there").skipped)

	require.FileExists(t, filepath.Join(Root(t), "internal", "testenv", "testenv.go"))
}
