package measure

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/bitcnn/bitcnn/internal/text"
)

// WriteBenchstatHeader writes what go test -bench prints first.
func WriteBenchstatHeader(w io.Writer) error {
	_, err := fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: github.com/bitcnn/bitcnn/cmd/bcnn\n", runtime.GOOS, runtime.GOARCH)
	return err
}

// WriteBenchstat writes the samples as go test -bench does, a line each.
func (m ModelResult) WriteBenchstat(w io.Writer) error {
	return writeBenchstat(w, "Model", []any{
		"model", filepath.Base(m.Model), "device", m.Device, "isa", m.ISA, "threads", m.Threads, "batch", m.Batch,
	}, m.Samples, m.MACs*int64(m.Batch))
}

// WriteBenchstat writes the samples as go test -bench does, a line each.
func (o OperatorResult) WriteBenchstat(w io.Writer) error {
	return writeBenchstat(w, "Op", []any{
		"op", o.Op, "device", o.Device, "isa", o.ISA, "threads", o.Threads, "batch", o.Batch,
	}, o.Samples, o.MACs)
}

// writeBenchstat writes lines that benchstat reads. The keys are pairs of a name
// and a value.
func writeBenchstat(w io.Writer, name string, keys []any, list []Sample, macs int64) error {
	for i := 0; i+1 < len(keys); i += 2 {
		value := strings.NewReplacer("/", "_", " ", "_").Replace(fmt.Sprint(keys[i+1]))
		name += fmt.Sprintf("/%v=%s", keys[i], text.Escape(value))
	}
	for _, s := range list {
		line := fmt.Sprintf("Benchmark%s\t%d\t%d ns/op", name, s.Runs, s.Mean.Nanoseconds())
		if macs > 0 && s.Mean > 0 {
			line += fmt.Sprintf("\t%.2f GMAC/s", float64(macs)/float64(s.Mean.Nanoseconds()))
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
