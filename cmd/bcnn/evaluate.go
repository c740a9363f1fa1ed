package main

import (
	"context"
	"image"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/vision"
)

// dataset is a set of images of known classes. image is called from several
// goroutines; its errors name the file.
type dataset interface {
	len() int
	class(i int) int
	image(i int) (image.Image, error)
}

// evaluation is the result of eval, and its line of --json.
type evaluation struct {
	Correct  int     `json:"correct"`
	Total    int     `json:"total"`
	Accuracy float64 `json:"accuracy"`
	// Confusion counts images by true class, then by predicted class.
	Confusion [][]int `json:"confusion"`
}

func (e *evaluation) add(class, predicted int) {
	e.Confusion[class][predicted]++
	e.Total++
	if class == predicted {
		e.Correct++
	}
	e.Accuracy = float64(e.Correct) / float64(e.Total)
}

// batch is a number of decoded images of known classes.
type batch struct {
	in      bcnn.Tensor
	classes []int
}

// evaluate classifies all images. While the device works on one batch, the
// next is decoded. Images that cannot be read go to broken and are not counted.
func evaluate(ctx context.Context, r *runner, data dataset, size int, progress func(done, total int), broken func(error)) (*evaluation, error) {
	classes := r.plan.OutputShape().Values()
	result := &evaluation{Confusion: make([][]int, classes)}
	for i := range result.Confusion {
		result.Confusion[i] = make([]int, classes)
	}

	ctx, cancel := context.WithCancel(ctx)
	free := make(chan *batch, 2)
	for range cap(free) {
		free <- &batch{in: bcnn.NewTensor(bcnn.Uint8, size, r.plan.Input.Shape)}
	}
	ready := make(chan *batch)
	var reader sync.WaitGroup
	reader.Add(1)
	go func() {
		defer reader.Done()
		defer close(ready)
		for from := 0; from < data.len(); from += size {
			select {
			case b := <-free:
				decode(ctx, b, data, from, min(from+size, data.len()), r.plan.Input, broken)
				select {
				case ready <- b:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	defer reader.Wait()
	defer cancel()

	done := 0
	for b := range ready {
		n := len(b.classes)
		if n > 0 {
			if err := r.exe.Run(ctx, firstImages(r.out, n), firstImages(b.in, n)); err != nil {
				return nil, err
			}
			for i, class := range b.classes {
				result.add(class, argmax(r.logits(i)))
			}
		}
		free <- b
		done = min(done+size, data.len())
		progress(done, data.len())
	}
	return result, ctx.Err()
}

// decode fills a batch with the images from ≤ i < to, on all processors. Where
// ctx ends, it stops and leaves the batch empty.
func decode(ctx context.Context, b *batch, data dataset, from, to int, in bcnn.Input, broken func(error)) {
	size := in.Shape.Values()
	errs := make([]error, to-from)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), to-from) {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(errs) || ctx.Err() != nil {
					return
				}
				img, err := data.image(from + i)
				if err == nil {
					err = vision.Preprocessing{Input: in}.Fill(b.in, i, img)
				}
				errs[i] = err
			}
		}()
	}
	workers.Wait()

	b.classes = b.classes[:0]
	if ctx.Err() != nil {
		return // some images have not been read
	}
	// Close the gaps that broken images leave.
	for i, err := range errs {
		if err != nil {
			broken(err)
			continue
		}
		n := len(b.classes)
		copy(b.in.U8[n*size:(n+1)*size], b.in.U8[i*size:(i+1)*size])
		b.classes = append(b.classes, data.class(from+i))
	}
}
