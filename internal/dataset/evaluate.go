package dataset

import (
	"context"
	"image"
	"runtime"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/host"
	"github.com/bitcnn/bitcnn/internal/parallel"
	"github.com/bitcnn/bitcnn/vision"
)

// Evaluation is how well a classifier knows the images of a set.
type Evaluation struct {
	Correct  int     `json:"correct"`
	Total    int     `json:"total"`
	Accuracy float64 `json:"accuracy"` // 0 to 1
	// Confusion counts images by true class, then by predicted class.
	Confusion [][]int `json:"confusion"`
}

func (e *Evaluation) add(class, predicted int) {
	e.Confusion[class][predicted]++
	e.Total++
	if class == predicted {
		e.Correct++
	}
	e.Accuracy = float64(e.Correct) / float64(e.Total)
}

// AtOnce returns how many images may be read at the same time: as many as there are
// processors, but no more than fit into the memory that is free if each takes
// vision.MaxBytes.
func AtOnce() int { return atOnce(runtime.GOMAXPROCS(0), host.Available()) }

func atOnce(processors int, memory int64) int {
	if memory == 0 { // unknown
		return processors
	}
	return int(max(1, min(int64(processors), memory/vision.MaxBytes)))
}

// Observer follows an evaluation, in the order of the images.
type Observer struct {
	Progress func(done, total int)
	Broken   func(error)                  // an image that cannot be read
	Answer   func(i int, r vision.Result) // may be nil
}

// Evaluate classifies all images, a number of them in a batch: see Batches. Images that cannot be
// read are not counted.
func Evaluate(ctx context.Context, c *vision.Classifier, set Set, size int, o Observer) (*Evaluation, error) {
	classes := len(c.Labels())
	e := &Evaluation{Confusion: make([][]int, classes)}
	for i := range e.Confusion {
		e.Confusion[i] = make([]int, classes)
	}
	p := c.Preprocessing()
	b := Batches[struct{}]{
		Images: set.Len(), Size: size, Preprocessing: p,
		Read: func(i int) (image.Image, error) { return set.Image(ctx, i, p) },
		Run: func(batch bcnn.Tensor, members []int, _ []struct{}) error {
			results, err := c.ClassifyTensor(ctx, batch)
			if err != nil {
				return err
			}
			for k, r := range results {
				e.add(set.Class(members[k]), r.Index)
				if o.Answer != nil {
					o.Answer(members[k], r)
				}
			}
			return nil
		},
	}
	return e, b.Each(ctx, o)
}

// Batches are images that a network reads, a number of them at a time. T is what is to be known of each
// image besides.
type Batches[T any] struct {
	Images, Size  int
	Preprocessing vision.Preprocessing
	Read          func(i int) (image.Image, error)
	Note          func(img image.Image) (T, error) // nil where nothing is to be known
	// Run runs a batch of images, whose numbers are those of members.
	Run func(batch bcnn.Tensor, members []int, notes []T) error
}

// Each runs all batches. While the device works on one batch, others are read, AtOnce at the same time.
// Images that cannot be read are left out, and the observer is told.
func (b Batches[T]) Each(ctx context.Context, o Observer) error {
	in := b.Preprocessing.Input
	type prepared struct {
		image bcnn.Tensor
		note  T
		err   error
	}
	prepare := func(i int) (p prepared) {
		img, err := b.Read(i)
		if err != nil {
			return prepared{err: err}
		}
		if b.Note != nil {
			if p.note, p.err = b.Note(img); p.err != nil {
				return p
			}
		}
		p.image = bcnn.NewTensor(in.DType, 1, in.Shape)
		p.err = b.Preprocessing.Fill(ctx, p.image, 0, img)
		return p
	}
	batch := bcnn.Tensor{DType: in.DType, Shape: in.Shape}
	var members []int
	var notes []T
	return parallel.InOrder(ctx, b.Images, AtOnce(), prepare, func(i int, p prepared) error {
		if p.err != nil {
			o.Broken(p.err)
		} else {
			batch.N++
			batch.U8 = append(batch.U8, p.image.U8...)
			batch.F32 = append(batch.F32, p.image.F32...)
			members, notes = append(members, i), append(notes, p.note)
		}
		if last := i == b.Images-1; batch.N < b.Size && !last {
			return nil
		}
		if batch.N > 0 {
			if err := b.Run(batch, members, notes); err != nil {
				return err
			}
			batch.N, batch.U8, batch.F32, members, notes = 0, batch.U8[:0], batch.F32[:0], members[:0], notes[:0]
		}
		o.Progress(i+1, b.Images)
		return nil
	})
}
