package dataset

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/dataset/idx"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/vision"
)

func write(t *testing.T, data []byte, path ...string) string {
	file := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, data, 0o644))
	return file
}

// level is an image of one grey level, and levelPNG its file.
func level(v uint8) image.Image {
	img := image.NewGray(image.Rect(0, 0, 3, 2))
	for i := range img.Pix {
		img.Pix[i] = v
	}
	return img
}

func levelPNG(t *testing.T, v uint8) []byte {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, level(v)))
	return b.Bytes()
}

func TestImages(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.jpg", "a.JPEG", "c/0.gif", "c/d/1.bmp", "e.png", "e.webp", "e.HEIC", "f.tif", "f.txt", "g.png.bak", ".h.png", ".i/j.png", "k"} {
		write(t, nil, dir, filepath.FromSlash(name))
	}
	got, err := Images(t.Context(), dir)
	require.NoError(t, err)
	var want []string
	for _, name := range []string{"a.JPEG", "b.jpg", "c/0.gif", "c/d/1.bmp", "e.HEIC", "e.png", "e.webp", "f.tif"} {
		want = append(want, filepath.Join(dir, filepath.FromSlash(name)))
	}
	require.Equal(t, want, got)
	_, err = Images(t.Context(), filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// small is how the images of these tests are read.
var small = vision.Preprocessing{Input: bcnn.Input{Shape: bcnn.Shape{H: 1, W: 2, C: 3}, DType: bcnn.Uint8}}

func TestOpenFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, levelPNG(t, 9), dir, "dark", "0.png")
	write(t, levelPNG(t, 200), dir, "light", "x", "0.png")
	broken := write(t, []byte("no image"), dir, "light", "1.png")
	write(t, nil, dir, ".git", "0.png")
	write(t, nil, dir, "0.png")
	set, err := OpenFolder(t.Context(), dir, []string{"light", "dark", "grey"})
	require.NoError(t, err)
	require.Equal(t, 3, set.Len())
	classes := []int{set.Class(0), set.Class(1), set.Class(2)}
	require.Equal(t, []int{1, 0, 0}, classes)
	_, err = set.Image(t.Context(), 1, small)
	require.ErrorContains(t, err, broken)
	for _, i := range []int{0, 2} {
		img, err := set.Image(t.Context(), i, small)
		require.NoError(t, err)
		require.Equal(t, color.Gray{Y: map[int]uint8{0: 9, 2: 200}[i]}, img.At(1, 1))
	}
	_, err = OpenFolder(t.Context(), dir, []string{"light"})
	require.ErrorContains(t, err, filepath.Join(dir, "dark")+": the folder is not named after a class of the model, which has light")
	_, err = OpenFolder(t.Context(), t.TempDir(), nil)
	require.ErrorContains(t, err, "no images")
}

// Links to folders are followed directly in the folder, and named below.
func TestLinks(t *testing.T) {
	photos, dir := t.TempDir(), t.TempDir()
	write(t, levelPNG(t, 9), photos, "0.png")
	link := func(name ...string) string {
		path := filepath.Join(append([]string{dir}, name...)...)
		testenv.Symlink(t, photos, path)
		return path
	}
	link("dark")
	require.NoError(t, os.Symlink("absent", filepath.Join(dir, "nowhere")))
	images, err := Images(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "dark", "0.png")}, images)
	set, err := OpenFolder(t.Context(), dir, []string{"dark", "light"})
	require.NoError(t, err)
	require.Equal(t, 1, set.Len())

	require.NoError(t, os.Mkdir(filepath.Join(dir, "light"), 0o755))
	deep := link("light", "more")
	const want = "a link to a folder, followed only directly in the given folder"
	_, err = Images(t.Context(), dir)
	require.ErrorContains(t, err, deep+": "+want)
	_, err = OpenFolder(t.Context(), dir, []string{"dark", "light"})
	require.ErrorContains(t, err, deep+": "+want)
}

func TestOpenIDX(t *testing.T) {
	file := func(a *idx.Array) string {
		var b bytes.Buffer
		require.NoError(t, idx.Write(&b, a))
		return write(t, b.Bytes(), t.TempDir(), "x.idx")
	}
	labels := file(&idx.Array{Dims: []int{2}, Data: []uint8{4, 0}})
	grey := file(&idx.Array{Dims: []int{2, 1, 2}, Data: []uint8{1, 2, 3, 4}})
	rgb := file(&idx.Array{Dims: []int{2, 1, 2, 3}, Data: []uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}})
	for _, c := range []struct {
		file string
		want color.Color
	}{{grey, color.Gray{Y: 4}}, {rgb, color.NRGBA{R: 10, G: 11, B: 12, A: 255}}} {
		set, err := OpenIDX(c.file, labels, 5)
		require.NoError(t, err)
		require.Equal(t, 2, set.Len())
		require.Equal(t, 4, set.Class(0))
		img, err := set.Image(t.Context(), 1, small)
		require.NoError(t, err)
		require.Equal(t, image.Rect(0, 0, 2, 1), img.Bounds())
		require.Equal(t, c.want, img.At(1, 0))
	}
	_, err := OpenIDX(grey, labels, 4)
	require.ErrorContains(t, err, "label 4 of image 0, but the model has 4 classes")
}

