package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// result is what a command line gave.
type result struct {
	code           int
	stdout, stderr string
}

func runCommand(t *testing.T, args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// succeed runs a command that must not say anything on stderr.
func succeed(t *testing.T, args ...string) string {
	r := runCommand(t, args...)
	require.Equal(t, result{code: exitOK, stdout: r.stdout}, r, "bcnn %s", strings.Join(args, " "))
	return r.stdout
}

// fail runs a command that must end with the code and one line on stderr.
func fail(t *testing.T, code int, args ...string) string {
	r := runCommand(t, args...)
	require.Equal(t, code, r.code, "bcnn %s: %s", strings.Join(args, " "), r.stderr)
	require.Regexp(t, `\Abcnn: [^\n]+\n\z`, r.stderr)
	return r.stderr
}

// objects decodes one JSON object per line and requires the keys, but for those that end in ?.
func objects(t *testing.T, text string, keys ...string) []map[string]any {
	var list []map[string]any
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &o), line)
		var have []string
		for k := range o {
			if !slices.Contains(keys, k+"?") {
				have = append(have, k)
			}
		}
		required := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return strings.HasSuffix(k, "?") })
		require.ElementsMatch(t, required, have, line)
		list = append(list, o)
	}
	return list
}

// lightNet tells light from dark images of 4×4 grey pixels: with n pixels of
// at least 128 the logits are 2n − 16 and 16 − 2n.
func lightNet() *bcnn.Network {
	net := &bcnn.Network{
		Name:   "light",
		Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 4, W: 4, C: 1}, DType: bcnn.Uint8}},
		Labels: []string{"light", "dark"},
	}
	net.Append("grey", bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{128}})
	// All weights of the first output are +1, those of the second −1.
	net.Append("count", bcnn.Dense{Out: 2, Weights: bcnn.Weights{Bits: []uint64{0xffff, 0}}})
	return net
}

// saveLightNet writes lightNet to a file.
func saveLightNet(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "light.bcnn")
	require.NoError(t, modelfile.Save(file, lightNet()))
	return file
}

// lightImage is a 4×4 image with n light pixels.
func lightImage(n int) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, 4, 4))
	for i := range img.Pix {
		img.Pix[i] = 127
		if i < n {
			img.Pix[i] = 128
		}
	}
	return img
}

func writePNG(t *testing.T, file string, img image.Image) string {
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, png.Encode(f, img))
	require.NoError(t, f.Close())
	return file
}

func writeFile(t *testing.T, file, content string) string {
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	return file
}

func colourPNG(t *testing.T, w, h int) string {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		img.Set(i%w, i/w, color.NRGBA{R: uint8(7 * i), G: uint8(11 * i), B: uint8(13 * i), A: 255})
	}
	return writePNG(t, filepath.Join(t.TempDir(), "colour.png"), img)
}

// fakeDevice is the CPU under another name, without a choice of threads and with
// outputs that may be spoilt.
type fakeDevice struct {
	id      string
	spoil   func(out []float32)
	refused []string
}

func (d fakeDevice) Info() driver.Info {
	return driver.Info{ID: d.id, Name: "fake", Kind: driver.Emulated, Detail: "test", MaxBatch: 1000, Refused: d.refused}
}

func (d fakeDevice) Compile(ctx context.Context, plan *plan.Plan, c driver.Config) (driver.Engine, error) {
	cpu, err := backend.Open("cpu")
	if err != nil {
		return nil, err
	}
	c.Threads = 1
	e, err := cpu.Driver().Compile(ctx, plan, c)
	return fakeEngine{e, d.spoil}, err
}

type fakeEngine struct {
	driver.Engine
	spoil func(out []float32)
}

func (e fakeEngine) Run(ctx context.Context, out, in []bcnn.Tensor) error {
	err := e.Engine.Run(ctx, out, in)
	if err == nil && e.spoil != nil {
		e.spoil(out[0].F32)
	}
	return err
}

// fakeBackend holds fake devices for the duration of a test.
type fakeBackend []driver.Device

func (fakeBackend) Name() string                        { return "fake" }
func (b fakeBackend) Devices() ([]driver.Device, error) { return b, nil }

// pickyBackend has a device that cannot be used, too.
type pickyBackend struct{ fakeBackend }

func (b pickyBackend) Devices() ([]driver.Device, error) {
	return b.fakeBackend, errors.New("a second one: too old")
}

func useFake(t *testing.T, devices ...driver.Device) {
	backend.Register(fakeBackend(devices))
	t.Cleanup(func() { backend.Register(driver.Unavailable("fake", "the test is over")) })
}

// absent returns the system's words for a file that is not there.
func absent(t *testing.T) string {
	_, err := os.Stat(filepath.Join(t.TempDir(), "absent"))
	return errors.Unwrap(err).Error()
}
