//go:build cgo && (linux || (windows && amd64))

package main

/*
#include "bitcnn.h"
*/
import "C"

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bincnn"
	"github.com/bitcnn/bitcnn/bcnn/bmxnet"
	"github.com/bitcnn/bitcnn/bcnn/darknet"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/openvino"
	"github.com/bitcnn/bitcnn/bcnn/tflite"
	"github.com/bitcnn/bitcnn/internal/summary"
)

var models = table[bitcnn.Model]{kind: 1, what: "model"}

// A call from C cannot be given up.
var ctx = context.Background()

//export bitcnnGoLoad
func bitcnnGoLoad(path *C.char, options *C.bitcnn_load_options, model *C.bitcnn_model, message **C.char) C.int {
	return do(message, func() error {
		opts, err := loadOptions(options)
		if err != nil {
			return err
		}
		return added(model, func() (*bitcnn.Model, error) { return bitcnn.Load(ctx, text(path), opts) })
	})
}

//export bitcnnGoRead
func bitcnnGoRead(data unsafe.Pointer, size C.size_t, options *C.bitcnn_load_options, model *C.bitcnn_model, message **C.char) C.int {
	return do(message, func() error {
		if err := fits(data, uint64(size)); err != nil {
			return err
		}
		opts, err := loadOptions(options)
		if err != nil {
			return err
		}
		return added(model, func() (*bitcnn.Model, error) {
			return bitcnn.Read(ctx, bytes.NewReader(unsafe.Slice((*byte)(data), int(size))), opts)
		})
	})
}

//export bitcnnGoBundled
func bitcnnGoBundled(name *C.char, model *C.bitcnn_model, message **C.char) C.int {
	return do(message, func() error {
		return added(model, func() (*bitcnn.Model, error) {
			m, err := bitcnn.Bundled(text(name))
			if err != nil && !slices.Contains(bitcnn.BundledNames(), text(name)) {
				err = &notFoundError{err.Error()}
			}
			return m, err
		})
	})
}

// added gives a model that is loaded a number.
func added(model *C.bitcnn_model, load func() (*bitcnn.Model, error)) error {
	m, err := load()
	if err != nil {
		return &modelError{err}
	}
	number, err := models.add(m)
	*model = C.bitcnn_model(number)
	return err
}

func loadOptions(o *C.bitcnn_load_options) (opts bitcnn.LoadOptions, err error) {
	opts.BinCNN = bincnn.Mode(text(o.bincnn))
	opts.Limits = bitcnn.Limits{FileBytes: int64(o.file_bytes), Layers: int(o.layers), TensorBytes: int64(o.tensor_bytes)}
	x := &opts.ONNX
	switch o.input_dtype {
	case 0, C.BITCNN_UINT8, C.BITCNN_FLOAT32:
		x.InputType = bcnn.DType(o.input_dtype)
	default:
		return opts, invalid("invalid input type: %d", int(o.input_dtype))
	}
	switch o.sign_of_zero {
	case 0:
	case 1:
		x.SignOfZero = bcnn.ZeroIsPlus
	case -1:
		x.SignOfZero = bcnn.ZeroIsMinus
	default:
		return opts, invalid("the sign of zero is %d, want 1, -1 or 0", int(o.sign_of_zero))
	}
	x.InputShape = bitcnn.Shape{H: int(o.input_height), W: int(o.input_width), C: int(o.input_channels)}
	x.OverrideZeros = o.override_zeros != 0
	x.WeightTolerance = float64(o.weight_tolerance)
	x.Name, x.Resize = strings.Clone(text(o.name)), int(o.resize)
	if x.Mean, err = floats(o.mean, o.mean_count, "mean"); err != nil {
		return opts, err
	}
	if x.Scale, err = floats(o.scale, o.scale_count, "scale"); err != nil {
		return opts, err
	}
	labels, err := array(o.labels, o.label_count, "labels")
	if err != nil {
		return opts, err
	}
	for i, l := range labels {
		if l == nil {
			return opts, invalid("label %d is NULL", i)
		}
		x.Labels = append(x.Labels, text(l))
	}
	opts.TFLite = tflite.Options{
		InputType: x.InputType, Mean: x.Mean, Scale: x.Scale, Name: x.Name, Labels: x.Labels, Resize: x.Resize,
	}
	opts.BMXNet = bmxnet.Options{
		InputShape: x.InputShape, InputType: x.InputType, Mean: x.Mean, Scale: x.Scale, Name: x.Name, Labels: x.Labels, Resize: x.Resize,
	}
	opts.Darknet = darknet.Options{
		InputType: x.InputType, Mean: x.Mean, Scale: x.Scale, Name: x.Name, Labels: x.Labels, Resize: x.Resize,
	}
	opts.OpenVINO = openvino.Options{
		InputShape: x.InputShape, InputType: x.InputType, Mean: x.Mean, Scale: x.Scale, Name: x.Name, Labels: x.Labels, Resize: x.Resize,
	}
	return opts, nil
}

