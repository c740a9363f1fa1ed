// Package ptx knows for which devices and drivers the embedded CUDA kernels are.
package ptx

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"sync"

	"github.com/bitcnn/bitcnn/kernels"
)

// variant is the kernels for devices from a compute capability on.
type variant struct {
	arch    int // 75 for 7.5
	version int // of the PTX language, 78 for 7.8
}

// driver is the oldest CUDA version whose driver knows the language, as
// cuDriverGetVersion counts: 11080 for 11.8. (PTX ISA, Release Notes.)
func (v variant) driver() int {
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
	fileName = regexp.MustCompile(`^(\w+)\.sm(\d+)(a?)\.ptx$`)
	language = regexp.MustCompile(`(?m)^\.version (\d)\.(\d)`)
)

// variants lists what is embedded, the oldest first.
var variants = sync.OnceValues(func() ([]variant, error) {
	entries, err := kernels.PTX.ReadDir("cu/ptx")
	if err != nil {
		return nil, err
	}
	versions := make(map[int]int)
	for _, e := range entries {
		m := fileName.FindStringSubmatch(e.Name())
		if m == nil {
			return nil, fmt.Errorf("%s is no name of a PTX file", e.Name())
		}
		if m[3] != "" { // of that architecture alone, beside the others
			continue
		}
		version, err := languageOf(e.Name())
		if err != nil {
			return nil, err
		}
		arch, _ := strconv.Atoi(m[2])
		versions[arch] = max(versions[arch], version)
	}
	var variants []variant
	for arch, version := range versions {
		variants = append(variants, variant{arch, version})
	}
	sort.Slice(variants, func(i, j int) bool { return variants[i].arch < variants[j].arch })
	return variants, nil
})

// languageOf returns the version of the language that a file is written in, 78 for
// 7.8. It stands in its first lines.
func languageOf(name string) (int, error) {
	text, err := kernels.PTX.ReadFile("cu/ptx/" + name)
	if err != nil {
		return 0, err
	}
	m := language.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%s has no PTX version", name)
	}
	return 10*int(m[1][0]-'0') + int(m[2][0]-'0'), nil
}

// Choose returns the architecture (75 for 7.5) of the newest embedded kernels for a
// compute capability and a driver, as cuDriverGetVersion counts. The error says what is
// too old.
func Choose(capability, driver int) (arch int, err error) {
	all, err := variants()
	if err != nil {
		return 0, err
	}
	v, err := choose(all, capability, driver)
	return v.arch, err
}

// Warpgroups reports whether a device and its driver take the kernels for sm_90a, which
// multiply bits and bytes by warpgroups: only compute capability 9.0 has such instructions.
func Warpgroups(capability, driver int) (bits, bytes bool) {
	takes := func(version int) bool { return capability == 90 && driver >= variant{90, version}.driver() }
	return takes(80), takes(84)
}

// choose returns the newest kernels for a compute capability (75 for 7.5)
// and a driver. The error says what is too old.
func choose(all []variant, capability, driver int) (variant, error) {
	if len(all) == 0 {
		return variant{}, fmt.Errorf("no kernels in this build")
	}
	oldest := all[0]
	if capability < oldest.arch {
		return oldest, fmt.Errorf("compute capability %d.%d, and %d.%d is needed", capability/10, capability%10, oldest.arch/10, oldest.arch%10)
	}
	needed := 0
	for i := len(all) - 1; i >= 0; i-- {
		v := all[i]
		if v.arch > capability {
			continue
		}
		if needed = v.driver(); needed <= driver {
			return v, nil
		}
	}
	return oldest, fmt.Errorf("its driver is too old: it supports CUDA %s, and the kernels need %s; update the driver", Version(driver), Version(needed))
}

// Version writes a version of CUDA, as cuDriverGetVersion counts.
func Version(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
