//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"sort"
	"strconv"
	"sync"

	"github.com/bitcnn/bitcnn/kernels"
)

// ptxVariant is the kernels for devices from a compute capability on.
type ptxVariant struct {
	arch    int // 75 for 7.5
	version int // of the PTX language, 78 for 7.8
}

// driver is the oldest CUDA version whose driver knows the language, as
// cuDriverGetVersion counts: 11080 for 11.8. (PTX ISA, Release Notes.)
func (v ptxVariant) driver() int {
	major, minor := v.version/10, v.version%10
	switch {
	case major == 6 && minor < 3:
		return 9000 + 10*minor
	case major == 6:
		return 10000 + 10*(minor-3)
	}
	return (major+4)*1000 + 10*minor
}

var (
	ptxName     = regexp.MustCompile(`^(\w+)\.sm(\d+)\.ptx$`)
	ptxLanguage = regexp.MustCompile(`(?m)^\.version (\d)\.(\d)`)
)

// ptxVariants lists what is embedded, the oldest first.
var ptxVariants = sync.OnceValues(func() ([]ptxVariant, error) {
	files, err := kernels.PTX()
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	versions := make(map[int]int)
	for _, e := range entries {
		m := ptxName.FindStringSubmatch(e.Name())
		if m == nil {
			return nil, fmt.Errorf("%s is no name of a PTX file", e.Name())
		}
		version, err := ptxVersion(files, e.Name())
		if err != nil {
			return nil, err
		}
		arch, _ := strconv.Atoi(m[2])
		versions[arch] = max(versions[arch], version)
	}
	var variants []ptxVariant
	for arch, version := range versions {
		variants = append(variants, ptxVariant{arch, version})
	}
	sort.Slice(variants, func(i, j int) bool { return variants[i].arch < variants[j].arch })
	return variants, nil
})

// ptxVersion returns the version of the language that a file is written in, 78 for
// 7.8. It stands in its first lines.
func ptxVersion(files fs.FS, name string) (int, error) {
	f, err := files.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return 0, err
	}
	m := ptxLanguage.FindSubmatch(head)
	if m == nil {
		return 0, fmt.Errorf("%s has no PTX version", name)
	}
	return 10*int(m[1][0]-'0') + int(m[2][0]-'0'), nil
}

// chooseVariant returns the newest kernels for a compute capability (75 for 7.5)
// and a driver. The error says what is too old.
func chooseVariant(variants []ptxVariant, capability, driver int) (ptxVariant, error) {
	if len(variants) == 0 {
		return ptxVariant{}, fmt.Errorf("no kernels in this build")
	}
	oldest := variants[0]
	if capability < oldest.arch {
		return oldest, fmt.Errorf("compute capability %d.%d, and %d.%d is needed", capability/10, capability%10, oldest.arch/10, oldest.arch%10)
	}
	needed := 0
	for i := len(variants) - 1; i >= 0; i-- {
		v := variants[i]
		if v.arch > capability {
			continue
		}
		if needed = v.driver(); needed <= driver {
			return v, nil
		}
	}
	return oldest, fmt.Errorf("its driver is too old: it supports CUDA %s, and the kernels need %s; update the driver", cudaVersion(driver), cudaVersion(needed))
}

func cudaVersion(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// kernelHash is the SHA-256 of all PTX.
var kernelHash = sync.OnceValue(kernels.PTXHash)
