package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/models"
)

// TestCounts compares counts on pages with the code.
func TestCounts(t *testing.T) {
	root := testenv.Root(t)
	count := func(file, pattern string) int {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		return len(regexp.MustCompile(pattern).FindAll(text, -1))
	}
	systems := regexp.MustCompile(`(?s)platforms=\((.*?)\)`)
	release, err := os.ReadFile(filepath.Join(root, "scripts/release"))
	require.NoError(t, err)
	platforms := 0
	for _, word := range strings.Fields(systems.FindStringSubmatch(string(release))[1]) {
		if !strings.HasPrefix(word, "python/") {
			platforms++
		}
	}
	for _, c := range []struct {
		page, pattern string
		want          int
	}{
		{"docs/systems.md", `parity suite, (\d[\d,]*) cases`, len(parity.Cases())},
		{"docs/adding-a-kernel.md", "`parity.Core`, (\\d+) cases", len(parity.Core())},
		{"docs/adding-a-kernel.md", "`parity.Cover`, (\\d+) cases", len(parity.Cover())},
		{"docs/gpu.md", `puts (\d+) faults into copies of the CUDA code`, count("scripts/cuda-check", `(?m)^\t"[^"|]+\|`)},
		{"docs/gpu.md", `(\d+) into the OpenCL kernels`, count("scripts/opencl-check", `(?m)^fault "`)},
		{"docs/releasing.md", `for (\d+) systems`, platforms},
		{"README.md", `(\d+) trained networks`, len(models.All())},
		{"README.md", `(\d+) published topologies`, len(zoo.Networks())},
		{"README.md", `(\d+) commands`, count("cmd/bcnn/root.go", `\bnew[A-Z]\w*\(env\)`)},
		{"CONTRIBUTING.md", `(\d+) pages`, len(pages(t, root))},
	} {
		text, err := os.ReadFile(filepath.Join(root, c.page))
		require.NoError(t, err)
		told := regexp.MustCompile(c.pattern).FindStringSubmatch(string(text))
		require.NotNil(t, told, "%s does not tell %q", c.page, c.pattern)
		n, err := strconv.Atoi(strings.ReplaceAll(told[1], ",", ""))
		require.NoError(t, err)
		if n != c.want {
			t.Errorf("%s tells %q, but there are %d", c.page, told[0], c.want)
		}
	}
}
