// Package boxes reads sets of images on which boxes are known, and measures how well a detector finds them.
package boxes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/internal/dataset"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Truth is a box that is on an image.
type Truth struct {
	Class          int
	X0, Y0, X1, Y1 float64
	// Crowd says that the box is around many objects, of which any number may be found, or none.
	Crowd bool
}

// Image is an image with its boxes.
type Image struct {
	File   string
	Truths []Truth
}

// Set is a set of images with their boxes.
type Set struct {
	Images []Image
	// Parts says that boxes are in parts of the image, else in pixels.
	Parts bool
}

// Objects returns the number of boxes, those of crowds left out.
func (s *Set) Objects() (n int) {
	for _, i := range s.Images {
		for _, t := range i.Truths {
			if !t.Crowd {
				n++
			}
		}
	}
	return n
}

// classes are those of a model, as sets number them: without the background, from 0.
func classes(labels []string, background int) (list []int) {
	for c := range labels {
		if c != background {
			list = append(list, c)
		}
	}
	return list
}

// maxFile is the largest file of boxes that is read, in bytes. That of the 118,000 images which COCO has for
// training has 450 million.
const maxFile = 1 << 30

// annotations is COCO's format, https://cocodataset.org/#format-data.
type annotations struct {
	Images []struct {
		ID   int    `json:"id"`
		File string `json:"file_name"`
	} `json:"images"`
	Annotations []struct {
		Image    int       `json:"image_id"`
		Category int       `json:"category_id"`
		Box      []float64 `json:"bbox"` // left, top, width, height
		Crowd    int       `json:"iscrowd"`
	} `json:"annotations"`
	Categories []struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	} `json:"categories"`
}

// OpenCOCO reads the boxes of images in a folder from a file in COCO's format. Categories are found by their
// names among the labels of the model; of a model whose labels are numbers, they are its classes in the
// order of their ids.
func OpenCOCO(file, folder string, labels []string, background int) (*Set, error) {
	data, err := files.ReadAll(file, maxFile)
	if err != nil {
		return nil, err
	}
	set, err := parseCOCO(data, labels, background)
	if err != nil {
		return nil, files.Name(file, err)
	}
	for i := range set.Images {
		set.Images[i].File = filepath.Join(folder, filepath.FromSlash(set.Images[i].File))
	}
	return set, nil
}

func parseCOCO(data []byte, labels []string, background int) (*Set, error) {
	var a annotations
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("not in COCO's format: %w", err)
	}
	if len(a.Images) == 0 || len(a.Categories) == 0 {
		return nil, errors.New("not in COCO's format: no images or no categories")
	}
	class, err := a.classes(labels, background)
	if err != nil {
		return nil, err
	}
	set, byID := &Set{Images: make([]Image, len(a.Images))}, map[int]int{}
	for i, img := range a.Images {
		if _, twice := byID[img.ID]; twice {
			return nil, fmt.Errorf("two images have the id %d", img.ID)
		}
		if !filepath.IsLocal(filepath.FromSlash(img.File)) {
			return nil, fmt.Errorf("the image %d is called %s, which is not a file in the folder", img.ID, text.Quote(img.File))
		}
		byID[img.ID], set.Images[i].File = i, img.File
	}
	for i, n := range a.Annotations {
		at, known := byID[n.Image]
		if !known {
			return nil, fmt.Errorf("annotation %d is of image %d, which is not listed", i, n.Image)
		}
		c, known := class[n.Category]
		if !known {
			return nil, fmt.Errorf("annotation %d is of category %d, which is not listed", i, n.Category)
		}
		if len(n.Box) != 4 {
			return nil, fmt.Errorf("annotation %d has a bbox of %d numbers, want 4", i, len(n.Box))
		}
		t := Truth{c, n.Box[0], n.Box[1], n.Box[0] + n.Box[2], n.Box[1] + n.Box[3], n.Crowd != 0}
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("annotation %d: %w", i, err)
		}
		set.Images[at].Truths = append(set.Images[at].Truths, t)
	}
	return set, nil
}

