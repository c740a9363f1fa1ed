// Package tuning remembers what was the fastest on a device, in a file that other
// processes use, too. The file is only ever an aid: where it cannot be read, or
// holds nonsense, measuring takes its place.
package tuning

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/bitcnn/bitcnn/internal/files"
)

// Cache holds choices by key. It is safe for concurrent use.
type Cache[T any] struct {
	mu      sync.Mutex
	path    string // empty for none
	Driver  string
	Kernels string // their hash
	Steps   map[string]T
}

// Path is where the choices of a backend for a driver and kernels are kept; empty
// where the user has no folder for such files.
func Path(backend, driver, kernels string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(driver + "|" + kernels))
	return filepath.Join(dir, "bitcnn", backend+"-"+hex.EncodeToString(sum[:8])+".json")
}

// maxBytes is more than any file that Put writes.
const maxBytes = 16 << 20

// Load reads the file, if there is one for this driver and these kernels.
func Load[T any](driver, kernels, path string) *Cache[T] {
	c := &Cache[T]{path: path}
	if data, err := files.ReadAll(path, maxBytes); err != nil || json.Unmarshal(data, c) != nil ||
		c.Driver != driver || c.Kernels != kernels {
		c.Steps = nil
	}
	c.Driver, c.Kernels = driver, kernels
	if c.Steps == nil {
		c.Steps = make(map[string]T)
	}
	return c
}

// Get returns the choice for a key.
func (c *Cache[T]) Get(key string) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	choice, ok := c.Steps[key]
	return choice, ok
}

// Put remembers a choice. A file that cannot be written is done without.
func (c *Cache[T]) Put(key string, choice T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Steps[key] = choice
	if c.path == "" {
		return
	}
	data, err := json.MarshalIndent(c, "", "\t")
	if err != nil || os.MkdirAll(filepath.Dir(c.path), 0o755) != nil {
		return
	}
	_ = files.Replace(c.path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
