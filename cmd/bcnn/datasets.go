package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/internal/dataset/idx"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
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
	return vision.DecodeFile(f.files[i])
}

// openFolder lists the images of a folder. Every folder in it must be named
// after one of the model's classes; hidden ones are passed over.
func openFolder(ctx context.Context, dir string, labels []string) (*folder, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, files.Name(dir, err)
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
			return nil, files.Name(filepath.Join(dir, e.Name()),
				fmt.Errorf("the folder is not named after a class of the model, which has %s", text.Escape(strings.Join(labels, ", "))))
		}
		images, err := os.ReadDir(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, files.Name(filepath.Join(dir, e.Name()), err)
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
		return nil, files.Name(dir, errors.New("no images; the folder must hold CLASS/*.jpg, *.jpeg or *.png"))
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
		return nil, files.Name(imageFile, fmt.Errorf("dimensions %v, want images × height × width, or × 3 for RGB", dims))
	}
	s.n, s.h, s.w = dims[0], dims[1], dims[2]
	if len(labels.Dims) != 1 || labels.Dims[0] != s.n {
		return nil, files.Name(labelFile, fmt.Errorf("dimensions %v, want one label for each of the %d images of %s", labels.Dims, s.n, text.Escape(imageFile)))
	}
	if s.n == 0 || s.h == 0 || s.w == 0 {
		return nil, files.Name(imageFile, fmt.Errorf("dimensions %v, there are no images", dims))
	}
	for i, l := range s.labels {
		if int(l) >= classes {
			return nil, files.Name(labelFile, fmt.Errorf("label %d of image %d, but the model has %d classes", l, i, classes))
		}
	}
	return s, nil
}
