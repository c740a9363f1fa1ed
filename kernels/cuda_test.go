package kernels

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	define         = regexp.MustCompile(`(?m)^\s*#define (\w+)(?:\(([^)]*)\))?[ \t]+(.*)$`)
	cudaEntry      = regexp.MustCompile(`extern "C" __global__ void\s+(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s+)?(\w+)\s*\(([^)]*)\)`)
	ptxEntry       = regexp.MustCompile(`\.visible \.entry (\w+)\(`)
	definition     = regexp.MustCompile(`(?m)^#define (?:.*\\\n)*.*$`)
	includedSource = regexp.MustCompile(`(?m)^#include "(.*\.cu)"$`)
	parameter      = regexp.MustCompile(`\.param [^\n]*_param_\d+`)
)

// expand replaces the macros of a source whose names it finds, again and again;
// enough for the macros that declare entries.
func expand(source string) string {
	type macro struct{ parameters, body string }
	macros := make(map[string]macro)
	source = strings.ReplaceAll(source, "\\\n", " ")
	for _, m := range define.FindAllStringSubmatch(source, -1) {
		macros[m[1]] = macro{m[2], m[3]}
	}
	source = define.ReplaceAllString(source, "")
	for range 4 {
		for name, m := range macros {
			if m.parameters == "" {
				source = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllLiteralString(source, m.body)
				continue
			}
			use := regexp.MustCompile(`\b` + name + `\(((?:[^()]|\([^()]*\))*)\)`)
			source = use.ReplaceAllStringFunc(source, func(text string) string {
				values := arguments(use.FindStringSubmatch(text)[1])
				body := m.body
				for i, p := range strings.Split(m.parameters, ",") {
					if i < len(values) {
						body = regexp.MustCompile(`(\s*##\s*)?\b`+strings.TrimSpace(p)+`\b(\s*##\s*)?`).
							ReplaceAllLiteralString(body, strings.TrimSpace(values[i]))
					}
				}
				return body
			})
		}
	}
	return source
}

// arguments splits at the commas outside parentheses.
func arguments(text string) []string {
	var all []string
	depth, start := 0, 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				all = append(all, text[start:i])
				start = i + 1
			}
		}
	}
	return append(all, text[start:])
}

// cudaEntries are the entries of the CUDA sources with the names of their pointers
// in order, by file.
func cudaEntries(t *testing.T) map[string]map[string]string {
	all := make(map[string]map[string]string)
	files, err := filepath.Glob("cu/*.cu")
	require.NoError(t, err)
	common, err := os.ReadFile("cu/common.cuh") // macros that declare entries
	require.NoError(t, err)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(path), ".cu")
		all[name] = make(map[string]string)
		macros := string(common)
		for _, m := range includedSource.FindAllStringSubmatch(string(text), -1) {
			included, err := os.ReadFile("cu/" + m[1])
			require.NoError(t, err)
			macros += strings.Join(definition.FindAllString(string(included), -1), "\n") + "\n"
		}
		for _, m := range cudaEntry.FindAllStringSubmatch(expand(comment.ReplaceAllString(macros+string(text), "")), -1) {
			var names []string
			for _, p := range strings.Split(m[2], ",") {
				if word := lastWord.FindStringSubmatch(p); word != nil {
					names = append(names, word[1])
				}
			}
			// Architectures may have a form each.
			if other, ok := all[name][m[1]]; ok {
				require.Equal(t, other, strings.Join(names, " "), "%s in %s", m[1], path)
			}
			all[name][m[1]] = strings.Join(names, " ")
		}
	}
	return all
}

// ofOpenCLAlone are the kernels that CUDA has in other forms, or none.
var ofOpenCLAlone = []string{
	"affine", "conv_bits", "conv_planes", "conv_values", "conv_vectors", "dense_reduce", "dense_segments", "probe",
}

// TestEntriesOfCUDA: a kernel that OpenCL has, too, takes its pointers in the same
// order, after the geometry; local memory is no parameter here.
func TestEntriesOfCUDA(t *testing.T) {
	shared := map[string]bool{}
	for file, of := range cudaEntries(t) {
		for name, parameters := range of {
			opencl, ok := entries[name]
			if !ok {
				continue
			}
			shared[name] = true
			want := "g " + strings.TrimSuffix(strings.ReplaceAll(opencl, " tile", ""), " g")
			require.Equal(t, want, parameters, "%s in %s.cu", name, file)
		}
	}
	for name := range entries {
		require.Equal(t, !slices.Contains(ofOpenCLAlone, name), shared[name], "%s is a kernel of CUDA, too", name)
	}
}

