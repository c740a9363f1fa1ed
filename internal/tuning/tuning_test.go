package tuning

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// load is Load for a device that tests do not care about.
func load(path string) *Cache { return Load("device", "driver", "kernels", path) }

// entry is a choice that was measured some time ago.
func entry(name string, age time.Duration, doubt float64) Entry {
	return Entry{Step: "a step", Variant: "b", Name: name, Groups: []int{64, 16}, Seconds: 0.25, Doubt: doubt,
		Measured: time.Now().Add(-age).UTC().Round(time.Second)}
}

func TestCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "cuda-0123456789abcdef.json")
	c := load(path)
	_, ok := c.Get("a")
	require.False(t, ok)
	c.Put("a", entry("x", 0, 0))
	want := entry("y", time.Hour, 0.01)
	c.Put("b", want)
	got, ok := load(path).Get("b")
	require.True(t, ok)
	require.Equal(t, want, got)
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, bad := range map[string]string{
		"empty":                        "",
		"cut":                          string(data[:len(data)/2]),
		"another type":                 `{"Steps": 7}`,
		"another driver":               strings.Replace(string(data), `"driver"`, `"other"`, 1),
		"other kernels":                strings.Replace(string(data), `"kernels"`, `"others"`, 1),
		"another time":                 strings.ReplaceAll(string(data), `"Measured": "`, `"Measured": "x`),
		"from before there were times": `{"Driver": "driver", "Kernels": "kernels", "Steps": {"a": {"Variant": "b", "Name": "x"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(bad), 0o644))
			c := load(path)
			require.Empty(t, c.Steps)
			c.Put("c", entry("z", 0, 0))
			require.Len(t, load(path).Steps, 1)
			got, ok := load(path).Get("c")
			require.True(t, ok)
			require.Equal(t, "z", got.Name)
		})
	}
}

// TestLasts: what is too old, or was doubtful a while ago, is measured again.
func TestLasts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cuda-0123456789abcdef.json")
	const day = 24 * time.Hour
	c := load(path)
	want := make(map[string]bool)
	for name, e := range map[string]struct {
		age   time.Duration
		doubt float64
		lasts bool
	}{
		"fresh":            {0, 0, true},
		"fresh, doubtful":  {0, 0.9, true},
		"old":              {29 * day, 0.05, true},
		"older":            {31 * day, 0, false},
		"doubtful":         {23 * time.Hour, 0.06, true},
		"doubtful and old": {25 * time.Hour, 0.06, false},
		"of the future":    {-day, 0, false},
	} {
		c.Put(name, entry(name, e.age, e.doubt))
		want[name] = e.lasts
	}
	for name, lasts := range want {
		_, ok := c.Get(name)
		require.Equal(t, lasts, ok, name)
		_, ok = load(path).Steps[name] // dropped when the file is read
		require.Equal(t, lasts, ok, name)
	}
	c.Put("fresh", Entry{Name: "now"})
	got, ok := c.Get("fresh")
	require.True(t, ok)
	require.WithinDuration(t, time.Now(), got.Measured, time.Minute)
}

// TestRefusals are kept beside the choices, each once, until they are old.
func TestRefusals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "choices.json")
	c := load(path)
	require.Empty(t, c.Refusals())
	c.Refuse("queues")
	c.Refuse("a buffer")
	c.Refuse("queues")
	require.Equal(t, []string{"a buffer", "queues"}, c.Refusals())
	c.Put("a", entry("x", 0, 0))
	require.Equal(t, []string{"a buffer", "queues"}, load(path).Refusals())
	c.Refused["queues"] = time.Now().Add(-MaxAge - time.Hour)
	c.Put("b", entry("x", 0, 0))
	require.Equal(t, []string{"a buffer"}, load(path).Refusals())
	c.Refuse("queues") // once more
	require.Equal(t, []string{"a buffer", "queues"}, load(path).Refusals())
	require.Empty(t, Load("a device", "another driver", "kernels", path).Refusals())
	for i := range 2 * maxRefused {
		c.Refuse(fmt.Sprint("buffer of ", i))
	}
	require.Len(t, c.Refusals(), maxRefused)
}

func TestNoPlaceForTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for _, path := range []string{"", filepath.Join(file, "choices.json")} {
		c := load(path)
		c.Put("a", entry("x", 0, 0))
		got, ok := c.Get("a")
		require.True(t, ok)
		require.Equal(t, entry("x", 0, 0).Name, got.Name)
	}
	inside(t, "")
	require.Empty(t, Path("cuda", "driver", "kernels"))
	_, err := List()
	require.Error(t, err)
	_, err = Clear()
	require.Error(t, err)
}

func TestPath(t *testing.T) {
	inside(t, t.TempDir())
	seen := make(map[string]bool)
	for _, args := range [][3]string{{"cuda", "d", "k"}, {"opencl", "d", "k"}, {"cuda", "e", "k"}, {"cuda", "d", "l"}} {
		path := Path(args[0], args[1], args[2])
		require.Regexp(t, `bitcnn/`+args[0]+`-[0-9a-f]{16}\.json$`, filepath.ToSlash(path))
		require.False(t, seen[path])
		seen[path] = true
	}
}

// inside gives the user another home.
func inside(t *testing.T, dir string) {
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // Linux, macOS, Windows
		t.Setenv(name, dir)
	}
}

// caches makes a folder of the user's with three files of choices, of which one is
// nonsense, and two others.
func caches(t *testing.T) (cuda, opencl, nonsense string, others []string) {
	inside(t, t.TempDir())
	cuda, opencl = Path("cuda", "driver", "kernels"), Path("opencl", "driver", "kernels")
	c := load(cuda)
	c.Put("a", entry("x", 2*time.Hour, 0))
	c.Put("b", entry("y", time.Hour, 0.5))
	load(opencl).Put("a", entry("z", 0, 0))
	dir := filepath.Dir(cuda)
	nonsense = filepath.Join(dir, "zeta-0000000000000000.json")
	require.NoError(t, os.WriteFile(nonsense, []byte("{"), 0o644))
	for _, name := range []string{"notes.json", "cuda-0.json"} {
		others = append(others, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(others[len(others)-1], []byte("mine"), 0o644))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "cuda-fedcba9876543210.json.d"), 0o755))
	return cuda, opencl, nonsense, others
}

func TestListAndClear(t *testing.T) {
	inside(t, filepath.Join(t.TempDir(), "new"))
	all, err := List()
	require.NoError(t, err)
	require.Empty(t, all)
	removed, err := Clear()
	require.NoError(t, err)
	require.Empty(t, removed)

	cuda, opencl, nonsense, others := caches(t)
	all, err = List()
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, []string{cuda, opencl, nonsense}, []string{all[0].Path, all[1].Path, all[2].Path})
	require.Equal(t, []string{"cuda", "opencl", "zeta"}, []string{all[0].Backend, all[1].Backend, all[2].Backend})
	require.Equal(t, "device", all[0].Device)
	require.Equal(t, "driver", all[0].Driver)
	require.NoError(t, all[0].Err)
	require.Error(t, all[2].Err)
	require.Len(t, all[0].Entries, 2)
	require.Equal(t, "y", all[0].Entries[0].Name) // the latest first
	require.Equal(t, []int{64, 16}, all[0].Entries[1].Groups)

	removed, err = Clear()
	require.NoError(t, err)
	require.Equal(t, []string{cuda, opencl, nonsense}, removed)
	all, err = List()
	require.NoError(t, err)
	require.Empty(t, all)
	for _, path := range others {
		require.FileExists(t, path)
	}
}

// TestOldFiles: a file that nobody has written for long goes when another is read.
func TestOldFiles(t *testing.T) {
	cuda, opencl, nonsense, others := caches(t)
	long := time.Now().Add(-MaxAge - time.Hour)
	for _, path := range append(others, opencl) {
		require.NoError(t, os.Chtimes(path, long, long))
	}
	require.Len(t, load(cuda).Steps, 2)
	for _, path := range append(others, cuda, nonsense) {
		require.FileExists(t, path)
	}
	require.NoFileExists(t, opencl)
}

func TestConcurrentUse(t *testing.T) {
	c := load(filepath.Join(t.TempDir(), "choices.json"))
	var group sync.WaitGroup
	for i := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			key := strings.Repeat("k", i)
			c.Put(key, Entry{Name: key})
			if got, ok := c.Get(key); !ok || got.Name != key {
				t.Errorf("%q: %v %v", key, got, ok)
			}
		}()
	}
	group.Wait()
}
