package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func page(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func TestClassifyPage(t *testing.T) {
	model, dir := saveLightNet(t), t.TempDir()
	path := filepath.Join(dir, "sheet.html")
	light := writePNG(t, filepath.Join(dir, "light.png"), lightImage(16))
	doubtful := writePNG(t, filepath.Join(dir, "tie.png"), lightImage(8))
	broken := writeFile(t, filepath.Join(dir, "broken.jpg"), "no image")

	r := runCommand(t, "classify", "--model", model, "--html", path, light, doubtful, broken)
	require.Equal(t, exitJob, r.code)
	sheet := page(t, path)
	require.Contains(t, sheet, "2 photos on cpu")
	require.Less(t, strings.Index(sheet, doubtful), strings.Index(sheet, light))
	require.Contains(t, sheet, "<li>"+broken+": unsupported image format")
	require.Equal(t, 2, strings.Count(sheet, "data:image/png;base64,"))

	stdout := succeed(t, "classify", "--model", model, light)
	require.Regexp(t, `light  100\.0 %`, stdout)
	require.Contains(t, fail(t, exitJob, "classify", "--model", model, "--html", filepath.Join(dir, "none", "x.html"), light), "none")
}

func TestEvalPage(t *testing.T) {
	model, dir := saveLightNet(t), evalFolder(t)
	path := filepath.Join(t.TempDir(), "accuracy.html")
	require.Contains(t, succeed(t, "eval", "--model", model, "--data", dir, "--html", path), "accuracy 90.00 %")
	accuracy := page(t, path)
	require.Contains(t, accuracy, "9 of 10 images")
	require.Equal(t, 1, strings.Count(accuracy, "<figure>"))
	require.Contains(t, accuracy, filepath.Join(dir, "light", "wrong.PNG"))
	require.Contains(t, accuracy, "light, mistaken for dark")
}

func TestInspectPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "net.html")
	require.Contains(t, succeed(t, "inspect", saveLightNet(t), "--isa", "generic", "--html", path), "light: input 4×4×1")
	drawing := page(t, path)
	require.Contains(t, drawing, "Input 4×4×1 uint8; 2 steps.<br>Multiplications: 100.0 % binary.<br>")
	require.Contains(t, drawing, "(generic, ")
	require.Equal(t, 1, strings.Count(drawing, "<path "))
	require.Contains(t, drawing, `<tspan class="soft">count</tspan>`)
}
