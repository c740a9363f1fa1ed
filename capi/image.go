//go:build cgo && (linux || (windows && amd64))

package main

/*
#include "bitcnn.h"
*/
import "C"

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/vision"
)

//export bitcnnGoReadPhoto
func bitcnnGoReadPhoto(number C.bitcnn_session, data unsafe.Pointer, size C.size_t, background C.uint32_t, values unsafe.Pointer, valueBytes C.size_t, frame *C.bitcnn_frame, message **C.char) C.int {
	return with(number, message, func(s *session) error {
		if err := fits(data, uint64(size)); err != nil {
			return err
		}
		inputs := s.Inputs()
		if len(inputs) != 1 {
			return invalid("the model has %d inputs and does not read photos", len(inputs))
		}
		ground, err := colour(background)
		if err != nil {
			return err
		}
		p, err := vision.Options{Background: ground}.Preprocessing(inputs[0])
		if err != nil {
			return invalid("%v", err)
		}
		in := bcnn.Tensor{DType: p.Input.DType, N: 1, Shape: p.Input.Shape}
		want := uint64(in.Shape.Values())
		if in.DType == bcnn.Float32 {
			want *= 4
		}
		if uint64(valueBytes) != want {
			return fmt.Errorf("%w: buffer of %d bytes, the input needs %d", bitcnn.ErrShape, uint64(valueBytes), want)
		}
		if in.DType == bcnn.Float32 {
			in.F32, err = array((*float32)(values), valueBytes/4, "values")
		} else {
			in.U8, err = array((*uint8)(values), valueBytes, "values")
		}
		if err != nil {
			return err
		}
		img, err := p.Decode(ctx, bytes.NewReader(unsafe.Slice((*byte)(data), int(size))))
		if err != nil {
			return &imageError{err}
		}
		if err := p.Fill(ctx, in, 0, img); err != nil {
			return err
		}
		shown, err := p.Frame(img)
		if err == nil && frame != nil {
			*frame = C.bitcnn_frame{
				x: C.double(shown.X), y: C.double(shown.Y), width: C.double(shown.W), height: C.double(shown.H),
				photo_width: C.int32_t(shown.Size.X), photo_height: C.int32_t(shown.Size.Y),
			}
		}
		return err
	})
}

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
			return fmt.Errorf("%w: buffer of %d bytes, an image of %v needs %d", bitcnn.ErrShape, len(to), shape, want)
		}
		img, err := p.Decode(ctx, bytes.NewReader(unsafe.Slice((*byte)(data), int(size))))
		if err != nil {
			return &imageError{err}
		}
		return p.Fill(ctx, bcnn.Tensor{DType: bcnn.Uint8, N: 1, Shape: shape, U8: to}, 0, img)
	})
}
