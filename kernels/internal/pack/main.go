// Command pack writes kernels/cu/ptx.zip, the archive of kernels/cu/ptx that is
// embedded in programs. It runs in the folder of package kernels.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := pack("cu/ptx", "cu/ptx.zip"); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// pack writes the PTX files of a folder, in the order of their names and without
// times, so that the same files give the same archive.
func pack(dir, archive string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.ptx"))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		entry, err := w.Create(filepath.Base(file))
		if err != nil {
			return err
		}
		if _, err := entry.Write(text); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(archive, out.Bytes(), 0o644)
}
