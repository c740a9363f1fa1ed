package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

func TestBench(t *testing.T) {
	keys := []string{"model", "device", "detail", "batch", "runs", "median_us", "min_us", "p90_us", "mean_us",
		"transfers", "macs", "binary_macs", "macs_per_s", "peak_macs_per_s"}
	model := saveLightNet(t)
	got := objects(t, succeed(t, "bench", "--json", "--model", model, "--device", "cpu", "--runs", "5", "--batch", "3", "--threads", "1"),
		append(keys, "steps", "floor_us")...)[0]
	require.Equal(t, 32.0, got["macs"])
	require.Equal(t, 32.0, got["binary_macs"])
	require.Equal(t, 3.0, got["batch"])
	require.Equal(t, 5.0, got["runs"])
	require.LessOrEqual(t, got["min_us"], got["median_us"])
	require.LessOrEqual(t, got["median_us"], got["p90_us"])
	require.Positive(t, got["peak_macs_per_s"])
	steps := got["steps"].([]any)
	require.Len(t, steps, 2)
	// One step reads bytes, the other is compared with its bound.
	first, last := steps[0].(map[string]any), steps[1].(map[string]any)
	require.NotContains(t, first, "peak_fraction")
	require.InEpsilon(t, first["min_us"].(float64)+last["min_us"].(float64)*last["peak_fraction"].(float64), got["floor_us"], 1e-9)
	share := 0.0
	for i, want := range []struct {
		name, kind, output string
		macs               float64
	}{
		{"grey", "binarize", "4×4×1 bits", 0},
		{"count", "dense", "1×1×2 float32", 32},
	} {
		step := steps[i].(map[string]any)
		require.Equal(t, want.name, step["name"])
		require.Equal(t, want.kind, step["kind"])
		require.Equal(t, want.output, step["output"])
		require.Equal(t, want.macs, step["macs"])
		share += step["share"].(float64)
	}
	require.InDelta(t, 1, share, 1e-9)

	got = objects(t, succeed(t, "bench", "--json", "--model", model, "--paper", "--device", "cpu"), keys...)[0]
	require.Equal(t, 1000.0, got["runs"])
	require.Equal(t, 1.0, got["batch"])
	require.Equal(t, false, got["transfers"])

	text := succeed(t, "bench", "--model", model, "--device", "cpu", "--runs", "2", "--isa", "generic")
	require.Contains(t, text, "2 runs of 1 image\nmedian ")
	require.Regexp(t, `(?m)^count  dense     1×1×2 float32  .* %  +(arithmetic|memory)$`, text)
}

// A batch that no memory holds is an error before anything is allocated.
func TestBatchNeedsMemory(t *testing.T) {
	plan := &bcnn.Plan{
		Input:   bcnn.Input{DType: bcnn.Float32, Shape: bcnn.Shape{H: 1 << 16, W: 1 << 12, C: 1}},
		Tensors: []bcnn.PlanTensor{{Shape: bcnn.Shape{H: 1, W: 1, C: 1}}},
	}
	require.NoError(t, checkMemory(&bcnn.Plan{Input: bcnn.Input{DType: bcnn.Uint8, Shape: plan.Tensors[0].Shape}, Tensors: plan.Tensors}, maxBatch))
	require.ErrorContains(t, checkMemory(plan, maxBatch), "65536 images and their results take 70368744439808 bytes of memory")
}

func TestQuantiles(t *testing.T) {
	list := times{5, 1, 4, 2, 3, 9, 8, 7, 6, 10}
	require.Equal(t, time.Duration(1), list.quantile(0))
	require.Equal(t, time.Duration(6), list.quantile(0.5))
	require.Equal(t, time.Duration(10), list.quantile(0.9))
	require.Equal(t, time.Duration(10), list.quantile(1))
	require.Equal(t, time.Duration(5), list.mean())
	require.Equal(t, time.Duration(7), times{7}.quantile(0.5))
}

// The count agrees with the one that the layers' report gives.
func TestMACs(t *testing.T) {
	for _, name := range embeddedModels() {
		net, err := loadModel(t.Context(), name)
		require.NoError(t, err)
		plan, err := bcnn.Lower(t.Context(), net, bcnn.LowerOptions{})
		require.NoError(t, err)
		want, got := int64(0), int64(0)
		for _, r := range bcnn.Summarize(net, plan) {
			want += r.MACs
		}
		for i := range plan.Steps {
			got += plan.MACs(i)
		}
		require.Equal(t, want, got, name)
	}
}

// Random images are the same everywhere and in every run.
func TestRandomImages(t *testing.T) {
	in := bcnn.NewTensor(bcnn.Uint8, 1, bcnn.Shape{H: 1, W: 1, C: 8})
	randomImages(in, newRand(seed))
	again := bcnn.NewTensor(bcnn.Uint8, 1, bcnn.Shape{H: 1, W: 1, C: 8})
	randomImages(again, newRand(seed))
	require.Equal(t, in.U8, again.U8)
	randomImages(again, newRand(seed+1))
	require.NotEqual(t, in.U8, again.U8)

	floats := bcnn.NewTensor(bcnn.Float32, 1, bcnn.Shape{H: 8, W: 8, C: 8})
	randomImages(floats, newRand(seed))
	low, high := float32(1), float32(-1)
	for _, v := range floats.F32 {
		low, high = min(low, v), max(high, v)
	}
	require.True(t, low >= -1 && low < -0.9 && high < 1 && high > 0.9)
}
