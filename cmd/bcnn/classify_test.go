package main

import (
	"bytes"
	"context"
	"image"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

func TestClassify(t *testing.T) {
	model, dir := saveLightNet(t), t.TempDir()
	dark := writePNG(t, filepath.Join(dir, "dark.png"), lightImage(3))
	light := writePNG(t, filepath.Join(dir, "light.png"), lightImage(16))

	text := succeed(t, "classify", "--model", model, "--device", "cpu", dark, light)
	lines := strings.Split(text, "\n")
	require.Len(t, lines, 3)
	require.Regexp(t, `dark\.png +dark   100\.0 %  \d+ µs  cpu$`, lines[0])
	require.Regexp(t, `light\.png +light  100\.0 %  \d+ µs  cpu$`, lines[1])

	got := objects(t, succeed(t, "classify", "--json", "--model", model, "--device", "cpu", dark, light),
		"file", "label", "index", "probability", "logits", "device", "us")
	require.Len(t, got, 2)
	for i, want := range []struct {
		file, label string
		index       float64
		logits      []any
	}{
		{dark, "dark", 1, []any{-10.0, 10.0}},
		{light, "light", 0, []any{16.0, -16.0}},
	} {
		require.Equal(t, want.file, got[i]["file"])
		require.Equal(t, want.label, got[i]["label"])
		require.Equal(t, want.index, got[i]["index"])
		require.Equal(t, want.logits, got[i]["logits"])
		require.Equal(t, "cpu", got[i]["device"])
		require.Positive(t, got[i]["us"])
		z := want.logits[int(want.index)].(float64)
		require.InDelta(t, 1/(1+math.Exp(-2*z)), got[i]["probability"], 1e-12)
	}
}

// A tie goes to the first class, and images of any size and colour will do.
func TestClassifyOddImages(t *testing.T) {
	model := saveLightNet(t)
	tie := writePNG(t, filepath.Join(t.TempDir(), "tie.png"), lightImage(8))
	got := objects(t, succeed(t, "classify", "--json", "--model", model, tie, colourPNG(t, 1, 1), colourPNG(t, 301, 7)),
		"file", "label", "index", "probability", "logits", "device", "us")
	require.Len(t, got, 3)
	require.Equal(t, "light", got[0]["label"])
	require.Equal(t, 0.5, got[0]["probability"])
	// The one black pixel fills the input.
	require.Equal(t, []any{-16.0, 16.0}, got[1]["logits"])
}

// A broken image is reported; the others are classified all the same.
func TestClassifyBrokenImages(t *testing.T) {
	model, dir := saveLightNet(t), t.TempDir()
	good := writePNG(t, filepath.Join(dir, "good.png"), lightImage(16))
	text := writeFile(t, filepath.Join(dir, "text.png"), "no image")
	absent := filepath.Join(dir, "absent.png")
	r := runCommand(t, "classify", "--json", "--model", model, text, good, absent, good)
	require.Equal(t, exitJob, r.code)
	require.Len(t, objects(t, r.stdout, "file", "label", "index", "probability", "logits", "device", "us"), 2)
	lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], text)
	require.Contains(t, lines[1], absent)
}

// The network that is used where none is named says what it knows, but not between JSON.
func TestClassifyWithoutModel(t *testing.T) {
	photo := writePNG(t, filepath.Join(t.TempDir(), "photo.png"), lightImage(3))
	r := runCommand(t, "classify", photo)
	require.Equal(t, exitOK, r.code)
	require.Regexp(t, `\Abcnn: [^\n]*vehiclenet: it knows bike, car, [^\n]* as one road camera sees them, [^\n]*\n\z`, r.stderr)
	succeed(t, "classify", "--json", photo)
	succeed(t, "classify", "--model", "vehiclenet", photo)
}

func TestClassifyTop(t *testing.T) {
	model := saveLightNet(t)
	dark := writePNG(t, filepath.Join(t.TempDir(), "dark.png"), lightImage(7))
	require.Regexp(t, `dark\.png  dark    98\.2 %, light    1\.8 %  \d+ µs  cpu\n$`,
		succeed(t, "classify", "--top", "2", "--model", model, "--device", "cpu", dark))
	got := objects(t, succeed(t, "classify", "--json", "--top", "5", "--model", model, "--device", "cpu", dark),
		"file", "label", "index", "probability", "logits", "top", "device", "us")[0]
	require.Equal(t, "dark", got["label"])
	top := got["top"].([]any)
	require.Len(t, top, 2)
	require.Equal(t, map[string]any{"label": "dark", "index": 1.0, "probability": got["probability"]}, top[0])
	require.Equal(t, "light", top[1].(map[string]any)["label"])
	require.InDelta(t, 1, got["probability"].(float64)+top[1].(map[string]any)["probability"].(float64), 1e-12)
}

// A folder stands for the images in it and below it, in the order of their names.
func TestClassifyFolder(t *testing.T) {
	model, dir := saveLightNet(t), t.TempDir()
	var want []string
	for _, name := range []string{"a.png", "b.PNG", filepath.Join("c", "0.png"), filepath.Join("c", "d", "1.png"), "e.png"} {
		want = append(want, writePNG(t, filepath.Join(dir, name), lightImage(16)))
	}
	writeFile(t, filepath.Join(dir, "notes.txt"), "passed over")
	writeFile(t, filepath.Join(dir, ".hidden.png"), "passed over")
	writeFile(t, filepath.Join(dir, ".cache", "x.png"), "passed over")
	link := filepath.Join(t.TempDir(), "link")
	testenv.Symlink(t, dir, link)

	keys := []string{"file", "label", "index", "probability", "logits", "device", "us"}
	var got []string
	for _, o := range objects(t, succeed(t, "classify", "--json", "--model", model, want[4], dir), keys...) {
		got = append(got, o["file"].(string))
	}
	require.Equal(t, append([]string{want[4]}, want...), got)
	require.Len(t, objects(t, succeed(t, "classify", "--json", "--model", model, link), keys...), 5)

	empty := t.TempDir()
	r := runCommand(t, "classify", "--json", "--model", model, empty, want[0])
	require.Equal(t, exitJob, r.code)
	require.Contains(t, r.stderr, empty+": no images in this folder")
	require.Len(t, objects(t, r.stdout, keys...), 1)
}

