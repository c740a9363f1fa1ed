package tuning

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/bitcnn/bitcnn/internal/files"
)

// Programs keeps compiled programs in files of the user's, each by the hash of all that it depends
// on, so that a process starts without a compiler. As choices are, they are only ever an aid.
type Programs struct {
	dir    string // empty for none
	prefix string
}

// programFile is the form of the names of the files, with the backend and a hash.
var programFile = regexp.MustCompile(`^[a-z]+-[0-9a-f]{32}\.program$`)

const (
	// programMagic begins each file. The hash of what it depends on and that of the program follow.
	programMagic = "bitcnn program 1\n"
	programHead  = len(programMagic) + 2*sha256.Size
	// maxProgram is larger than any program.
	maxProgram = 64 << 20
)

// LoadPrograms returns the programs of a backend, in a folder beside the choices. Those that nobody
// has used for MaxAge are removed.
func LoadPrograms(backend string) *Programs {
	dir, err := folder()
	if err != nil {
		return ProgramsIn("", backend)
	}
	return ProgramsIn(filepath.Join(dir, "programs"), backend)
}

// ProgramsIn is LoadPrograms for another folder; empty for none.
func ProgramsIn(dir, backend string) *Programs {
	p := &Programs{dir: dir, prefix: backend}
	if dir != "" {
		_, _ = removeFiles(dir, programFile, func(f fs.FileInfo) bool { return time.Since(f.ModTime()) > MaxAge })
	}
	return p
}

// programKey is the hash of what a program depends on.
func programKey(of []string) []byte {
	h := sha256.New()
	for _, part := range of {
		fmt.Fprintf(h, "%d:", len(part))
		io.WriteString(h, part)
	}
	return h.Sum(nil)
}

func (p *Programs) path(key []byte) string {
	return filepath.Join(p.dir, p.prefix+"-"+hex.EncodeToString(key[:16])+".program")
}

// Get returns the program that depends on these; nil if there is none, or what the file holds is
// another one or was damaged.
func (p *Programs) Get(of ...string) []byte {
	if p.dir == "" {
		return nil
	}
	key := programKey(of)
	path := p.path(key)
	data, err := files.ReadAll(path, maxProgram)
	if err != nil || len(data) <= programHead || string(data[:len(programMagic)]) != programMagic {
		return nil
	}
	head, program := data[len(programMagic):programHead], data[programHead:]
	sum := sha256.Sum256(program)
	if !bytes.Equal(head[:sha256.Size], key) || !bytes.Equal(head[sha256.Size:], sum[:]) {
		return nil
	}
	if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // it is in use
	}
	return program
}

// Put keeps a program. A file that cannot be written is done without.
func (p *Programs) Put(program []byte, of ...string) {
	if p.dir == "" || len(program) == 0 || programHead+len(program) > maxProgram || os.MkdirAll(p.dir, 0o700) != nil {
		return
	}
	key, sum := programKey(of), sha256.Sum256(program)
	_ = files.Replace(p.path(key), func(w io.Writer) error {
		for _, part := range [][]byte{[]byte(programMagic), key, sum[:], program} {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
}

// Remove removes a program that the driver does not take.
func (p *Programs) Remove(of ...string) {
	if p.dir != "" {
		_ = os.Remove(p.path(programKey(of)))
	}
}
