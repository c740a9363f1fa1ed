package main

import (
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

// openArrays opens a file of arrays; - is standard input, read as long as ctx lives.
func openArrays(ctx context.Context, name string, stdin io.Reader) (*arrayFile, error) {
	if name == standardInput {
		r := untilDone(ctx, stdin)
		f, err := npy.OpenStream(r)
		if err != nil {
			r.Close()
			return nil, files.Name("standard input", err)
		}
		return &arrayFile{"standard input", f, r}, nil
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

// untilDone returns what reads the same until the context is done. Reading itself cannot be
// interrupted: it is left behind.
func untilDone(ctx context.Context, r io.Reader) *io.PipeReader {
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { out.CloseWithError(ctx.Err()) })
	return out
}

// arrayRunner runs a model on arrays.
type arrayRunner struct {
	model, device string
	opts          bitcnn.Options
	net           *bcnn.Network
	ports         *arrays.Ports
	values        [][]float32 // of the outputs for a batch
}

// flags adds the flags that say what runs where.
func (r *arrayRunner) flags(cmd *cobra.Command) {
	r.opts.MaxBatch = 32
	modelFlag(cmd, &r.model, defaultModel, "built-in model, .bcnn, .onnx, .tflite, .cfg or .xml file")
	deviceFlag(cmd, &r.opts.Device)
	intVar(cmd, &r.opts.MaxBatch, "batch", 1, maxBatch, "images per device run")
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

// imageArrays are arrays that have the images of ports.
type imageArrays struct {
	file    *arrayFile
	ports   []arrays.Port
	readers []*npy.Reader
	images  int
}

// findArrays finds the arrays of ports, all of the same number of images; 0 stands for any.
// Nothing but their headers is read. flat says that they may be arrays that are Flat.
func findArrays(f *arrayFile, ports []arrays.Port, images int, flat bool) (*imageArrays, error) {
	a := &imageArrays{file: f, ports: ports, images: images}
	for _, port := range ports {
		r, err := port.Find(f.File, len(ports) == 1)
		if err == nil {
			a.readers = append(a.readers, r)
			err = a.checkImages(port, r.Shape(), flat)
		}
		if err != nil {
			a.Close()
			return nil, files.Name(f.name, err)
		}
	}
	return a, nil
}

// checkImages checks that an array has as many images as others.
func (a *imageArrays) checkImages(p arrays.Port, shape []int, flat bool) error {
	if flat && p.Flat(shape, a.images) {
		return nil
	}
	have, err := p.Batch(shape)
	switch {
	case err != nil:
	case a.images == 0:
		a.images = have
	case have != a.images:
		err = fmt.Errorf("%s: it has %d images, but the input has %d", text.Quote(p.Name), have, a.images)
	}
	return err
}

// next reads the next n images of an array.
func (a *imageArrays) next(i, n int) (*npy.Array, error) {
	part, err := a.ports[i].Next(a.readers[i], n)
	return part, files.Name(a.file.name, err)
}

func (a *imageArrays) Close() {
	for _, r := range a.readers {
		r.Close()
	}
}

// batches calls do with all images of arrays, up to a batch of them at a time.
func (r *arrayRunner) batches(in *imageArrays, do func(x []bcnn.Tensor, from int) error) error {
	batch := min(r.opts.MaxBatch, in.images)
	var all []bcnn.Tensor
	for _, input := range r.net.Inputs {
		all = append(all, bcnn.NewTensor(input.DType, batch, input.Shape))
	}
	x := make([]bcnn.Tensor, len(all))
	for from := 0; from < in.images; from += batch {
		for i, port := range in.ports {
			x[i] = all[i].Images(0, min(batch, in.images-from))
			a, err := in.next(i, x[i].N)
			if err != nil {
				return err
			}
			if err := port.Fill(x[i], a); err != nil {
				return files.Name(in.file.name, err)
			}
		}
		if err := do(x, from); err != nil {
			return err
		}
	}
	return nil
}

// open opens a session for so many images.
func (r *arrayRunner) open(ctx context.Context, images int) (*bitcnn.Session, error) {
	opts := r.opts
	opts.MaxBatch = min(opts.MaxBatch, images)
	s, err := bitcnn.Open(ctx, r.net, opts)
	if err == nil {
		r.device = s.Device().ID
	}
	return s, err
}

// predict returns the values of the outputs for some images, as the model's source gives them.
// They are valid until the next call.
func (r *arrayRunner) predict(ctx context.Context, s *bitcnn.Session, x []bcnn.Tensor) ([][]float32, error) {
	out, err := s.Predict(ctx, x...)
	if err != nil {
		return nil, err
	}
	if r.values == nil {
		r.values = make([][]float32, len(out))
	}
	for i, port := range r.ports.Outputs {
		n := out[i].N * port.Shape.Values()
		if r.values[i] = r.values[i][:0]; cap(r.values[i]) < n {
			r.values[i] = make([]float32, n)
		}
		r.values[i] = r.values[i][:n]
		port.Values(r.values[i], out[i])
		port.Results(r.values[i])
	}
	return r.values, nil
}

// run returns the values of the model's outputs for all images of arrays. They take room as
// the images come, whose number a header only claims.
func (r *arrayRunner) run(ctx context.Context, in *imageArrays, progress func(done, total int)) ([][]float32, error) {
	all := make([][]float32, len(r.ports.Outputs))
	for _, port := range r.ports.Outputs {
		if size := 4 * int64(port.Shape.Values()); int64(in.images) > npy.MaxBytes/size {
			return nil, fmt.Errorf("%d images of %d bytes of output %s take more than %d bytes", in.images, size, text.Quote(port.Name), int64(npy.MaxBytes))
		}
	}
	s, err := r.open(ctx, in.images)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	err = r.batches(in, func(x []bcnn.Tensor, from int) error {
		values, err := r.predict(ctx, s, x)
		if err != nil {
			return err
		}
		for i := range all {
			all[i] = append(all[i], values[i]...)
		}
		progress(from+x[0].N, in.images)
		return nil
	})
	return all, err
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
