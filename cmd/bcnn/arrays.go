package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/arrays"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/text"
)

// arrayFile is an open .npy or .npz file.
type arrayFile struct {
	name string // for errors
	*npy.File
	io.Closer
}

// openArrays opens a file of arrays; - is standard input.
func openArrays(ctx context.Context, name string, stdin io.Reader) (*arrayFile, error) {
	if name == standardInput {
		data, err := readStandardInput(ctx, stdin)
		if err != nil {
			return nil, err
		}
		f, err := npy.Open(bytes.NewReader(data), int64(len(data)))
		return &arrayFile{"standard input", f, io.NopCloser(nil)}, files.Name("standard input", err)
	}
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	f, err := npy.Open(file, file.Size())
	if err != nil {
		file.Close()
		return nil, files.Name(name, err)
	}
	return &arrayFile{name, f, file}, nil
}

// readStandardInput reads what there is, and no more than the limit of an array.
func readStandardInput(ctx context.Context, stdin io.Reader) ([]byte, error) {
	type content struct {
		data []byte
		err  error
	}
	done := make(chan content, 1)
	go func() { // reading cannot be interrupted: it is left behind
		data, err := io.ReadAll(io.LimitReader(stdin, npy.MaxBytes+1))
		if err == nil && int64(len(data)) > npy.MaxBytes {
			err = fmt.Errorf("more than %d bytes, which are all that is read", int64(npy.MaxBytes))
		}
		done <- content{data, files.Name("standard input", err)}
	}()
	select {
	case c := <-done:
		return c.data, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// arrayRunner runs a model on arrays.
type arrayRunner struct {
	model, device string
	opts          bitcnn.Options
	net           *bcnn.Network
	ports         *arrays.Ports
}

// flags adds the flags that say what runs where.
func (r *arrayRunner) flags(cmd *cobra.Command) {
	r.opts.MaxBatch = 32
	modelFlag(cmd, &r.model, defaultModel, "built-in model, .bcnn, .onnx or .tflite file")
	deviceFlag(cmd, &r.opts.Device)
	wholeFlag(cmd, &r.opts.MaxBatch, "batch", 1, maxBatch, "images per run of the device")
	cmd.Flags().StringVar(&r.opts.ISA, "isa", "", "CPU instruction set (default the best)")
	threadsFlag(cmd, &r.opts.Threads, "CPU threads")
	kernelsFlag(cmd, &r.opts.Kernels, "GPU kernels")
}

// load loads the model.
func (r *arrayRunner) load(ctx context.Context) (err error) {
	if r.net, err = loadModel(ctx, r.model); err != nil {
		return err
	}
	r.ports, err = arrays.PortsOf(r.net)
	return files.Name(r.model, err)
}

// inputs reads the arrays of the model's inputs, all of the same number of images.
func (r *arrayRunner) inputs(f *arrayFile) (in []*npy.Array, images int, err error) {
	for _, port := range r.ports.Inputs {
		a, err := port.Find(f.File, len(r.ports.Inputs) == 1)
		if err == nil && images == 0 {
			images, err = port.Batch(a)
		}
		if err == nil {
			err = sameImages(port, a, images)
		}
		if err != nil {
			return nil, 0, files.Name(f.name, err)
		}
		in = append(in, a)
	}
	return in, images, nil
}

// sameImages checks that an array has as many images as others.
func sameImages(p arrays.Port, a *npy.Array, n int) error {
	have, err := p.Batch(a)
	if err == nil && have != n {
		err = fmt.Errorf("%s: %d images, and the input has %d", text.Quote(p.Name), have, n)
	}
	return err
}

// run returns the values of the model's outputs for n images of arrays, as its source
// gives them.
func (r *arrayRunner) run(ctx context.Context, in []*npy.Array, n int, progress func(done, total int)) ([][]float32, error) {
	opts := r.opts
	opts.MaxBatch = min(opts.MaxBatch, n)
	s, err := bitcnn.Open(ctx, r.net, opts)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r.device = s.Device().ID
	values := make([][]float32, len(r.ports.Outputs))
	for i, port := range r.ports.Outputs {
		values[i] = make([]float32, n*port.Shape.Values())
	}
	err = r.batches(in, n, opts.MaxBatch, func(x []bcnn.Tensor, from int) error {
		out, err := s.Predict(ctx, x...)
		if err != nil {
			return err
		}
		for i, port := range r.ports.Outputs {
			size := port.Shape.Values()
			part := values[i][from*size : (from+out[i].N)*size]
			port.Values(part, out[i])
			port.Results(part)
		}
		progress(from+x[0].N, n)
		return nil
	})
	return values, err
}

// batches calls do with all n images of arrays, up to batch of them at a time.
func (r *arrayRunner) batches(in []*npy.Array, n, batch int, do func(x []bcnn.Tensor, from int) error) error {
	var all []bcnn.Tensor
	for _, input := range r.net.Inputs {
		all = append(all, bcnn.NewTensor(input.DType, batch, input.Shape))
	}
	x := make([]bcnn.Tensor, len(all))
	for from := 0; from < n; from += batch {
		for i, port := range r.ports.Inputs {
			x[i] = all[i].Images(0, min(batch, n-from))
			if err := port.Fill(x[i], in[i], from); err != nil {
				return err
			}
		}
		if err := do(x, from); err != nil {
			return err
		}
	}
	return nil
}

// saveArrays writes a file of arrays, or of one; - is standard output.
func saveArrays(env *environment, name string, list []npy.Named) error {
	write := func(w io.Writer) error { return npy.Write(w, list) }
	if isNPY(name) {
		write = func(w io.Writer) error { return npy.WriteOne(w, list[0].Array) }
	}
	if name == standardInput {
		return write(env.out)
	}
	return files.Replace(name, write)
}
