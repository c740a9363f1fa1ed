//go:build cgo && (linux || (windows && amd64))

package main

/*
#include "bitcnn.h"
*/
import "C"

import (
	"bytes"
	"math"
	"unsafe"

	"github.com/bitcnn/bitcnn/vision"
)

//export bitcnnGoDetect
func bitcnnGoDetect(number C.bitcnn_session, data unsafe.Pointer, size C.size_t, threshold, overlap C.float, background C.uint32_t, boxes *C.bitcnn_box, capacity C.size_t, count *C.size_t, message **C.char) C.int {
	return with(number, message, func(s *session) error {
		if err := fits(data, uint64(size)); err != nil {
			return err
		}
		to, err := array(boxes, capacity, "boxes")
		if err != nil {
			return err
		}
		if len(to) == 0 {
			return invalid("no memory for boxes")
		}
		ground, err := colour(background)
		if err != nil {
			return err
		}
		o := vision.DetectorOptions{Threshold: float32(threshold), Overlap: float32(overlap), Top: min(len(to), math.MaxInt32)}
		o.Background = ground
		d, err := vision.NewDetector(s.Session, o)
		if err != nil {
			return invalid("%v", err)
		}
		img, err := d.Preprocessing().Decode(ctx, bytes.NewReader(unsafe.Slice((*byte)(data), int(size))))
		if err != nil {
			return &imageError{err}
		}
		found, err := d.Detect(ctx, img)
		if err != nil {
			return err
		}
		for i, b := range found {
			to[i] = C.bitcnn_box{
				left: C.float(b.X0), top: C.float(b.Y0), right: C.float(b.X1), bottom: C.float(b.Y1), score: C.float(b.Score), index: C.int32_t(b.Index),
			}
		}
		*count = C.size_t(len(found))
		return nil
	})
}

// colour reads a background, 0xRRGGBB.
func colour(background C.uint32_t) (c [3]uint8, err error) {
	if background > 0xffffff {
		return c, invalid("background is %#x, want 0xRRGGBB", uint32(background))
	}
	return [3]uint8{uint8(background >> 16), uint8(background >> 8), uint8(background)}, nil
}