// classes returns the classes of a model by the ids of categories.
func (a *annotations) classes(labels []string, background int) (map[int]int, error) {
	list, numbered := classes(labels, background), true
	for i, l := range labels {
		numbered = numbered && l == strconv.Itoa(i)
	}
	slices.SortStableFunc(a.Categories, func(x, y struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	}) int {
		return x.ID - y.ID
	})
	if numbered && len(a.Categories) != len(list) {
		return nil, fmt.Errorf("there are %d categories, but the model has %d classes without names: give it labels", len(a.Categories), len(list))
	}
	of := map[int]int{}
	for i, c := range a.Categories {
		if _, twice := of[c.ID]; twice {
			return nil, fmt.Errorf("two categories have the id %d", c.ID)
		}
		class := slices.Index(labels, c.Name)
		if numbered {
			class = list[i]
		}
		if class < 0 || class == background {
			return nil, fmt.Errorf("the category %s is none of the labels of the model: %s", text.Quote(c.Name), text.Escape(strings.Join(labels, ", ")))
		}
		of[c.ID] = class
	}
	return of, nil
}

func (t Truth) check() error {
	for _, v := range [...]float64{t.X0, t.Y0, t.X1, t.Y1} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("a box with an edge at %v", v)
		}
	}
	if t.X1 < t.X0 || t.Y1 < t.Y0 {
		return fmt.Errorf("a box of %g×%g", t.X1-t.X0, t.Y1-t.Y0)
	}
	return nil
}

// OpenYOLO reads the images of a folder, and their boxes from text files as Darknet and its successors have
// them: NAME.txt beside NAME.jpg, or in a folder labels beside the folder images, with a line for each box:
// class, centre x and y, width, height, in parts of the image. An image without such a file has no boxes.
func OpenYOLO(ctx context.Context, folder string, labels []string, background int) (*Set, error) {
	images, err := dataset.Images(ctx, folder)
	if err != nil {
		return nil, err
	}
	if len(images) == 0 {
		return nil, files.Name(folder, errors.New("no images in this folder and those below it"))
	}
	set, found := &Set{Parts: true}, 0
	for _, image := range images {
		truths, there, err := readYOLO(image, classes(labels, background))
		if err != nil {
			return nil, err
		}
		if there {
			found++
		}
		set.Images = append(set.Images, Image{image, truths})
	}
	if found == 0 {
		return nil, files.Name(folder, errors.New("no image has a file of boxes (NAME.txt beside it, or in labels beside images); for COCO's format use --annotations"))
	}
	return set, nil
}

// readYOLO reads the boxes of an image.
func readYOLO(image string, classes []int) (truths []Truth, found bool, err error) {
	file := strings.TrimSuffix(image, filepath.Ext(image)) + ".txt"
	places := []string{file}
	const images = "images"
	sep := string(filepath.Separator)
	if at := strings.LastIndex(sep+file, sep+images+sep); at >= 0 {
		places = append(places, file[:at]+"labels"+file[at+len(images):])
	}
	for _, place := range places {
		data, err := files.ReadAll(place, maxFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, false, err
		default:
			truths, err := parseYOLO(string(data), classes)
			return truths, true, files.Name(place, err)
		}
	}
	return nil, false, nil
}

func parseYOLO(lines string, classes []int) (list []Truth, err error) {
	number := 0
	for line := range strings.Lines(lines) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		var v [4]float64
		class, err := strconv.Atoi(fields[0])
		if err != nil || len(fields) != 5 {
			return nil, fmt.Errorf("line %d: want a class and four numbers: centre x and y, width, height", number)
		}
		if class < 0 || class >= len(classes) {
			return nil, fmt.Errorf("line %d: class %d, but those of the model are 0 to %d", number, class, len(classes)-1)
		}
		for k := range v {
			if v[k], err = strconv.ParseFloat(fields[1+k], 64); err != nil {
				return nil, fmt.Errorf("line %d: want a class and four numbers: centre x and y, width, height", number)
			}
		}
		t := Truth{Class: classes[class], X0: v[0] - v[2]/2, Y0: v[1] - v[3]/2, X1: v[0] + v[2]/2, Y1: v[1] + v[3]/2}
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		list = append(list, t)
	}
	return list, nil
}
