package boxes

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/vision"
)

func box(class int, score, x0, y0, x1, y1 float32) vision.Box {
	return vision.Box{Index: class, Score: score, X0: x0, Y0: y0, X1: x1, Y1: y1}
}

// Precisions that are computed by hand.
func TestPrecision(t *testing.T) {
	square := func(class int, x float64) Truth { return Truth{Class: class, X0: x, Y0: 0, X1: x + 10, Y1: 10} }
	found := func(class int, score, x float32) vision.Box { return box(class, score, x, 0, x+10, 10) }
	type image struct {
		truths []Truth
		boxes  []vision.Box
	}
	for _, c := range []struct {
		name           string
		images         []image
		ap, ap50, ap75 float64
		objects        int
	}{
		{"all of it", []image{{[]Truth{square(0, 0)}, []vision.Box{found(0, 0.9, 0)}}}, 1, 1, 1, 1},
		{"one of two", []image{{[]Truth{square(0, 0), square(0, 50)}, []vision.Box{found(0, 0.9, 0)}}}, 51. / 101, 51. / 101, 51. / 101, 2},
		// Recalls up to ½ have a precision of 1, the others of ⅔.
		{"a wrong one between", []image{{[]Truth{square(0, 0), square(0, 50)}, []vision.Box{found(0, 0.9, 0), found(0, 0.8, 90), found(0, 0.7, 50)}}},
			(51 + 50*2./3) / 101, (51 + 50*2./3) / 101, (51 + 50*2./3) / 101, 2},
		{"a wrong one first", []image{{[]Truth{square(0, 0)}, []vision.Box{found(0, 0.9, 90), found(0, 0.7, 0)}}}, 0.5, 0.5, 0.5, 1},
		{"a wrong one behind", []image{{[]Truth{square(0, 0)}, []vision.Box{found(0, 0.9, 0), found(0, 0.7, 90)}}}, 1, 1, 1, 1},
		// Moved by 1 of 10 the overlap is 9/11, for seven thresholds enough; for the others the second one is right.
		{"found twice", []image{{[]Truth{square(0, 0)}, []vision.Box{found(0, 0.9, 1), found(0, 0.8, 0)}}}, (7 + 3*0.5) / 10, 1, 1, 1},
		// Moved by 2 of 10: an overlap of 8/12, which reaches four thresholds of ten.
		{"not quite", []image{{[]Truth{square(0, 0)}, []vision.Box{found(0, 0.9, 2)}}}, 0.4, 1, 0, 1},
		{"of another class", []image{{[]Truth{square(0, 0)}, []vision.Box{found(1, 0.9, 0)}}}, 0, 0, 0, 1},
		// Class 1 occurs nowhere, and does not count.
		{"of two classes", []image{{[]Truth{square(0, 0), square(2, 0)}, []vision.Box{found(0, 0.9, 0), found(1, 0.9, 0)}}}, 0.5, 0.5, 0.5, 2},
		{"on another image", []image{{[]Truth{square(0, 0)}, nil}, {nil, []vision.Box{found(0, 0.9, 0)}}}, 0, 0, 0, 1},
		{"scores of all images", []image{
			{[]Truth{square(0, 0)}, []vision.Box{found(0, 0.6, 0)}}, {nil, []vision.Box{found(0, 0.9, 0)}},
		}, 0.5, 0.5, 0.5, 1},
		{"what is in a crowd is neither right nor wrong", []image{{
			[]Truth{square(0, 0), {Class: 0, X0: 40, Y0: 0, X1: 100, Y1: 10, Crowd: true}},
			[]vision.Box{found(0, 0.9, 50), found(0, 0.8, 60), found(0, 0.7, 0)},
		}}, 1, 1, 1, 1},
		{"of each class the best hundred count", []image{{[]Truth{square(0, 0)}, append(slices.Repeat([]vision.Box{found(0, 0.9, 90)}, 100), found(0, 0.8, 0))}}, 0, 0, 0, 1},
		{"nothing", []image{{nil, nil}}, 0, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMeter([]string{"a", "b", "c"})
			for _, i := range c.images {
				m.Add(i.truths, i.boxes)
			}
			p := m.Precision()
			require.Equal(t, len(c.images), p.Images)
			require.Equal(t, c.objects, p.Objects)
			require.InDelta(t, c.ap, p.AP, 1e-12)
			require.InDelta(t, c.ap50, p.AP50, 1e-12)
			require.InDelta(t, c.ap75, p.AP75, 1e-12)
		})
	}
}

// What pycocotools measures of drawn boxes, with equal scores and crowds: see testdata/precision.py.
func TestPrecisionOfCOCO(t *testing.T) {
	data, err := os.ReadFile("testdata/precision.json")
	require.NoError(t, err)
	var file struct {
		Truth   json.RawMessage
		Results []struct {
			Image    int        `json:"image_id"`
			Category int        `json:"category_id"`
			Box      [4]float64 `json:"bbox"`
			Score    float32
		}
		Want struct {
			Class
			Classes map[string]Class
		}
	}
	require.NoError(t, json.Unmarshal(data, &file))
	labels := []string{"background", "dog", "car", "cat", "none"}
	set, err := parseCOCO(file.Truth, labels, 0)
	require.NoError(t, err)
	require.Len(t, set.Images, 12)
	m := NewMeter(labels)
	for i := range set.Images {
		var boxes []vision.Box
		for _, r := range file.Results {
			if r.Image == 10+i {
				class := map[int]int{3: 3, 5: 1, 90: 2}[r.Category]
				boxes = append(boxes, box(class, r.Score, float32(r.Box[0]), float32(r.Box[1]), float32(r.Box[0]+r.Box[2]), float32(r.Box[1]+r.Box[3])))
			}
		}
		slices.SortStableFunc(boxes, func(a, b vision.Box) int { return cmp.Compare(b.Score, a.Score) })
		m.Add(set.Images[i].Truths, boxes)
	}
	p := m.Precision()
	const tolerance = 1e-9
	require.InDelta(t, file.Want.AP, p.AP, tolerance)
	require.InDelta(t, file.Want.AP50, p.AP50, tolerance)
	require.InDelta(t, file.Want.AP75, p.AP75, tolerance)
	require.Len(t, p.Classes, 3)
	require.Equal(t, set.Objects(), p.Objects)
	for _, c := range p.Classes {
		want := file.Want.Classes[c.Label]
		require.InDelta(t, want.AP, c.AP, tolerance, c.Label)
		require.InDelta(t, want.AP50, c.AP50, tolerance, c.Label)
		require.InDelta(t, want.AP75, c.AP75, tolerance, c.Label)
	}
}
