package main

import (
	"context"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/internal/dataset/idx"
	"github.com/bitcnn/bitcnn/vision"
)

// folder is a data set of the form DIR/CLASS/IMAGE.
type folder struct {
	files   []string
	classes []int
}

func (f *folder) len() int        { return len(f.files) }
func (f *folder) class(i int) int { return f.classes[i] }
func (f *folder) image(i int) (image.Image, error) {
	return vision.Decode(f.files[i])
}

// openFolder lists the images of a folder. Every folder in it must be named
// after one of the model's classes; hidden ones are passed over.
func openFolder(ctx context.Context, dir string, labels []string) (*folder, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		class := slices.Index(labels, e.Name())
		if class < 0 {
			return nil, fmt.Errorf("%s: the folder is not named after a class of the model, which has %s",
				filepath.Join(dir, e.Name()), strings.Join(labels, ", "))
		}
		images, err := os.ReadDir(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		for _, image := range images {
			switch strings.ToLower(filepath.Ext(image.Name())) {
			case ".jpg", ".jpeg", ".png":
				f.files = append(f.files, filepath.Join(dir, e.Name(), image.Name()))
				f.classes = append(f.classes, class)
			}
		}
	}
	if len(f.files) == 0 {
		return nil, fmt.Errorf("%s: no images; the folder must hold CLASS/*.jpg, *.jpeg or *.png", dir)
	}
	return f, nil
}

// idxSet is a data set of two IDX files.
type idxSet struct {
	images, labels []uint8
	n, h, w, c     int
}

func (s *idxSet) len() int        { return s.n }
func (s *idxSet) class(i int) int { return int(s.labels[i]) }

func (s *idxSet) image(i int) (image.Image, error) {
	rect := image.Rect(0, 0, s.w, s.h)
	pixels := s.images[i*s.h*s.w*s.c : (i+1)*s.h*s.w*s.c]
	if s.c == 1 {
		return &image.Gray{Pix: pixels, Stride: s.w, Rect: rect}, nil
	}
	rgb := image.NewNRGBA(rect)
	for p := range s.h * s.w {
		copy(rgb.Pix[4*p:], pixels[3*p:3*p+3])
		rgb.Pix[4*p+3] = 0xff
	}
	return rgb, nil
}

// openIDX reads the images and the labels of a data set.
func openIDX(imageFile, labelFile string, classes int) (*idxSet, error) {
	images, err := idx.Load(imageFile)
	if err != nil {
		return nil, err
	}
	labels, err := idx.Load(labelFile)
	if err != nil {
		return nil, err
	}
	s := &idxSet{images: images.Data, labels: labels.Data, c: 1}
	dims := images.Dims
	if len(dims) == 4 {
		s.c = dims[3]
	}
	if len(dims) < 3 || len(dims) > 4 || s.c != 1 && s.c != 3 {
		return nil, fmt.Errorf("%s: dimensions %v, want images × height × width, or × 3 for RGB", imageFile, dims)
	}
	s.n, s.h, s.w = dims[0], dims[1], dims[2]
	if len(labels.Dims) != 1 || labels.Dims[0] != s.n {
		return nil, fmt.Errorf("%s: dimensions %v, want one label for each of the %d images of %s", labelFile, labels.Dims, s.n, imageFile)
	}
	if s.n == 0 || s.h == 0 || s.w == 0 {
		return nil, fmt.Errorf("%s: dimensions %v, there are no images", imageFile, dims)
	}
	for i, l := range s.labels {
		if int(l) >= classes {
			return nil, fmt.Errorf("%s: label %d of image %d, but the model has %d classes", labelFile, l, i, classes)
		}
	}
	return s, nil
}
