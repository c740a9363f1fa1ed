package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUsageErrors(t *testing.T) {
	file := writeFile(t, filepath.Join(t.TempDir(), "x"), "x")
	for _, c := range []struct{ args, want string }{
		{"clasify", `unknown command "clasify"; did you mean "classify"?`},
		{"frobnicate", `unknown command "frobnicate"`},
		{"help frobnicate", `no command "frobnicate"`},
		{"completion", "bash, zsh"},
		{"completion tcsh", `"tcsh"`},
		{"--nope", "unknown flag: --nope"},
		{"classify", "classify needs an image, a folder of images, or -"},
		{"classify --mdoel digits x.png", "unknown flag: --mdoel; did you mean --model?"},
		{"bench --iso avx2", "did you mean --isa?"},
		{"classify --nope x.png", "unknown flag: --nope"},
		{"classify --json=perhaps x.png", "invalid argument"},
		{"classify - x.png -", "only once"},
		{"eval", "--data"},
		{"eval x --data y", `eval takes no arguments, but got "x"; use --model and --data`},
		{"eval --model digits --data . --labels x", "is a folder"},
		{"eval --model digits --data " + file, "--labels"},
		{"convert", "convert needs a model: a file"},
		{"convert a.onnx b.onnx -o c.bcnn", `convert takes one argument, a model: a file, a folder, or a name of the zoo; the second one is "b.onnx"`},
		{"convert a.onnx", "-o"},
		{"convert a.onnx -o b.onnx", "*.bcnn"},
		{"convert a.onnx -o b.bcnn --from keras", `"keras"`},
		{"convert a.onnx -o b.bcnn --mode norm --from onnx", "BinCNN"},
		{"convert a --from bincnn -o b.bcnn", `--mode ""`},
		{"convert a --from bincnn --mode grey -o b.bcnn", `--mode "grey"`},
		{"convert a --from bincnn --mode norm --scale 2 -o b.bcnn", "--scale is for ONNX"},
		{"convert a.onnx -o b.bcnn --input int8", `--input "int8"`},
		{"convert a.onnx -o b.bcnn --sign-zero zero", `--sign-zero "zero"`},
		{"convert a.onnx -o b.bcnn --override-zeros", "needs --sign-zero"},
		{"convert a.onnx -o b.bcnn --weight-tolerance 1", "want a fraction from 0 to 1, without 1"},
		{"convert a.onnx -o b.bcnn --weight-tolerance nan", "want a fraction from 0 to 1, without 1"},
		{"convert a.onnx -o b.bcnn --shape 96x96", `--shape "96x96"`},
		{"convert a.onnx -o b.bcnn --shape 96x96x0", `--shape "96x96x0"`},
		{"convert a.onnx -o b.bcnn --shape 65537x1x1", `--shape "65537x1x1"`},
		{"convert a.onnx -o b.bcnn --shape 1x65537x1", `--shape "1x65537x1"`},
		{"convert a.onnx -o b.bcnn --shape 1x1x4194305", `--shape "1x1x4194305"`},
		{"convert a.onnx -o b.bcnn --shape 99999999999999999999x1x1", "--shape"},
		{"inspect", "inspect needs a model"},
		{"inspect digits --isa avx2", "--isa needs --plan"},
		{"parity --cases core --model digits", "--cases and --model contradict each other"},
		{"parity --cases most", `--cases: "most" is no selection of cases`},
		{"devices x", `devices takes no arguments, but got "x"`},
		{"bench --paper --batch 4", "--paper takes no --batch"},
		{"bench --model digits,", "want names separated by commas"},
		{"bench --ops --paper", "--paper"},
		{"bench --format tsv", `"tsv"`},
		{"bench --json --format svg", "contradict"},
		{"bench --ops --model digits", "--model"},
		{"bench --ops=bitflow,conv9", `"conv9"`},
		{"zoo vgg16", `zoo takes no arguments, but got "vgg16"; 'bcnn inspect vgg16' shows a network`},
		{"convert vgg17 --from zoo -o b.bcnn", `"vgg17"`},
		{"convert vgg16 --from zoo -o b.bcnn --input uint8", "--input is for ONNX"},
		{"env x", `env takes no arguments`},
		{"demo x", `demo takes no arguments`},
		{"version x", `version takes no arguments`},
	} {
		require.Contains(t, fail(t, exitUsage, strings.Fields(c.args)...), c.want, c.args)
	}
}

func TestJobErrors(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	writeFile(t, "broken.bcnn", "not a model")
	writeFile(t, "broken.onnx", "not a model")
	writeFile(t, "text.png", "not an image")
	writeFile(t, "broken.idx", "not an IDX file")
	require.NoError(t, os.Mkdir("empty", 0o755))
	for _, c := range []struct{ args, want string }{
		{"classify --model vehiclenet-rbg x.png", "did you mean vehiclenet-rgb?"},
		{"classify --model absent.bcnn x.png", "absent.bcnn: no such file or built-in model; "},
		{"classify --model absent.onnx x.png", "absent.onnx: no such file or built-in model"},
		{"classify --model broken.bcnn x.png", "broken.bcnn"},
		{"classify --model broken.onnx x.png", "broken.onnx"},
		{"classify --model . x.png", "."},
		{"classify --model digits --device cuda:7 x.png", "cuda:7"},
		{"classify --model digits --device abacus x.png", "abacus"},
		{"classify --model digits absent.png", "absent.png"},
		{"classify --model digits text.png", "text.png"},
		{"classify --model digits empty", "empty"},
		{"eval --model digits --data absent", "absent"},
		{"eval --model digits --data empty", "empty: no images"},
		{"eval --model digits --data broken.idx --labels broken.idx", "broken.idx"},
		{"convert absent.onnx -o out.bcnn", "absent.onnx"},
		{"convert broken.onnx -o out.bcnn", "broken.onnx"},
		{"convert empty --from bincnn --mode int -o out.bcnn", "empty"},
		{"convert broken.onnx --from onnx -o out.bcnn --labels absent.txt", "absent.txt"},
		{"inspect absent", "absent: no such file or built-in model"},
		{"inspect broken.onnx", "broken.onnx"},
		{"parity --device cuda:7", "cuda:7"},
		{"parity --model absent", "absent: no such file or built-in model"},
		{"bench --device cuda:7", "cuda:7"},
		{"bench --model digits --isa 8080", "8080"},
	} {
		require.Contains(t, fail(t, exitJob, strings.Fields(c.args)...), c.want, c.args)
	}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, entries, 5, "nothing may be left behind")
}

