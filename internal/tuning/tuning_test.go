package tuning

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

type choice struct{ Name string }

func TestCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "choices.json")
	c := Load[choice]("driver", "kernels", path)
	_, ok := c.Get("a")
	require.False(t, ok)
	c.Put("a", choice{"x"})
	c.Put("b", choice{"y"})
	got, ok := Load[choice]("driver", "kernels", path).Get("b")
	require.True(t, ok)
	require.Equal(t, choice{"y"}, got)
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, bad := range map[string]string{
		"empty":          "",
		"cut":            string(data[:len(data)/2]),
		"another type":   `{"Steps": 7}`,
		"another driver": strings.Replace(string(data), `"driver"`, `"other"`, 1),
		"other kernels":  strings.Replace(string(data), `"kernels"`, `"others"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(bad), 0o644))
			c := Load[choice]("driver", "kernels", path)
			require.Empty(t, c.Steps)
			c.Put("c", choice{"z"})
			require.Equal(t, map[string]choice{"c": {"z"}}, Load[choice]("driver", "kernels", path).Steps)
		})
	}
}

func TestNoPlaceForTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for _, path := range []string{"", filepath.Join(file, "choices.json")} {
		c := Load[choice]("driver", "kernels", path)
		c.Put("a", choice{"x"})
		got, ok := c.Get("a")
		require.True(t, ok)
		require.Equal(t, choice{"x"}, got)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	require.Empty(t, Path("cuda", "driver", "kernels"))
}

func TestPath(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	seen := make(map[string]bool)
	for _, args := range [][3]string{{"cuda", "d", "k"}, {"opencl", "d", "k"}, {"cuda", "e", "k"}, {"cuda", "d", "l"}} {
		path := Path(args[0], args[1], args[2])
		require.Regexp(t, `bitcnn/`+args[0]+`-[0-9a-f]{16}\.json$`, filepath.ToSlash(path))
		require.False(t, seen[path])
		seen[path] = true
	}
}

func TestConcurrentUse(t *testing.T) {
	c := Load[choice]("driver", "kernels", filepath.Join(t.TempDir(), "choices.json"))
	var group sync.WaitGroup
	for i := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			key := strings.Repeat("k", i)
			c.Put(key, choice{key})
			if got, ok := c.Get(key); !ok || got.Name != key {
				t.Errorf("%q: %v %v", key, got, ok)
			}
		}()
	}
	group.Wait()
}
