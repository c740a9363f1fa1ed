package backendtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bincnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// sums are the sums of the dense layers of the published network.
type sums struct {
	D1 []float32 `json:"d1"`
	D2 []float32 `json:"d2"`
	D3 []float32 `json:"d3"`
}

type publishedImage struct {
	File   string `json:"file"`
	Thresh *sums  `json:"thresh"`
	Norm   *sums  `json:"norm"`
	Int    *sums  `json:"int"`
}

func (p publishedImage) sums(m bincnn.Mode) *sums {
	return map[bincnn.Mode]*sums{bincnn.Thresh: p.Thresh, bincnn.Norm: p.Norm, bincnn.Int: p.Int}[m]
}

// Published runs the published weights of the paper's network on twelve images in
// its three modes and demands the known sums of every dense layer. The data is that
// of testenv.SharedData. run executes a plan with the given Tap.
func Published(t *testing.T, run func(ctx context.Context, plan *plan.Plan, in bcnn.Tensor, tap func(int, string, bcnn.Tensor)) (bcnn.Tensor, error)) {
	dir := testenv.SharedData(t, "bincnn")
	images, err := publishedImages(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range bincnn.Modes {
		t.Run(string(mode), func(t *testing.T) {
			net, err := bincnn.Load(t.Context(), filepath.Join(dir, "wgt"), mode)
			if err != nil {
				t.Fatal(err)
			}
			fused, err := lower.Network(t.Context(), net, lower.Options{})
			if err != nil {
				t.Fatal(err)
			}
			unfused, err := lower.Network(t.Context(), net, lower.Options{Unfused: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, img := range images {
				want := img.sums(mode)
				in, err := readImage(filepath.Join(dir, "images", img.File), fused.Inputs[0].Shape)
				if err != nil {
					t.Fatal(err)
				}
				check := func(what string, got, want []float32) {
					if len(want) == 0 || !slices.Equal(got, want) {
						t.Errorf("%s: %s: got %v, want %v", img.File, what, got, want)
					}
				}
				out, err := run(t.Context(), fused, in, nil)
				if err != nil {
					t.Fatal(err)
				}
				check("logits", out.F32, want.D3)

				got := map[string][]float32{}
				out, err = run(t.Context(), unfused, in, func(_ int, name string, x bcnn.Tensor) {
					got[name] = slices.Clone(x.F32)
				})
				if err != nil {
					t.Fatal(err)
				}
				check("dense1", got["dense1"], want.D1)
				check("dense2", got["dense2"], want.D2)
				check("unfused logits", out.F32, want.D3)
			}
		})
	}
}

// PublishedOn is Published for a device.
func PublishedOn(t *testing.T, dev *backend.Device, opts backend.Options) {
	Published(t, func(ctx context.Context, plan *plan.Plan, in bcnn.Tensor, tap func(int, string, bcnn.Tensor)) (bcnn.Tensor, error) {
		opts.Tap = tap
		exe, err := dev.Compile(ctx, plan, opts)
		if err != nil {
			return bcnn.Tensor{}, err
		}
		out := bcnn.NewTensor(bcnn.Float32, in.N, plan.OutputShape())
		return out, errors.Join(exe.Run(ctx, []bcnn.Tensor{out}, []bcnn.Tensor{in}), exe.Close())
	})
}

func publishedImages(dir string) ([]publishedImage, error) {
	text, err := files.ReadAll(filepath.Join(dir, "expected.json"), 1<<20)
	if err != nil {
		return nil, err
	}
	var images []publishedImage
	if err := json.Unmarshal(text, &images); err != nil {
		return nil, err
	}
	if len(images) != 12 {
		return nil, fmt.Errorf("%d images, want 12", len(images))
	}
	return images, nil
}

func readImage(path string, shape bcnn.Shape) (bcnn.Tensor, error) {
	in := bcnn.NewTensor(bcnn.Uint8, 1, shape)
	f, err := files.Open(path)
	if err != nil {
		return in, err
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		return in, err
	}
	if img.Bounds() != image.Rect(0, 0, shape.W, shape.H) {
		return in, fmt.Errorf("%s is %v", path, img.Bounds())
	}
	for i := range shape.Pixels() {
		r, g, b, _ := img.At(i%shape.W, i/shape.W).RGBA()
		copy(in.U8[3*i:], []uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)})
	}
	return in, nil
}
