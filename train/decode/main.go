// Command decode turns folders of photos into the IDX files that the training
// scripts read, with the decoder of the runtime: networks are trained on the
// bytes that they will see.
//
//	go run ./train/decode -out DATA PHOTOS
//
// PHOTOS/CLASS/NAME<number>.jpg are RGB photos of one size, numbered from 1.
// Photos up to -train (560) go to train-images.idx and train-labels.idx, those
// above to val-images.idx and val-labels.idx, class by class, in the order of
// the classes' names and of the numbers.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/dataset/idx"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/vision"
)

func main() {
	out := flag.String("out", ".", "folder for the IDX files")
	last := flag.Int("train", 560, "number of the last photo of a class that is for training")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: decode [-out DIR] [-train N] PHOTOS")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *out, *last); err != nil {
		fmt.Fprintln(os.Stderr, "decode:", err)
		os.Exit(1)
	}
}

type photo struct {
	path   string
	number int
}

var numbered = regexp.MustCompile(`^\D*(\d+)\.(?i:jpe?g|png)$`)

// set collects photos of one size.
type set struct {
	size           image.Point
	images, labels []uint8
}

func run(dir, out string, last int) error {
	classes, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var train, val set
	class := uint8(0)
	for _, c := range classes {
		if !c.IsDir() {
			continue
		}
		photos, err := list(filepath.Join(dir, c.Name()))
		if err != nil {
			return err
		}
		for _, p := range photos {
			to := &train
			if p.number > last {
				to = &val
			}
			if err := to.add(p.path, class); err != nil {
				return err
			}
		}
		fmt.Printf("%d %s: %d photos\n", class, c.Name(), len(photos))
		class++
	}
	if err := train.write(out, "train"); err != nil {
		return err
	}
	return val.write(out, "val")
}

// list returns the photos of a folder in the order of their numbers.
func list(dir string) ([]photo, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var photos []photo
	for _, e := range entries {
		m := numbered.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, e.Name()), err)
		}
		photos = append(photos, photo{filepath.Join(dir, e.Name()), n})
	}
	slices.SortFunc(photos, func(a, b photo) int { return cmp.Compare(a.number, b.number) })
	return photos, nil
}

func (s *set) add(path string, class uint8) error {
	img, err := vision.DecodeFile(path)
	if err != nil {
		return err
	}
	size := img.Bounds().Size()
	if len(s.labels) == 0 {
		s.size = size
	}
	if size != s.size {
		return fmt.Errorf("%s: %d×%d pixels, those before have %d×%d", path, size.X, size.Y, s.size.X, s.size.Y)
	}
	in := bcnn.Input{Shape: bcnn.Shape{H: size.Y, W: size.X, C: 3}, DType: bcnn.Uint8}
	t := bcnn.NewTensor(in.DType, 1, in.Shape)
	if err := (vision.Preprocessing{Input: in}).Fill(t, 0, img); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.images = append(s.images, t.U8...)
	s.labels = append(s.labels, class)
	return nil
}

func (s *set) write(dir, name string) error {
	n := len(s.labels)
	return errors.Join(
		write(filepath.Join(dir, name+"-images.idx"), &idx.Array{Dims: []int{n, s.size.Y, s.size.X, 3}, Data: s.images}),
		write(filepath.Join(dir, name+"-labels.idx"), &idx.Array{Dims: []int{n}, Data: s.labels}),
	)
}

func write(path string, a *idx.Array) error {
	return files.Replace(path, func(w io.Writer) error { return idx.Write(w, a) })
}
