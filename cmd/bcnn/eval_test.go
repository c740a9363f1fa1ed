package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// evalFolder writes images of known answers: five light ones that are found,
// one light one that is taken for dark, and four dark ones.
func evalFolder(t *testing.T) string {
	dir := t.TempDir()
	for i := range 5 {
		writePNG(t, filepath.Join(dir, "light", fmt.Sprintf("%d.png", i)), lightImage(9+i))
	}
	writePNG(t, filepath.Join(dir, "light", "wrong.PNG"), lightImage(7))
	for i := range 4 {
		writePNG(t, filepath.Join(dir, "dark", fmt.Sprintf("%d.png", i)), lightImage(i))
	}
	writeFile(t, filepath.Join(dir, "light", "notes.txt"), "passed over")
	writeFile(t, filepath.Join(dir, ".cache", "x.png"), "passed over")
	return dir
}

func TestEvalFolder(t *testing.T) {
	model, dir := saveLightNet(t), evalFolder(t)
	for _, batch := range []string{"1", "3", "5", "32"} {
		got := objects(t, succeed(t, "eval", "--json", "--model", model, "--data", dir, "--batch", batch),
			"correct", "total", "accuracy", "confusion")
		require.Equal(t, []map[string]any{{
			"correct": 9.0, "total": 10.0, "accuracy": 0.9,
			"confusion": []any{[]any{5.0, 1.0}, []any{0.0, 4.0}},
		}}, got)
	}
	require.Equal(t, "accuracy 90.00 % (9 of 10)\n\n"+
		"true \\ predicted  light  dark\n"+
		"light             5      1\n"+
		"dark              0      4\n", succeed(t, "eval", "--model", model, "--data", dir))
}

func TestEvalBrokenImages(t *testing.T) {
	model, dir := saveLightNet(t), evalFolder(t)
	broken := writeFile(t, filepath.Join(dir, "dark", "00.jpg"), "no image")
	for _, batch := range []string{"1", "4", "32"} {
		r := runCommand(t, "eval", "--json", "--model", model, "--data", dir, "--batch", batch)
		require.Equal(t, exitJob, r.code)
		require.Contains(t, r.stderr, "bcnn: "+broken)
		require.Contains(t, r.stderr, "bcnn: not counted: 1 image")
		got := objects(t, r.stdout, "correct", "total", "accuracy", "confusion")
		require.Equal(t, 9.0, got[0]["correct"])
		require.Equal(t, 10.0, got[0]["total"])
	}
	only := t.TempDir()
	broken = writeFile(t, filepath.Join(only, "dark", "0.png"), "no image")
	r := runCommand(t, "eval", "--model", model, "--data", only)
	require.Equal(t, exitJob, r.code)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, broken)
	require.Contains(t, r.stderr, "none of the 1 images")
}

func TestEvalUnknownClass(t *testing.T) {
	model, dir := saveLightNet(t), evalFolder(t)
	writePNG(t, filepath.Join(dir, "lights", "0.png"), lightImage(9))
	require.Contains(t, fail(t, exitJob, "eval", "--model", model, "--data", dir),
		filepath.Join(dir, "lights")+": the folder is not named after a class of the model, which has light, dark")
}

// idxFile writes an IDX file of bytes.
func idxFile(t *testing.T, name string, zip bool, data []byte, dims ...uint32) string {
	var b bytes.Buffer
	b.Write([]byte{0, 0, 8, byte(len(dims))})
	for _, d := range dims {
		require.NoError(t, binary.Write(&b, binary.BigEndian, d))
	}
	b.Write(data)
	if zip {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, err := w.Write(b.Bytes())
		require.NoError(t, err)
		require.NoError(t, w.Close())
		b, name = z, name+".gz"
	}
	return writeFile(t, filepath.Join(t.TempDir(), name), b.String())
}

func TestEvalIDX(t *testing.T) {
	model := saveLightNet(t)
	var grey, rgb []byte
	for _, n := range []int{16, 9, 7, 0} {
		for _, p := range lightImage(n).Pix {
			grey = append(grey, p)
			rgb = append(rgb, p, p, p)
		}
	}
	truth := []byte{0, 0, 0, 1}
	want := []map[string]any{{
		"correct": 3.0, "total": 4.0, "accuracy": 0.75,
		"confusion": []any{[]any{2.0, 1.0}, []any{0.0, 1.0}},
	}}
	for _, zip := range []bool{false, true} {
		labels := idxFile(t, "labels.idx", zip, truth, 4)
		for _, images := range []string{
			idxFile(t, "grey.idx", zip, grey, 4, 4, 4),
			idxFile(t, "grey1.idx", zip, grey, 4, 4, 4, 1),
			idxFile(t, "rgb.idx", zip, rgb, 4, 4, 4, 3),
		} {
			out := succeed(t, "eval", "--json", "--model", model, "--data", images, "--labels", labels, "--batch", "3")
			require.Equal(t, want, objects(t, out, "correct", "total", "accuracy", "confusion"), images)
		}
	}
}

func TestEvalIDXErrors(t *testing.T) {
	model := saveLightNet(t)
	images := idxFile(t, "images.idx", false, make([]byte, 32), 2, 4, 4)
	labels := idxFile(t, "labels.idx", false, []byte{0, 1}, 2)
	for _, c := range []struct{ images, labels, want string }{
		{labels, labels, "labels.idx: dimensions [2]"},
		{images, images, "images.idx: dimensions [2 4 4], want one label"},
		{images, idxFile(t, "few.idx", false, []byte{0}, 1), "few.idx: dimensions [1], want one label for each of the 2 images"},
		{images, idxFile(t, "high.idx", false, []byte{0, 2}, 2), "high.idx: label 2 of image 1, but the model has 2 classes"},
		{idxFile(t, "two.idx", false, make([]byte, 64), 2, 4, 4, 2), labels, "two.idx: dimensions [2 4 4 2]"},
		{idxFile(t, "none.idx", false, nil, 0, 4, 4), idxFile(t, "none.idx", false, nil, 0), "none.idx"},
		{idxFile(t, "short.idx", false, make([]byte, 31), 2, 4, 4), labels, "short.idx"},
		{images, filepath.Join(t.TempDir(), "absent.idx"), "absent.idx"},
	} {
		require.Contains(t, fail(t, exitJob, "eval", "--model", model, "--data", c.images, "--labels", c.labels), c.want)
	}
}