// stdin lets the command read a file as standard input.
func stdin(t *testing.T, file string) {
	f, err := os.Open(file)
	require.NoError(t, err)
	old := os.Stdin
	os.Stdin = f
	t.Cleanup(func() {
		os.Stdin = old
		f.Close()
	})
}

func TestClassifyStandardInput(t *testing.T) {
	model, dir := saveLightNet(t), t.TempDir()
	light := writePNG(t, filepath.Join(dir, "light.png"), lightImage(16))
	stdin(t, writePNG(t, filepath.Join(dir, "dark.png"), lightImage(0)))
	got := objects(t, succeed(t, "classify", "--json", "--model", model, light, "-"), "file", "label", "index", "probability", "logits", "device", "us")
	require.Equal(t, "light", got[0]["label"])
	require.Equal(t, "-", got[1]["file"])
	require.Equal(t, "dark", got[1]["label"])

	stdin(t, writeFile(t, filepath.Join(dir, "text"), "not an image"))
	require.Contains(t, fail(t, exitJob, "classify", "--model", model, "-"), "standard input: unsupported image format")
	stdin(t, writeFile(t, filepath.Join(dir, "nothing"), ""))
	require.Contains(t, fail(t, exitJob, "classify", "--model", model, "-"), "standard input: no image")

	// Images one after the other, one of which is broken inside; files before and behind keep
	// their places.
	one := readFile(t, light)
	broken := []byte(one)
	broken[len(broken)-20]++
	stdin(t, writeFile(t, filepath.Join(dir, "series"), one+readFile(t, filepath.Join(dir, "dark.png"))+string(broken)+one))
	r := runCommand(t, "classify", "--json", "--model", model, light, "-", filepath.Join(dir, "dark.png"))
	require.Equal(t, exitJob, r.code)
	require.Contains(t, r.stderr, "standard input: broken image")
	var labels []any
	for _, o := range objects(t, r.stdout, "file", "label", "index", "probability", "logits", "device", "us") {
		labels = append(labels, o["label"])
	}
	require.Equal(t, []any{"light", "light", "dark", "light", "dark"}, labels)
}

func readFile(t *testing.T, name string) string {
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

// Who waits for standard input can be interrupted.
func TestClassifyStandardInputInterrupted(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	old := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = old }()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"classify", "--model", "digits", "--device", "cpu", "-"}, &stdout, &stderr)
	}()
	// More than a pipe holds: the command has come to read. It is a JPEG that has
	// not got to its pixels.
	_, err = w.WriteString("\xff\xd8" + strings.Repeat("\xff\xe2\x00\x02", 1<<18))
	require.NoError(t, err)
	cancel()
	require.Equal(t, exitInterrupted, <-done)
	require.Empty(t, stdout.String())
}

func TestClassifyOverflow(t *testing.T) {
	useFake(t, fakeDevice{id: "fake:0", spoil: func(out []float32) { out[1] = float32(math.Inf(1)) }})
	img := writePNG(t, filepath.Join(t.TempDir(), "a.png"), lightImage(3))
	require.Contains(t, fail(t, exitJob, "classify", "--device", "fake", "--model", saveLightNet(t), img), "output 1")
}

// The embedded names win over files of the same name.
func TestEmbeddedModels(t *testing.T) {
	require.Contains(t, embeddedModels(), defaultModel)
	for _, name := range embeddedModels() {
		net, err := loadModel(t.Context(), name)
		require.NoError(t, err, name)
		if err := checkImages(name, net); net.Detection == nil {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "use 'bcnn detect'")
		}
		require.NotEmpty(t, net.Labels, name)
	}
	t.Chdir(t.TempDir())
	writeFile(t, "digits", "not a model")
	succeed(t, "inspect", "digits")
	fail(t, exitJob, "inspect", "./digits")
}

// What is transparent is dark, unless it is said what lies under it.
func TestClassifyBackground(t *testing.T) {
	model := saveLightNet(t)
	clear := writePNG(t, filepath.Join(t.TempDir(), "data", "dark", "clear.png"), image.NewNRGBA(image.Rect(0, 0, 4, 4)))
	data := filepath.Dir(filepath.Dir(clear))
	for background, label := range map[string]string{"000000": "dark", "FFffff": "light"} {
		got := objects(t, succeed(t, "classify", "--json", "--model", model, "--background", background, clear),
			"file", "label", "index", "probability", "logits", "device", "us")
		require.Equal(t, label, got[0]["label"])
		got = objects(t, succeed(t, "eval", "--json", "--model", model, "--background", background, "--data", data), "correct", "total", "accuracy", "confusion")
		require.Equal(t, map[string]any{"dark": 1.0, "light": 0.0}[label], got[0]["correct"])
	}
	for _, background := range []string{"white", "fff", "#ffffff", "ffffff00", ""} {
		require.Contains(t, fail(t, exitUsage, "classify", "--background="+background, clear), "want six hexadecimal digits")
	}
}
