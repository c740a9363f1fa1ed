package kernels

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// entries are the kernels with the names of their parameters in order: what the
// host sets by number.
var entries = map[string]string{
	"conv_bits":       "in out weights masks thresholds scale shift slope flip rows cols correction g",
	"conv_values":     "in out weights bias thresholds scale shift slope flip g",
	"dense_segments":  "in weights sums g",
	"dense_reduce":    "in weights sums g",
	"finish":          "sums out thresholds scale shift slope flip rows cols correction g",
	"pack_patches":    "in patches tile g",
	"pack_image":      "in patches thresholds ranges flip tile g",
	"xor_gemm":        "patches weights sums g",
	"image_ranges":    "in ranges g",
	"binarize":        "in out thresholds ranges flip g",
	"max_pool_bits":   "in out flip g",
	"max_pool_float":  "in out g",
	"max_pool_bytes":  "in out g",
	"avg_pool_bits":   "in out divisors g",
	"avg_pool_float":  "in out divisors g",
	"affine":          "in out scale shift slope g",
	"table_float":     "in out table g",
	"table_bytes":     "in out table g",
	"table_bits":      "in out table g",
	"sign_bits":       "in out thresholds flip g",
	"quantize":        "in out thresholds g",
	"quantize_bytes":  "in out thresholds g",
	"add":             "a b out slope g",
	"pair":            "a b out g",
	"gather_float":    "in out index g",
	"gather_bits":     "in out index g",
	"pixels_float":    "in out index g",
	"probe":           "in out",
	"pixels_bits":     "in out index g",
	"resample":        "in out index weights g",
	"top_k":           "in out g",
	"flatten_bits":    "in out g",
	"flatten_float":   "in out g",
	"matmul_bits":     "a b out g",
	"matmul_float":    "a b out g",
	"transpose_bits":  "in out g",
	"transpose_float": "in out g",
	"conv_planes":     "in out weights masks thresholds scale shift slope flip rows cols correction g",
	"max_pool_planes": "in out flip g",
	"conv_vectors":    "in out weights thresholds scale shift slope flip rows cols correction g",
}

var (
	comment   = regexp.MustCompile(`//[^\n]*`)
	attribute = regexp.MustCompile(`__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)`)
	signature = regexp.MustCompile(`__kernel\s+void\s+(\w+)\s*\(([^)]*)\)`)
	lastWord  = regexp.MustCompile(`(\w+)\s*$`)
)

func clSources(t *testing.T) map[string]string {
	sources := make(map[string]string)
	require.NoError(t, fs.WalkDir(CL, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := CL.ReadFile(path)
		sources[path] = attribute.ReplaceAllString(comment.ReplaceAllString(string(text), ""), "")
		return err
	}))
	return sources
}

func TestEntriesOfCL(t *testing.T) {
	found := make(map[string]string)
	for path, source := range clSources(t) {
		require.Equal(t, strings.Count(source, "__kernel"), len(signature.FindAllString(source, -1)), path)
		for _, m := range signature.FindAllStringSubmatch(source, -1) {
			var names []string
			for _, parameter := range strings.Split(m[2], ",") {
				names = append(names, lastWord.FindStringSubmatch(parameter)[1])
			}
			require.NotContains(t, found, m[1], path)
			found[m[1]] = strings.Join(names, " ")
		}
	}
	require.Equal(t, entries, found)
}

// TestFloatContract forbids what would round otherwise than the numeric contract.
func TestFloatContract(t *testing.T) {
	sources := clSources(t)
	require.Contains(t, sources["cl/common.cl"], "#pragma OPENCL FP_CONTRACT OFF")
	forbidden := regexp.MustCompile(`\b(mad|native_\w+|half_\w+|FP_CONTRACT ON)\b`)
	for path, source := range sources {
		require.Empty(t, forbidden.FindString(source), path)
	}
}

func TestCLHash(t *testing.T) {
	require.Regexp(t, `^[0-9a-f]{64}$`, CLHash())
	require.Equal(t, CLHash(), CLHash())
}
