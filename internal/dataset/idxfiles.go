package dataset

import (
	"context"
	"fmt"
	"image"

	"github.com/bitcnn/bitcnn/internal/dataset/idx"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/vision"
)

// idxFiles is a data set of two IDX files.
type idxFiles struct {
	images, labels []uint8
	n, h, w, c     int
}

func (s *idxFiles) Len() int          { return s.n }
func (s *idxFiles) Class(i int) int   { return int(s.labels[i]) }
func (s *idxFiles) Name(i int) string { return fmt.Sprintf("image %d", i) }

// Image cannot fail: the pixels are in memory.
func (s *idxFiles) Image(_ context.Context, i int, _ vision.Preprocessing) (image.Image, error) {
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

// OpenIDX reads a data set of two IDX files, as MNIST has them, plain or
// compressed with gzip. The labels are less than the number of classes.
func OpenIDX(imageFile, labelFile string, classes int) (Set, error) {
	images, err := idx.Load(imageFile)
	if err != nil {
		return nil, err
	}
	labels, err := idx.Load(labelFile)
	if err != nil {
		return nil, err
	}
	s := &idxFiles{images: images.Data, labels: labels.Data, c: 1}
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
