package tuning

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPrograms: what is damaged, or another program's, is as good as absent.
func TestPrograms(t *testing.T) {
	binary, of := []byte("\x7fELF and so on"), []string{"driver", "source", "-DX=1"}
	for name, c := range map[string]struct {
		change func(path string, data []byte) []byte // nil leaves the file as it is
		of     []string
		found  bool
	}{
		"as it was":           {nil, of, true},
		"another driver":      {nil, []string{"driver 2", "source", "-DX=1"}, false},
		"another source":      {nil, []string{"driver", "source ", "-DX=1"}, false},
		"other options":       {nil, []string{"driver", "source", "-DX=12"}, false},
		"the same text":       {nil, []string{"driver", "source-D", "X=1"}, false},
		"empty":               {func(string, []byte) []byte { return nil }, of, false},
		"no program":          {func(_ string, b []byte) []byte { return b[:programHead] }, of, false},
		"cut":                 {func(_ string, b []byte) []byte { return b[:len(b)-1] }, of, false},
		"longer":              {func(_ string, b []byte) []byte { return append(b, 0) }, of, false},
		"a bit of the key":    {func(_ string, b []byte) []byte { b[len(programMagic)] ^= 1; return b }, of, false},
		"a bit of the sum":    {func(_ string, b []byte) []byte { b[programHead-1] ^= 1; return b }, of, false},
		"a bit of the binary": {func(_ string, b []byte) []byte { b[len(b)-1] ^= 1; return b }, of, false},
		"another version":     {func(_ string, b []byte) []byte { b[len(programMagic)-2]++; return b }, of, false},
		"a foreign file": {func(path string, b []byte) []byte { // of another program, under this name
			p := ProgramsIn(filepath.Dir(path), "opencl")
			p.Put([]byte("another"), "else")
			data, err := os.ReadFile(p.path(programKey([]string{"else"})))
			require.NoError(t, err)
			return data
		}, of, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := ProgramsIn(filepath.Join(t.TempDir(), "programs"), "opencl")
			require.Nil(t, p.Get(of...))
			p.Put(binary, of...)
			path := p.path(programKey(of))
			if c.change != nil {
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, c.change(path, data), 0o600))
			}
			got := p.Get(c.of...)
			require.Equal(t, c.found, got != nil)
			p.Put(binary, c.of...) // heals it
			require.Equal(t, binary, p.Get(c.of...))
			p.Remove(c.of...)
			require.Nil(t, p.Get(c.of...))
		})
	}
}

// TestProgramsAge: what has not been used for long is removed, what is used is not.
func TestProgramsAge(t *testing.T) {
	inside(t, t.TempDir())
	p := LoadPrograms("opencl")
	for _, name := range []string{"used", "left"} {
		p.Put([]byte(name), name)
		old := time.Now().Add(-MaxAge + time.Hour)
		require.NoError(t, os.Chtimes(p.path(programKey([]string{name})), old, old))
	}
	require.Equal(t, "used", string(p.Get("used")))
	old := time.Now().Add(-MaxAge - time.Hour)
	require.NoError(t, os.Chtimes(p.path(programKey([]string{"left"})), old, old))
	p = LoadPrograms("opencl")
	require.Equal(t, "used", string(p.Get("used")))
	require.Nil(t, p.Get("left"))
	removed, err := Clear()
	require.NoError(t, err)
	require.Len(t, removed, 1)
	require.Nil(t, p.Get("used"))
}

// TestProgramsWithoutAPlace does without.
func TestProgramsWithoutAPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{"", filepath.Join(file, "programs")} {
		p := ProgramsIn(dir, "opencl")
		p.Put([]byte("a"), "a")
		require.Nil(t, p.Get("a"))
		p.Remove("a")
	}
	p := ProgramsIn(t.TempDir(), "opencl")
	p.Put(nil, "a")
	require.Nil(t, p.Get("a"))
}

func FuzzPrograms(f *testing.F) {
	dir := f.TempDir()
	p := ProgramsIn(dir, "opencl")
	p.Put([]byte("program"), "a")
	path := p.path(programKey([]string{"a"}))
	good, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(good)
	f.Add(good[:programHead])
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		if got := p.Get("a"); got != nil && string(data) != string(good) {
			// Its sum is right, too: it was made.
			require.Equal(t, data[programHead:], got)
		}
	})
}
