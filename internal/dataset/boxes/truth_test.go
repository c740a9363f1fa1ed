package boxes

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, content string, path ...string) string {
	file := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	return file
}

var labels = []string{"background", "cat", "dog"}

const images = `"images":[{"id":4,"file_name":"a/b.jpg"},{"id":2,"file_name":"c.jpg"}],`
const categories = `"categories":[{"id":7,"name":"dog"},{"id":3,"name":"cat"}]`

func TestCOCO(t *testing.T) {
	const boxes = `"annotations":[{"id":1,"image_id":2,"category_id":3,"bbox":[1,2,3.5,4],"area":14,"iscrowd":0,"segmentation":[[1]]},` +
		`{"image_id":2,"category_id":7,"bbox":[0,0,5,6],"iscrowd":1}],`
	file := write(t, `{"info":{},`+images+boxes+categories+`}`, t.TempDir(), "boxes.json")
	want := &Set{Images: []Image{{File: filepath.Join("photos", "a", "b.jpg")}, {File: filepath.Join("photos", "c.jpg"), Truths: []Truth{
		{1, 1, 2, 4.5, 6, false}, {2, 0, 0, 5, 6, true},
	}}}}
	set, err := OpenCOCO(file, "photos", labels, 0)
	require.NoError(t, err)
	require.Equal(t, want, set)
	require.Equal(t, 1, set.Objects())
	// Of a model without labels, the classes are in the order of the ids.
	set, err = OpenCOCO(file, "photos", []string{"0", "1", "2"}, 0)
	require.NoError(t, err)
	require.Equal(t, want, set)
	set, err = OpenCOCO(file, "photos", []string{"0", "1"}, -1)
	require.NoError(t, err)
	require.Equal(t, 0, set.Images[1].Truths[0].Class)
	_, err = OpenCOCO(file, "photos", []string{"0", "1", "2"}, -1)
	require.ErrorContains(t, err, "there are 2 categories, but the model has 3 classes without names: give it labels")

	of := func(boxes string) string { return `{` + images + `"annotations":[` + boxes + `],` + categories + `}` }
	for content, why := range map[string]string{
		`[]`: "not in COCO's format: json", `{}`: "not in COCO's format: no images or no categories",
		of(`{"image_id":3,"category_id":3,"bbox":[1,2,3,4]}`):                               "annotation 0 is of image 3, which is not listed",
		of(`{"image_id":2,"category_id":1,"bbox":[1,2,3,4]}`):                               "annotation 0 is of category 1, which is not listed",
		of(`{"image_id":2,"category_id":3,"bbox":[1,2,3]}`):                                 "annotation 0 has a bbox of 3 numbers, want 4",
		of(`{"image_id":2,"category_id":3,"bbox":[1,2,-3,4]}`):                              "annotation 0: a box of -3×4",
		`{"images":[{"id":1,"file_name":"../x"}],` + categories + `}`:                       `the image 1 is called "../x", which is not a file in the folder`,
		`{"images":[{"id":1,"file_name":"x"},{"id":1,"file_name":"y"}],` + categories + `}`: "two images have the id 1",
		`{` + images + `"categories":[{"id":1,"name":"dog"},{"id":1,"name":"cat"}]}`:        "two categories have the id 1",
		`{` + images + `"categories":[{"id":1,"name":"cow"}]}`:                              `the category "cow" is none of the labels of the model: background, cat, dog`,
		`{` + images + `"categories":[{"id":1,"name":"background"}]}`:                       `the category "background" is none of the labels`,
	} {
		bad := write(t, content, t.TempDir(), "bad.json")
		_, err := OpenCOCO(bad, "photos", labels, 0)
		require.ErrorContains(t, err, bad+": ")
		require.ErrorContains(t, err, why)
	}
	_, err = OpenCOCO(file, "photos", []string{"0", "1"}, 0)
	require.ErrorContains(t, err, "there are 2 categories, but the model has 1 classes without names: give it labels")
	_, err = OpenCOCO("absent", "photos", labels, 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "absent: ")
}

func TestYOLO(t *testing.T) {
	dir := t.TempDir()
	a := write(t, "", dir, "a.jpg")
	write(t, "1 0.5 0.5 0.5 0.25\r\n\n0 0.25 0.125 0.5 0.25\n", dir, "a.txt")
	b := write(t, "", dir, "images", "train", "b.png")
	write(t, "0 .5 .5 1 1", dir, "labels", "train", "b.txt")
	c := write(t, "", dir, "images", "train", "c.png")
	want := &Set{Parts: true, Images: []Image{
		{a, []Truth{{2, 0.25, 0.375, 0.75, 0.625, false}, {1, 0, 0, 0.5, 0.25, false}}}, {b, []Truth{{1, 0, 0, 1, 1, false}}}, {File: c},
	}}
	set, err := OpenYOLO(t.Context(), dir, labels, 0)
	require.NoError(t, err)
	require.Equal(t, want, set)
	require.Equal(t, []Truth{{2, 25, 75, 75, 125, false}, {1, 0, 0, 50, 50, false}}, inPixels(set.Images[0].Truths, 100, 200))
	require.Equal(t, 0.25, set.Images[0].Truths[0].X0)
	t.Chdir(dir) // the folder itself is called images
	set, err = OpenYOLO(t.Context(), "images", labels, 0)
	require.NoError(t, err)
	require.Equal(t, want.Images[1].Truths, set.Images[0].Truths)
	for content, why := range map[string]string{
		"2 0 0 1 1":             "line 1: class 2, but those of the model are 0 to 1",
		"0 0 0 1 1\n-1 0 0 1 1": "line 2: class -1",
		"0 0 0 1":               "line 1: want a class and four numbers",
		"0 0 0 1 1 0.9":         "line 1: want a class and four numbers",
		"0 0 0 1 x":             "line 1: want a class and four numbers",
		"cat 0 0 1 1":           "line 1: want a class and four numbers",
		"0 0 0 1 -1":            "line 1: a box of 1×-1",
		"0 NaN 0 1 1":           "line 1: a box with an edge at NaN",
	} {
		bad := write(t, content, dir, "a.txt")
		_, err := OpenYOLO(t.Context(), dir, labels, 0)
		require.ErrorContains(t, err, bad+": "+why)
	}
	_, err = OpenYOLO(t.Context(), t.TempDir(), labels, 0)
	require.ErrorContains(t, err, "no images in this folder")
	alone := t.TempDir()
	write(t, "", alone, "a.jpg")
	_, err = OpenYOLO(t.Context(), alone, labels, 0)
	require.ErrorContains(t, err, "no image has a file of boxes")
}

// FuzzParse reads arbitrary files: an error, or boxes of classes of the model that have a size.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{` + images + `"annotations":[{"image_id":2,"category_id":3,"bbox":[1,2,3.5,4]}],` + categories + `}`))
	f.Add([]byte("1 0.5 0.5 0.5 0.25\n0 0.25 0.125 0.5 0.25\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		good := func(list []Truth) {
			for _, b := range list {
				require.NoError(t, b.check())
				require.Contains(t, []int{1, 2}, b.Class)
			}
		}
		if set, err := parseCOCO(data, labels, 0); err == nil {
			for _, i := range set.Images {
				good(i.Truths)
			}
		}
		if list, err := parseYOLO(string(data), classes(labels, 0)); err == nil {
			good(list)
		}
	})
}
