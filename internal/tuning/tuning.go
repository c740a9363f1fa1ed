// Package tuning remembers what was the fastest on a device, in a file that other
// processes use, too. The file is only ever an aid: where it cannot be read, or
// holds nonsense, measuring takes its place.
package tuning

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/bitcnn/bitcnn/internal/files"
)

const (
	// MaxAge is how long a choice is of use: drivers, clocks and what else runs on a
	// machine change, and the load that falsified all rounds alike shows in none.
	MaxAge = 30 * 24 * time.Hour
	// MaxDoubt is the doubt up to which a choice is as good as another.
	MaxDoubt = 0.05
	// DoubtfulAge is how long a choice with a larger doubt is of use.
	DoubtfulAge = 24 * time.Hour
)

// Entry is a choice between the candidates of a step.
type Entry struct {
	Step    string // what the step does, in words
	Variant string
	Name    string `json:",omitempty"` // of the candidate among those of its variant
	Groups  []int  `json:",omitempty"` // work-items of a work-group, per kernel
	// Wrong names candidates that compute something else than the others.
	Wrong []string `json:",omitempty"`

	Measured time.Time
	Seconds  float64 // that it took for the whole batch
	// Doubt is the share of Seconds by which another candidate may be faster, if its
	// rounds were slowed down by as much as they lie apart. It is large where a
	// machine was busy.
	Doubt float64
}

// Lasts is until when a choice is of use.
func (e Entry) Lasts() time.Time {
	if e.Doubt > MaxDoubt {
		return e.Measured.Add(DoubtfulAge)
	}
	return e.Measured.Add(MaxAge)
}

// current reports whether the choice is of use. Times of the future are nonsense.
func (e Entry) current(now time.Time) bool {
	return now.Before(e.Lasts()) && e.Measured.Before(now.Add(time.Hour))
}

// contents are what a file holds.
type contents struct {
	Device  string // its name
	Driver  string // all that tells one device and driver from another
	Kernels string // their hash
	Steps   map[string]Entry
	// Refused says what the driver has refused, and when it last did.
	Refused map[string]time.Time `json:",omitempty"`
}

// maxRefused bounds how many refusals are kept: a driver that refuses more says nothing new.
const maxRefused = 64

// Cache holds choices by key. It is safe for concurrent use.
type Cache struct {
	mu   sync.Mutex
	path string // empty for none
	contents
}

// fileName is the form of the names of the files, with the backend and a hash.
var fileName = regexp.MustCompile(`^([a-z]+)-[0-9a-f]{16}\.json$`)

// folder is where the files are; the error says that the user has no such folder.
func folder() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "bitcnn"), nil
}

// Path is where the choices of a backend for a driver and kernels are kept; empty
// where the user has no folder for such files.
func Path(backend, driver, kernels string) string {
	dir, err := folder()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(driver + "|" + kernels))
	return filepath.Join(dir, backend+"-"+hex.EncodeToString(sum[:8])+".json")
}

// maxBytes is more than any file that Put writes.
const maxBytes = 16 << 20

func read(path string) (c contents, err error) {
	data, err := files.ReadAll(path, maxBytes)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err
}

// Load reads the file, if there is one for this driver and these kernels. Files beside
// it that have not been written for MaxAge are removed: all they hold is too old, such
// as what was measured with an earlier driver.
func Load(device, driver, kernels, path string) *Cache {
	now := time.Now()
	c := &Cache{path: path}
	var err error
	if c.contents, err = read(path); err != nil || c.Driver != driver || c.Kernels != kernels {
		c.Steps, c.Refused = nil, nil
	}
	c.Device, c.Driver, c.Kernels = device, driver, kernels
	if c.Steps == nil {
		c.Steps = make(map[string]Entry)
	}
	if c.Refused == nil {
		c.Refused = make(map[string]time.Time)
	}
	maps.DeleteFunc(c.Steps, func(_ string, e Entry) bool { return !e.current(now) })
	maps.DeleteFunc(c.Refused, func(_ string, at time.Time) bool { return now.Sub(at) > MaxAge })
	if path != "" {
		_, _ = removeFiles(filepath.Dir(path), fileName, func(f fs.FileInfo) bool { return now.Sub(f.ModTime()) > MaxAge })
	}
	return c
}

// removeFiles removes the files of a folder that have such names and are to go.
func removeFiles(dir string, names *regexp.Regexp, gone func(fs.FileInfo) bool) (removed []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if !names.MatchString(entry.Name()) || !entry.Type().IsRegular() {
			continue
		}
		if info, infoErr := entry.Info(); infoErr != nil || !gone(info) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		switch failed := os.Remove(path); {
		case failed == nil:
			removed = append(removed, path)
		case !errors.Is(failed, fs.ErrNotExist):
			err = errors.Join(err, failed)
		}
	}
	return removed, err
}

// Get returns the choice for a key, unless it is to be measured again.
func (c *Cache) Get(key string) (Entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.Steps[key]
	return e, ok && e.current(time.Now())
}

// Put remembers a choice, as measured now unless it says when. A file that cannot be
// written is done without.
func (c *Cache) Put(key string, e Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Measured.IsZero() {
		e.Measured = time.Now().UTC().Round(time.Second)
	}
	c.Steps[key] = e
	c.write()
}

// Refuse notes what the driver has refused, in a line. It writes the file once a day at most
// for the same.
func (c *Cache) Refuse(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().UTC().Round(time.Second)
	at, known := c.Refused[what]
	if known && now.Sub(at) < 24*time.Hour || !known && len(c.Refused) >= maxRefused {
		return
	}
	c.Refused[what] = now
	c.write()
}

// Refusals lists what the driver has refused in the last MaxAge.
func (c *Cache) Refusals() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.Refused))
}

// write writes the file, under the lock.
func (c *Cache) write() {
	if c.path == "" {
		return
	}
	data, err := json.MarshalIndent(c.contents, "", "\t")
	if err != nil || os.MkdirAll(filepath.Dir(c.path), 0o755) != nil {
		return
	}
	_ = files.Replace(c.path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// File is a file of choices.
type File struct {
	Path    string
	Backend string
	Device  string
	Driver  string
	Entries []Entry // the latest first
	Err     error   // why the file cannot be read
}

// List returns the files of the user, by path.
func List() ([]File, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []File
	for _, entry := range entries {
		m := fileName.FindStringSubmatch(entry.Name())
		if m == nil {
			continue
		}
		f := File{Path: filepath.Join(dir, entry.Name()), Backend: m[1]}
		var c contents
		if c, f.Err = read(f.Path); f.Err == nil {
			f.Device, f.Driver = c.Device, c.Driver
			f.Entries = slices.SortedFunc(maps.Values(c.Steps), func(a, b Entry) int { return b.Measured.Compare(a.Measured) })
		}
		all = append(all, f)
	}
	return all, err
}

// Clear removes the files that List returns and all compiled programs, and says which. Processes
// that have loaded one keep what they know.
func Clear() ([]string, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	all := func(fs.FileInfo) bool { return true }
	removed, err := removeFiles(dir, fileName, all)
	programs, programsErr := removeFiles(filepath.Join(dir, "programs"), programFile, all)
	return append(removed, programs...), errors.Join(err, programsErr)
}
