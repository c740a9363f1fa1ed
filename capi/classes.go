//go:build cgo && (linux || (windows && amd64))

package main

/*
#include "bitcnn.h"
*/
import "C"

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/vision"
)

//export bitcnnGoSoftmax
func bitcnnGoSoftmax(scores *C.float, count C.size_t, probabilities *C.double, message **C.char) C.int {
	return do(message, func() error {
		from, err := finite(scores, count)
		if err != nil {
			return err
		}
		to, err := array((*float64)(probabilities), count, "probabilities")
		if err != nil {
			return err
		}
		copy(to, bcnn.Probabilities(from))
		return nil
	})
}

//export bitcnnGoTopK
func bitcnnGoTopK(scores *C.float, count C.size_t, indices *C.size_t, probabilities *C.double, k C.size_t, message **C.char) C.int {
	return do(message, func() error {
		from, err := finite(scores, count)
		if err != nil {
			return err
		}
		if k > count {
			return invalid("%d classes of %d", uint64(k), uint64(count))
		}
		to, err := array(indices, k, "indices")
		if err != nil {
			return err
		}
		// Who wants the classes alone gives no place for probabilities.
		var likely []float64
		if probabilities != nil {
			if likely, err = array((*float64)(probabilities), k, "probabilities"); err != nil {
				return err
			}
		}
		for i, c := range vision.TopK(from, nil, int(k)) {
			to[i] = C.size_t(c.Index)
			if likely != nil {
				likely[i] = c.Probability
			}
		}
		return nil
	})
}

// finite returns a copy of scores, in which infinities and NaN are errors: they have no order
// and no probability.
func finite(scores *C.float, count C.size_t) ([]float32, error) {
	list, err := floats(scores, count, "scores")
	if err != nil {
		return nil, err
	}
	for i, v := range list {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, invalid("score %d is %v, want a finite number", i, v)
		}
	}
	return list, nil
}
