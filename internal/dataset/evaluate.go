package dataset

import (
	"context"
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

// Evaluate classifies all images, a number of them in a batch. While the device
// works on one batch, others are read, AtOnce at the same time. Images that cannot be
// read are not counted.
func Evaluate(ctx context.Context, c *vision.Classifier, set Set, size int, o Observer) (*Evaluation, error) {
	classes := len(c.Labels())
	e := &Evaluation{Confusion: make([][]int, classes)}
	for i := range e.Confusion {
		e.Confusion[i] = make([]int, classes)
	}
	preprocessing := c.Preprocessing()
	type prepared struct {
		image bcnn.Tensor
		err   error
	}
	prepare := func(i int) prepared {
		img, err := set.Image(ctx, i, preprocessing)
		if err != nil {
			return prepared{err: err}
		}
		t := bcnn.NewTensor(preprocessing.Input.DType, 1, preprocessing.Input.Shape)
		return prepared{t, preprocessing.Fill(ctx, t, 0, img)}
	}
	batch := bcnn.Tensor{DType: preprocessing.Input.DType, Shape: preprocessing.Input.Shape}
	var members []int // of the batch
	err := parallel.InOrder(ctx, set.Len(), AtOnce(), prepare, func(i int, p prepared) error {
		if p.err != nil {
			o.Broken(p.err)
		} else {
			batch.N++
			batch.U8 = append(batch.U8, p.image.U8...)
			batch.F32 = append(batch.F32, p.image.F32...)
			members = append(members, i)
		}
		if last := i == set.Len()-1; batch.N < size && !last {
			return nil
		}
		if batch.N > 0 {
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
			batch.N, batch.U8, batch.F32, members = 0, batch.U8[:0], batch.F32[:0], members[:0]
		}
		o.Progress(i+1, set.Len())
		return nil
	})
	return e, err
}