// TestPTX: there are kernels for every architecture, they were made of the source as
// it is, and have the entries of the source.
func TestPTX(t *testing.T) {
	headers := ""
	for _, pattern := range []string{"cu/*.cuh", "cu/*.h"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range files {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			headers += string(text)
		}
	}
	embedded := embeddedPTX(t)
	files := make(map[string]bool) // by their first line
	for name, of := range cudaEntries(t) {
		source, err := os.ReadFile("cu/" + name + ".cu")
		require.NoError(t, err)
		included := ""
		for _, m := range includedSource.FindAllStringSubmatch(string(source), -1) {
			text, err := os.ReadFile("cu/" + m[1])
			require.NoError(t, err)
			included += string(text)
		}
		sum := sha256.Sum256([]byte(string(source) + included + headers))
		seen := make(map[string]bool)
		archs := []int{53, 61, 75, 80, 90}
		if len(embedded[name+".sm90a.ptx"]) > 0 { // for that alone
			archs = archs[4:]
			_, err := ReadPTX(name, 100)
			require.ErrorContains(t, err, "no PTX of "+name+".cu for sm_100")
		}
		for _, arch := range archs {
			path := fmt.Sprint(name, " for sm_", arch)
			text, err := ReadPTX(name, arch)
			require.NoError(t, err)
			first, _, _ := strings.Cut(string(text), "\n")
			require.Regexp(t, `^// `+name+`\.cu sm_\d\da? sha256:`+hex.EncodeToString(sum[:])+`$`, first, "run make ptx")
			files[first] = true
			for _, m := range ptxEntry.FindAllStringSubmatchIndex(string(text), -1) {
				entry := string(text[m[2]:m[3]])
				seen[entry] = true
				require.Contains(t, of, entry, path)
				declaration, _, _ := strings.Cut(string(text[m[1]:]), ")")
				require.Len(t, parameter.FindAllString(declaration, -1), len(strings.Fields(of[entry])), "%s in %s", entry, path)
			}
		}
		require.Len(t, seen, len(of), name) // each for some architecture
	}
	require.Len(t, embedded, len(files))
	_, err := ReadPTX("binarize", 52)
	require.ErrorContains(t, err, "no PTX of binarize.cu for sm_52")
	_, err = ReadPTX("binar", 90)
	require.Error(t, err)
}

// TestEarlyKernels: on devices that begin a kernel before the one ahead has ended, a
// kernel that waits for that does so before it writes, and before it reads what is not
// constant; and no thread ends without. Those that do not wait are not begun early.
func TestEarlyKernels(t *testing.T) {
	waits := regexp.MustCompile(`\tgriddepcontrol\.wait;`)
	touches := regexp.MustCompile(`\t(st|st\.global|ld|ld\.global|atom|red|cp\.async)[.\w]* |\tret;`)
	harmless := regexp.MustCompile(`\tld\.(global\.nc|param|shared)|\tst\.shared`)
	found := 0
	for name, text := range embeddedPTX(t) {
		file, arch, _ := strings.Cut(strings.TrimSuffix(name, ".ptx"), ".sm")
		if !strings.HasPrefix(arch, "90") {
			require.NotContains(t, text, "griddepcontrol", name)
			continue
		}
		for _, m := range ptxEntry.FindAllStringSubmatchIndex(text, -1) {
			entry := text[m[2]:m[3]]
			body, _, _ := strings.Cut(text[m[1]:], "\n}\n")
			at := waits.FindStringIndex(body)
			if at == nil {
				require.Contains(t, []string{"network", "steps", "peaks", "peaks_wgmma", "peaks_wgmma_bytes", "conv_wgmma", "conv_wgmma_bytes"}, file, "%s does not wait", entry)
				continue
			}
			found++
			for _, touch := range touches.FindAllString(body[:at[0]], -1) {
				if strings.HasPrefix(entry, "dense_warp") && strings.HasPrefix(touch, "\tld.global.v2.u32 ") {
					continue // weights
				}
				require.Regexp(t, harmless, touch, "%s in %s, before it waits", entry, name)
			}
		}
	}
	require.Greater(t, found, 80)
}

// embeddedPTX returns the embedded files by name.
func embeddedPTX(t *testing.T) map[string]string {
	names, err := fs.Glob(PTX, "cu/ptx/*")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	texts := make(map[string]string)
	for _, name := range names {
		text, err := PTX.ReadFile(name)
		require.NoError(t, err)
		texts[path.Base(name)] = string(text)
	}
	return texts
}

// TestFloatContractOfCUDA: sums and products of floats say how they round, and
// nothing asks for other arithmetic.
func TestFloatContractOfCUDA(t *testing.T) {
	forbidden := regexp.MustCompile(`\b(fmaf?|__fmul_r[zud]|__fmaf_r[zud]|__fadd_r[zud]|__fdividef|__expf|use_fast_math|ftz)\b`)
	files, err := filepath.Glob("cu/*.cu*")
	require.NoError(t, err)
	require.Greater(t, len(files), 10)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Empty(t, forbidden.FindString(comment.ReplaceAllString(string(text), "")), path)
	}
	contracted := regexp.MustCompile(`\b(fma\.rn\.ftz|mul\.f32|add\.f32|sub\.f32|mad\.f32|\w+\.ftz\.f32|\w+\.approx)`)
	for name, text := range embeddedPTX(t) {
		require.Empty(t, contracted.FindString(text), name)
	}
}

// TestKernelPTX: the kernels of a file make the whole file again.
func TestKernelPTX(t *testing.T) {
	for name, file := range embeddedPTX(t) {
		text := []byte(file)
		var whole []byte
		for _, m := range ptxEntry.FindAllSubmatch(text, -1) {
			one, err := KernelPTX(text, string(m[1]))
			require.NoError(t, err)
			require.Equal(t, 1, bytes.Count(one, []byte(".entry ")), name)
			at := bytes.Index(one, []byte("\n.visible"))
			if whole == nil {
				whole = one[:at:at]
			}
			require.Equal(t, string(whole[:at]), string(one[:at]), name)
			whole = append(whole, one[at:]...)
		}
		if whole == nil { // no kernels
			continue
		}
		packed := func(text []byte) string { return strings.ReplaceAll(string(text), "\n\n.visible", "\n.visible") }
		require.Equal(t, packed(text), packed(whole), name)
	}
	_, err := KernelPTX([]byte("\n.visible .entry a(\n{\n}\n"), "b")
	require.ErrorContains(t, err, "no kernel b")
	_, err = KernelPTX([]byte("\n.visible .entry a(\n{\n"), "a")
	require.ErrorContains(t, err, "no end")
}
