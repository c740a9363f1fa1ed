// Package kernels embeds the sources of the GPU kernels.
package kernels

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"sync"
)

// CL holds the OpenCL C sources. common.cl goes before each of the others.
//
//go:embed cl/*.cl
var CL embed.FS

// CLHash returns the SHA-256 of all of CL; empty if they cannot be read.
var CLHash = sync.OnceValue(func() string { return hash(CL) })

// PTX holds the CUDA kernels, compiled from cu/*.cu: cu/ptx/NAME.smXX.ptx for devices of
// compute capability X.X and later, where it differs from that of an older one, and
// NAME.smXXa.ptx for those of X.X alone.
// It is text: an archive would save programs a few MB and cost a repository its whole size
// with each change of a kernel.
//
//go:embed cu/ptx/*.ptx
var PTX embed.FS

// PTXHash returns the SHA-256 of all of PTX; empty if it cannot be read.
var PTXHash = sync.OnceValue(func() string { return hash(PTX) })

// ReadPTX returns the kernels compiled from cu/NAME.cu for devices of compute
// capability arch (90 for 9.0): of the file for these alone, or of the newest one that is not
// for newer ones.
func ReadPTX(name string, arch int) ([]byte, error) {
	entries, err := PTX.ReadDir("cu/ptx")
	if err != nil {
		return nil, err
	}
	newest, file := -1, ""
	for _, e := range entries {
		of := 0
		if e.Name() == fmt.Sprintf("%s.sm%da.ptx", name, arch) {
			return PTX.ReadFile("cu/ptx/" + e.Name())
		}
		if _, err := fmt.Sscanf(e.Name(), name+".sm%d.ptx", &of); err == nil && of <= arch && of > newest {
			newest, file = of, e.Name()
		}
	}
	if file == "" {
		return nil, fmt.Errorf("there is no PTX of %s.cu for sm_%d", name, arch)
	}
	return PTX.ReadFile("cu/ptx/" + file)
}

// hash returns the SHA-256 of the names, lengths and texts of all files.
func hash(files fs.FS) string {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		source, err := fs.ReadFile(files, path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(source), source)
		return err
	})
	if err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// KernelPTX returns the PTX of one kernel of a file, from the text of the whole file: a
// driver takes as long to compile a file as it has kernels.
func KernelPTX(text []byte, kernel string) ([]byte, error) {
	entry := []byte("\n.visible .entry ")
	start, at := bytes.Index(text, entry), bytes.Index(text, append(entry, kernel+"("...))
	if at < 0 {
		return nil, fmt.Errorf("the PTX has no kernel %s", kernel)
	}
	end := bytes.Index(text[at:], []byte("\n}\n"))
	if end < 0 {
		return nil, fmt.Errorf("the PTX of kernel %s has no end", kernel)
	}
	return slices.Concat(text[:start], text[at:at+end+len("\n}\n")]), nil
}
