package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClassify(t *testing.T) {
	model, dir := saveLightNet(t), t.TempDir()
	dark := writePNG(t, filepath.Join(dir, "dark.png"), lightImage(3))
	light := writePNG(t, filepath.Join(dir, "light.png"), lightImage(16))

	text := succeed(t, "classify", "--model", model, "--device", "cpu", dark, light)
	lines := strings.Split(text, "\n")
	require.Len(t, lines, 3)
	require.Regexp(t, `dark\.png +dark  100\.0 %  \d+ µs  cpu$`, lines[0])
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
		require.NoError(t, checkImages(name, net))
		require.NotEmpty(t, net.Labels, name)
	}
	t.Chdir(t.TempDir())
	writeFile(t, "digits", "not a model")
	succeed(t, "inspect", "digits")
	fail(t, exitJob, "inspect", "./digits")
}
