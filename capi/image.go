//go:build cgo && (linux || (windows && amd64))

package main

/*
#include "bitcnn.h"
*/
import "C"

import (
	"bytes"
	"context"
	"fmt"
	"unsafe"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/vision"
)

//export bitcnnGoReadImage
func bitcnnGoReadImage(data unsafe.Pointer, size C.size_t, height, width, channels, resize C.int32_t, background C.uint32_t, pixels *C.uint8_t, pixelBytes C.size_t, message **C.char) C.int {
	return do(message, func() error {
		if err := fits(data, uint64(size)); err != nil {
			return err
		}
		shape := bcnn.Shape{H: int(height), W: int(width), C: int(channels)}
		p := vision.Preprocessing{Input: bcnn.Input{Shape: shape, DType: bcnn.Uint8, Resize: int(resize)}}
		var err error
		if p.Background, err = colour(background); err != nil {
			return err
		}
		if err := p.Check(); err != nil {
			return err
		}
		to, err := array((*uint8)(pixels), pixelBytes, "pixels")
		if err != nil {
			return err
		}
		if want := shape.Values(); len(to) != want {
			return fmt.Errorf("%w: memory of %d bytes, an image of %v has %d", bitcnn.ErrShape, len(to), shape, want)
		}
		img, err := p.Decode(context.Background(), bytes.NewReader(unsafe.Slice((*byte)(data), int(size))))
		if err != nil {
			return &imageError{err}
		}
		return p.Fill(context.Background(), bcnn.Tensor{DType: bcnn.Uint8, N: 1, Shape: shape, U8: to}, 0, img)
	})
}
