package costtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestSteps reads the files of all formats at full length, on copies of the code that count their
// steps.
func TestSteps(t *testing.T) {
	testenv.Long(t)
	if _, err := exec.LookPath("go"); err != nil {
		testenv.Absent(t, "go", err)
	}
	dir := t.TempDir()
	run := func(args ...string) {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir, c.Env = testenv.Root(t), append(os.Environ(), variable+"=1")
		out, err := c.CombinedOutput()
		require.NoError(t, err, "go %s\n%s", args, out)
	}
	run("run", "./internal/steps/instrument", "-o", dir, "./bcnn/...", "./internal/transposed")
	run("test", "-count=1", "-overlay", filepath.Join(dir, "overlay.json"), "-run", "^(TestCost|FuzzCost)$",
		"./bcnn/bmxnet", "./bcnn/darknet", "./bcnn/lower", "./bcnn/modelfile", "./bcnn/onnx", "./bcnn/openvino", "./bcnn/simplify", "./bcnn/tflite")
}