// levels is a set of images of one grey level each; the class is the truth, and
// a negative one makes the image unreadable.
type levels []struct {
	level uint8
	class int
}

func (l levels) Len() int        { return len(l) }
func (l levels) Class(i int) int { return max(l[i].class, 0) }
func (levels) Name(i int) string { return fmt.Sprint(i) }
func (l levels) Image(_ context.Context, i int, _ vision.Preprocessing) (image.Image, error) {
	if l[i].class < 0 {
		return nil, fmt.Errorf("image %d", i)
	}
	return level(l[i].level), nil
}

// threeWay is a network of which the class is 0 for dark, 1 for grey and 2 for
// light images, for either type of input.
func threeWay(dtype bcnn.DType) *bcnn.Network {
	n := &bcnn.Network{Name: "levels", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 1}, DType: dtype}}}
	if dtype == bcnn.Uint8 {
		n.Append("to float", bcnn.Affine{Scale: []float32{1}})
	}
	// 90 − x, 0 and x − 160.
	n.Append("dense", bcnn.Dense{Out: 3, Weights: bcnn.Weights{F32: []float32{-1, 0, 1}}, Bias: []float32{90, 0, -160}})
	return n
}

func newClassifier(t *testing.T, model *bcnn.Network, batch int) *vision.Classifier {
	s, err := bitcnn.Open(t.Context(), model, bitcnn.Options{Device: "cpu", MaxBatch: batch})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	c, err := vision.NewClassifier(s, vision.Options{})
	require.NoError(t, err)
	return c
}

func TestEvaluate(t *testing.T) {
	set := levels{{0, 0}, {100, 1}, {255, 2}, {10, 0}, {0, -1}, {120, 0}, {200, 1}, {0, -1}, {0, -1}, {130, 1}, {250, 2}, {0, -1}}
	want := [][]int{{2, 1, 0}, {0, 2, 1}, {0, 0, 2}}
	for _, dtype := range []bcnn.DType{bcnn.Uint8, bcnn.Float32} {
		for _, size := range []int{1, 2, 3, 7, 8, 30} {
			c := newClassifier(t, threeWay(dtype), size)
			var broken []string
			last, answers := 0, []int{}
			e, err := Evaluate(t.Context(), c, set, size, Observer{
				Progress: func(done, total int) {
					require.Greater(t, done, last)
					require.Equal(t, len(set), total)
					last = done
				},
				Broken: func(err error) { broken = append(broken, err.Error()) },
				Answer: func(i int, r vision.Result) { answers = append(answers, i, r.Index) },
			})
			require.NoError(t, err)
			require.Equal(t, &Evaluation{Correct: 6, Total: 8, Accuracy: 0.75, Confusion: want}, e)
			require.Equal(t, []string{"image 4", "image 7", "image 8", "image 11"}, broken)
			require.Equal(t, len(set), last)
			require.Equal(t, []int{0, 0, 1, 1, 2, 2, 3, 0, 5, 1, 6, 2, 9, 1, 10, 2}, answers)
		}
	}
}

// interruptedSet ends the context when its first image is read.
type interruptedSet struct {
	cancel func()
	read   atomic.Int64
}

func (s *interruptedSet) Len() int      { return 1000 }
func (s *interruptedSet) Class(int) int { return 0 }
func (*interruptedSet) Name(int) string { return "" }

func (s *interruptedSet) Image(context.Context, int, vision.Preprocessing) (image.Image, error) {
	s.cancel()
	s.read.Add(1)
	return level(3), nil
}

// Reading stops when the context ends: each processor finishes its image.
func TestEvaluateStopsReading(t *testing.T) {
	for _, size := range []int{1, 32, 1000} {
		c := newClassifier(t, threeWay(bcnn.Uint8), size)
		ctx, cancel := context.WithCancel(t.Context())
		set := &interruptedSet{cancel: cancel}
		_, err := Evaluate(ctx, c, set, size, Observer{Progress: func(int, int) {}, Broken: func(err error) { t.Error(err) }})
		require.ErrorIs(t, err, context.Canceled)
		require.LessOrEqual(t, set.read.Load(), int64(runtime.GOMAXPROCS(0)))
	}
}

func TestEvaluateEnds(t *testing.T) {
	c := newClassifier(t, threeWay(bcnn.Uint8), 1)
	set := make(levels, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	_, err := Evaluate(ctx, c, set, 1, Observer{Progress: func(done, _ int) {
		seen = done
		if done == 5 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 5, seen)
}

func TestAtOnce(t *testing.T) {
	for _, c := range []struct {
		processors int
		memory     int64
		want       int
	}{
		{4, 0, 4}, {4, 1, 1}, {4, vision.MaxBytes, 1}, {4, 3*vision.MaxBytes - 1, 2}, {4, 4 * vision.MaxBytes, 4}, {1, 1 << 40, 1},
	} {
		require.Equal(t, c.want, atOnce(c.processors, c.memory))
	}
	require.Positive(t, AtOnce())
}
