package main

import (
	"fmt"
	"image"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The precision on images with spots of which one is missed, in both forms of data sets.
func TestEvalDetector(t *testing.T) {
	model, dir := saveSpotNet(t), t.TempDir()
	writePNG(t, filepath.Join(dir, "a.png"), spots(8, 255, image.Pt(2, 4)))
	writePNG(t, filepath.Join(dir, "b.png"), spots(8, 255))
	writeFile(t, filepath.Join(dir, "a.txt"), "1 0.375 0.625 0.25 0.25\n")
	writeFile(t, filepath.Join(dir, "b.txt"), "1 0.125 0.125 0.25 0.25\n")
	coco := writeFile(t, filepath.Join(t.TempDir(), "boxes.json"), `{"images":[{"id":1,"file_name":"a.png"},{"id":2,"file_name":"b.png"}],
		"annotations":[{"image_id":1,"category_id":5,"bbox":[2,4,2,2]},{"image_id":2,"category_id":5,"bbox":[0,0,2,2]}],
		"categories":[{"id":3,"name":"speck"},{"id":5,"name":"spot"}]}`)
	ap := 51. / 101
	for _, data := range [][]string{{"--data", dir}, {"--data", dir, "--annotations", coco}} {
		for _, batch := range []string{"1", "2"} {
			args := append([]string{"eval", "--model", model, "--batch", batch}, data...)
			got := objects(t, succeed(t, append(args, "--json")...), "images", "objects", "ap", "ap50", "ap75", "classes")[0]
			require.InDelta(t, ap, got["ap"], 1e-12)
			require.InDelta(t, ap, got["ap50"], 1e-12)
			require.Equal(t, 2.0, got["images"])
			require.Equal(t, 2.0, got["objects"])
			require.Len(t, got["classes"], 1)
			require.Equal(t, "mAP@0.5:0.95 50.50 %, mAP@0.5 50.50 %, mAP@0.75 50.50 % (2 boxes on 2 images)\n\n"+
				"class  boxes  AP@0.5:0.95  AP@0.5   AP@0.75\nspot   2      50.50 %      50.50 %  50.50 %\n", succeed(t, args...))
		}
	}
	broken := writeFile(t, filepath.Join(dir, "c.jpg"), "no image")
	r := runCommand(t, "eval", "--model", model, "--data", dir)
	require.Equal(t, exitJob, r.code)
	require.Contains(t, r.stderr, broken)
	require.Contains(t, r.stderr, "not counted: 1 image that could not be read")
	require.Contains(t, r.stdout, "(2 boxes on 2 images)")

	bare := t.TempDir()
	writePNG(t, filepath.Join(bare, "a.png"), spots(8, 255))
	for want, args := range map[string][]string{
		"no image has a file of boxes":                  {"--model", model, "--data", bare},
		"--html and --labels are for classifiers":       {"--model", model, "--data", dir, "--html", "x.html"},
		"--annotations is for detectors, but vehiclene": {"--model", "vehiclenet", "--data", dir, "--annotations", coco},
		"--threshold is for detectors, but vehiclenet":  {"--model", "vehiclenet", "--data", dir, "--threshold", "0.3"},
		fmt.Sprint(coco, ": the category"):              {"--model", saveOtherSpots(t), "--data", dir, "--annotations", coco},
	} {
		r := runCommand(t, append([]string{"eval"}, args...)...)
		require.NotEqual(t, exitOK, r.code)
		require.Contains(t, r.stderr, want)
		require.Equal(t, 1, strings.Count(r.stderr, "\n"))
	}
}

func saveOtherSpots(t *testing.T) string {
	net := spotNet()
	net.Labels = []string{"a", "b"}
	return saveNet(t, net)
}
