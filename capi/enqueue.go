//go:build cgo && (linux || (windows && amd64))

package main

/*
#include "bitcnn.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/bitcnn/bitcnn"
)

//export bitcnnGoEnqueue
func bitcnnGoEnqueue(number C.bitcnn_session, stream C.uintptr_t, images C.int64_t, in *C.bitcnn_tensor, ins C.size_t,
	out *C.bitcnn_tensor, outs C.size_t, message **C.char,
) C.int {
	return with(number, message, func(s *session) error {
		if int(ins) != len(s.inputs) || int(outs) != len(s.outputs) {
			return fmt.Errorf("%w: inputs: got %d, want %d; outputs: got %d, want %d",
				bitcnn.ErrShape, uint64(ins), len(s.inputs), uint64(outs), len(s.outputs))
		}
		if err := s.checkBatch(int64(images)); err != nil {
			return err
		}
		from, err := addresses(s.inputs, in, int64(images))
		if err != nil {
			return err
		}
		to, err := addresses(s.outputs, out, int64(images))
		if err != nil {
			return err
		}
		if err := s.checkDisjoint(in, out); err != nil {
			return err
		}
		return s.Enqueue(ctx, uintptr(stream), int(images), to, from)
	})
}

// addresses returns those of tensors in memory of the device.
func addresses(list []bitcnn.IO, memory *C.bitcnn_tensor, images int64) ([]uintptr, error) {
	all := make([]uintptr, len(list))
	for i := range list {
		m := &unsafe.Slice(memory, len(list))[i]
		if err := checkMemory(&list[i], m, images); err != nil {
			return nil, err
		}
		if isNCHW(m, list[i].Shape) {
			return nil, fmt.Errorf("%s: tensors in device memory must be NHWC: %w", list[i].Name, errors.ErrUnsupported)
		}
		all[i] = uintptr(m.data)
	}
	return all, nil
}