// array is caller-owned memory with a number of elements, which is not kept.
func array[T any](data *T, count C.size_t, what string) ([]T, error) {
	var element T
	switch {
	case count == 0:
		return nil, nil
	case data == nil:
		return nil, invalid("no %s: a pointer is NULL", what)
	case uint64(count) > math.MaxInt32:
		return nil, invalid("too many %[2]s: %[1]d", uint64(count), what)
	case uintptr(unsafe.Pointer(data))%unsafe.Alignof(element) != 0:
		return nil, invalid("%s at %#x are not aligned", what, uintptr(unsafe.Pointer(data)))
	}
	return unsafe.Slice(data, int(count)), fits(unsafe.Pointer(data), uint64(count)*uint64(unsafe.Sizeof(element)))
}

func floats(data *C.float, count C.size_t, what string) ([]float32, error) {
	list, err := array((*float32)(data), count, what)
	return slices.Clone(list), err
}

//export bitcnnGoSave
func bitcnnGoSave(model C.bitcnn_model, path *C.char, message **C.char) C.int {
	return do(message, func() error {
		m, err := models.get(uint64(model))
		if err != nil {
			return err
		}
		return modelfile.Save(text(path), m)
	})
}

//export bitcnnGoCloseModel
func bitcnnGoCloseModel(model C.bitcnn_model, message **C.char) C.int {
	return do(message, func() error {
		_, err := models.take(uint64(model))
		return err
	})
}

//export bitcnnGoBundledName
func bitcnnGoBundledName(index C.size_t, to *C.char, size C.size_t, length *C.size_t, message **C.char) C.int {
	return do(message, func() error {
		name, err := at(bitcnn.BundledNames(), index, "bundled model")
		if err != nil {
			return err
		}
		return put(to, size, length, name)
	})
}

// report is the object of bitcnn_report.
type report struct {
	Name   string        `json:"name"`
	Inputs []reportInput `json:"inputs"`
	Labels []string      `json:"labels"`
	*summary.Report
}

type reportInput struct {
	Name     string `json:"name"`
	DType    string `json:"dtype"`
	Height   int    `json:"height"`
	Width    int    `json:"width"`
	Channels int    `json:"channels"`
	Resize   int    `json:"resize"`
}

func newReport(m *bitcnn.Model) (*report, error) {
	program, err := lower.Compile(ctx, m, lower.Options{})
	if err != nil {
		return nil, err
	}
	r := &report{Name: m.Name, Labels: append([]string{}, m.Labels...), Report: summary.New(program.Network, program.Plan)}
	for i, in := range m.Inputs {
		r.Inputs = append(r.Inputs, reportInput{
			m.InputName(i), in.DType.String(), in.Shape.H, in.Shape.W, in.Shape.C, in.Resize,
		})
	}
	return r, nil
}

//export bitcnnGoReport
func bitcnnGoReport(model C.bitcnn_model, to *C.char, size C.size_t, length *C.size_t, message **C.char) C.int {
	return do(message, func() error {
		m, err := models.get(uint64(model))
		if err != nil {
			return err
		}
		r, err := newReport(m)
		if err != nil {
			return err
		}
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return put(to, size, length, string(b))
	})
}
