package bitcnn

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	require.Regexp(t, `^`+regexp.QuoteMeta(release)+`-dev(\+[0-9a-f]{7}(\.dirty)?)?$`, Version())
	linked = "v1.2.3"
	require.Equal(t, "v1.2.3", Version())
	linked = ""
	for _, c := range []struct{ module, commit, want string }{
		{"v1.2.3", "", "v1.2.3"},
		{"v1.2.3", "0123456", "v1.2.3"},
		{"(devel)", "", release + "-dev"},
		{"(devel)", "0123456.dirty", release + "-dev+0123456.dirty"},
		{"", "", release + "-dev"},
		{"v0.0.0-20261123071500-efcb69e01234", "", release + "-dev+efcb69e"},
		{"v0.0.0-20261123071500-efcb69e01234+dirty", "efcb69e.dirty", release + "-dev+efcb69e.dirty"},
		{"v0.1.1-0.20261123071500-efcb69e01234", "", release + "-dev+efcb69e"},
	} {
		require.Equal(t, c.want, versionOf(c.module, c.commit), c.module)
	}
	require.Equal(t, "efcb69e.dirty", commitOf([]debug.BuildSetting{{Key: "vcs.revision", Value: "efcb69e012345678"}, {Key: "vcs.modified", Value: "true"}}))
	require.Empty(t, commitOf(nil))
	header, err := os.ReadFile("capi/include/bitcnn.h")
	require.NoError(t, err)
	var numbers []string
	for _, m := range regexp.MustCompile(`#define BITCNN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)`).FindAllStringSubmatch(string(header), -1) {
		numbers = append(numbers, m[1])
	}
	require.Equal(t, release, "v"+strings.Join(numbers, "."))
	python, err := os.ReadFile("python/src/bitcnn/__init__.py")
	require.NoError(t, err)
	require.Contains(t, string(python), fmt.Sprintf("__version__ = %q", release[1:]+".dev0"))
}