func TestDeviceFromEnvironment(t *testing.T) {
	t.Setenv("BCNN_DEVICE", "abacus")
	require.Contains(t, fail(t, exitJob, "bench", "--model", "digits"), "abacus")
	img := writePNG(t, filepath.Join(t.TempDir(), "x.png"), lightImage(0))
	succeed(t, "classify", "--device", "cpu", "--model", saveLightNet(t), img)
}

func TestHelp(t *testing.T) {
	top := succeed(t)
	require.Equal(t, top, succeed(t, "help"))
	require.Equal(t, top, succeed(t, "--help"))
	for _, name := range []string{"classify", "eval", "convert", "inspect", "devices", "parity", "bench", "zoo", "demo", "env", "version", "completion"} {
		require.Contains(t, top, "\n  "+name+" ")
		help := succeed(t, "help", name)
		require.Equal(t, help, succeed(t, name, "--help"))
		if name != "version" && name != "completion" {
			require.Contains(t, help, "Examples:\n  bcnn "+name)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.Contains(t, succeed(t, "completion", shell), "bcnn")
	}
	r := runCommand(t, "__complete", "classify", "--model", "")
	require.Equal(t, exitOK, r.code)
	require.Contains(t, r.stdout, "vehiclenet\n")
	r = runCommand(t, "__complete", "bench", "--device", "")
	require.Contains(t, r.stdout, "auto\nall\n")
	require.Contains(t, r.stdout, "cpu")
}

func TestVersion(t *testing.T) {
	require.Regexp(t, `\Abcnn v\S+ go\S+ \w+/\w+\n\z`, succeed(t, "version"))
	require.Equal(t, succeed(t, "version"), succeed(t, "--version"))
}

// A reader that goes away is no news; a full disk is.
func TestOutputErrors(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	defer w.Close()
	for _, args := range []string{"devices", "devices --json", "inspect digits", "parity --json --model digits", "help"} {
		var stderr bytes.Buffer
		require.Equal(t, exitJob, run(t.Context(), strings.Fields(args), w, &stderr), args)
		require.Empty(t, stderr.String())
		require.Equal(t, exitJob, run(t.Context(), strings.Fields(args), fullDisk{}, &stderr), args)
		require.Equal(t, "bcnn: standard output: no space left on device\n", stderr.String())
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Several images are not classified in vain once the reader has gone.
func TestClassifyStopsWithoutReader(t *testing.T) {
	dir := t.TempDir()
	img := writePNG(t, filepath.Join(dir, "a.png"), lightImage(3))
	w := &countingWriter{err: syscall.EPIPE}
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"classify", "--model", saveLightNet(t), img, img, img}, w, &stderr)
	require.Equal(t, exitJob, code)
	require.Empty(t, stderr.String())
	require.Equal(t, 1, w.calls)
}

type countingWriter struct {
	calls int
	err   error
}

func (w *countingWriter) Write([]byte) (int, error) {
	w.calls++
	return 0, w.err
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	img := writePNG(t, filepath.Join(t.TempDir(), "light", "a.png"), lightImage(3))
	model := saveLightNet(t)
	for _, args := range [][]string{
		{"classify", "--model", model, img},
		{"eval", "--model", model, "--data", filepath.Dir(filepath.Dir(img))},
		{"bench", "--model", model},
		{"parity", "--model", model},
		{"parity"},
		{"demo"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitInterrupted, run(ctx, args, &stdout, &stderr), args)
		require.Equal(t, "bcnn: interrupted\n", stderr.String(), args)
	}
}

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("first"), errors.New("second  part"))
	require.Equal(t, "first; second  part", oneLine(err))
	require.Equal(t, `log: a b; \x1b[2J\xff`, oneLine(errors.New("log:\ta b\r\n\n \x1b[2J\xff\n")))
}

// The time that is left is told by the time since the job began, also when its first part is
// done.
func TestProgress(t *testing.T) {
	now := time.Time{}
	var b strings.Builder
	draw := progressOn(&b, "cpu", func() time.Time { return now })
	for _, c := range []struct {
		after       time.Duration
		done, total int
		want        string
	}{
		{10 * time.Second, 1, 5, "\r\rcpu 1 / 5, 40s left"},
		{time.Millisecond, 2, 5, ""}, // too soon
		{10 * time.Second, 2, 5, "\r                   \rcpu 2 / 5, 30s left"},
		{time.Second, 5, 5, "\r                   \r"},
	} {
		b.Reset()
		now = now.Add(c.after)
		draw(c.done, c.total)
		require.Equal(t, c.want, b.String())
	}
}
