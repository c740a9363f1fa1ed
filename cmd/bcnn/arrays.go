package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/arrays"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/npy"
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
		if err == nil && len(data) > npy.MaxBytes {
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
	modelFlag(cmd, &r.model, defaultModel, "built-in model, .bcnn or .onnx file")
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

// input reads the array of the model's input.
func (r *arrayRunner) input(f *arrayFile) (*npy.Array, error) {
	a, err := r.ports.Input.Find(f.File)
	if err == nil {
		_, err = r.ports.Input.Batch(a)
	}
	return a, files.Name(f.name, err)
}

// run returns the values of the model's output for all images of an array, as its
// source gives them.
func (r *arrayRunner) run(ctx context.Context, in *npy.Array, progress func(done, total int)) ([]float32, error) {
	n := in.Shape[0]
	opts := r.opts
	opts.MaxBatch = min(opts.MaxBatch, n)
	s, err := bitcnn.Open(ctx, r.net, opts)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r.device = s.Device().ID
	port := r.ports.Output
	size := port.Shape.Values()
	values := make([]float32, n*size)
	softmax := r.net.Layers[len(r.net.Layers)-1].Op.Kind() == bcnn.Softmax{}.Kind()
	err = r.batches(in, opts.MaxBatch, func(x bcnn.Tensor, from int) error {
		out, err := s.Predict(ctx, x)
		if err != nil {
			return err
		}
		part := values[from*size : (from+x.N)*size]
		port.Values(part, out[0])
		for ; softmax && len(part) > 0; part = part[size:] {
			for i, p := range bcnn.Probabilities(part[:size]) {
				part[i] = float32(p)
			}
		}
		progress(from+x.N, n)
		return nil
	})
	return values, err
}

// batches calls do with all images of an array, up to batch of them at a time.
func (r *arrayRunner) batches(in *npy.Array, batch int, do func(x bcnn.Tensor, from int) error) error {
	n := in.Shape[0]
	all := bcnn.NewTensor(r.net.Input.DType, batch, r.net.Input.Shape)
	for from := 0; from < n; from += batch {
		x := all.Images(0, min(batch, n-from))
		if err := r.ports.Input.Fill(x, in, from); err != nil {
			return err
		}
		if err := do(x, from); err != nil {
			return err
		}
	}
	return nil
}

// saveArrays writes a file of arrays; - is standard output.
func saveArrays(env *environment, name string, list []npy.Named) error {
	write := func(w io.Writer) error { return npy.Write(w, list) }
	if isNPY(name) {
		if len(list) != 1 {
			return files.Name(name, errors.New("an .npy file has one array"))
		}
		write = func(w io.Writer) error { return npy.WriteOne(w, list[0].Array) }
	}
	if name == standardInput {
		return write(env.out)
	}
	return files.Replace(name, write)
}
