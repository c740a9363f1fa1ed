package bitcnn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/arrays"
	"github.com/bitcnn/bitcnn/internal/clock"
	"github.com/bitcnn/bitcnn/internal/host"
)

// Options are the options of Open. The zero value is good.
type Options struct {
	// Device names the device:
	//
	//	"auto"      the best there is: a GPU if possible
	//	"cuda"      the first one of a backend: cuda, opencl or cpu
	//	"cuda:1"    a certain one, as Devices lists them
	//	""          what the environment variable BCNN_DEVICE says, else "auto"
	//
	// A device that is asked for by name is used, or there is an error.
	Device string
	// MaxBatch is the number of images in a Run at the most; 0 means 1. Memory grows
	// with it.
	MaxBatch int
	// Parallel is the number of Runs at the same time at the most; further ones wait. 0
	// means as many as Threads on the processor, and 1 on others. Each takes memory of
	// its own, which docs/sessions.md tells.
	Parallel int
	// Threads is the number of threads of the processor, for all Runs together; 0 means
	// all that the process may use.
	Threads int
	// BatchDelay, if it is not 0, makes batches of Runs at the same time that bring
	// fewer than MaxBatch images each. A Run waits for others as long as fewer are there
	// than were at the same time of late, and no longer than the delay; where Runs come
	// one after the other, none waits. That gains where a batch takes less time than its
	// images one by one, as on GPUs.
	BatchDelay time.Duration
	// ISA and Kernels force an instruction set of the processor and the kernels of a
	// GPU, for tests and measurements: see Device.ISAs and Device.Kernels. "" means
	// the fastest.
	ISA, Kernels string
	// Limits bound the memory that lowering and compiling a model may take.
	Limits Limits
	// Observe, if it is not nil, is called at the end of each Run that had arguments which
	// fit, in the goroutine of its caller: see Observation. Run allocates nothing for it, and
	// does not read the clock without it. Calls come from several goroutines at the same time.
	Observe func(Observation)
}

// Observation says how a Run went, for those who count and measure them.
type Observation struct {
	// Images is the number of images of the Run, and Batch that of the run of the device which
	// they were a part of: more than Images if BatchDelay has joined several Runs, 0 if the
	// device has not been reached.
	Images, Batch int
	// First says that the Run is the first one, or the only one, of a run of the device: who
	// counts these counts the runs of the device.
	First bool
	// Waiting is the time from the call of Run to the beginning of the run of the device: for
	// others to join, and for its turn. Running is that of the run of the device.
	Waiting, Running time.Duration
	// Err is what Run returns.
	Err error
}

// maxParallel bounds Options.Parallel: more gain nothing.
const maxParallel = 1024

// IO describes an input or an output of a model.
type IO struct {
	Name   string
	DType  DType
	Shape  Shape  // of one image
	Layout Layout // of the tensors that Run takes: NHWC
	// FileLayout is the layout of the arrays of the file that the model was imported from, as
	// other programs have them, and FileDims are their dimensions behind the batch: TensorOf
	// takes values as they are there. Where there was no such file, or it packs several values
	// into an element, they are NHWC and those of Shape.
	FileLayout Layout
	FileDims   []int
	// Resize, of an input that is an image, is the length in pixels that the shorter
	// side of a photo is resized to before the centre is cropped to Shape; 0 means that
	// the crop just fits.
	Resize int
	// Photo, of an input that is an image, says what else becomes of a photo; nil if the model
	// does not say.
	Photo *bcnn.Photo
}

// Session is a model on a device, ready to run. It is safe for any number of
// goroutines.
type Session struct {
	device   Device
	inputs   []IO
	outputs  []IO
	labels   []string
	boxes    *bcnn.Detection
	maxBatch int

	engines *engines
	batcher *batcher // nil without BatchDelay
	observe func(Observation)
}

// Open compiles a model for a device. It first runs package simplify, which finds the parts of a
// real-valued network that are binary, and last runs the model once, so that the first caller
// does not wait for what a device does only once.
func Open(ctx context.Context, model *Model, opts Options) (*Session, error) {
	switch {
	case ctx == nil:
		return nil, errors.New("no context")
	case model == nil:
		return nil, errors.New("no model")
	case opts.Parallel < 0 || opts.Parallel > maxParallel:
		return nil, fmt.Errorf("%d Runs in parallel, want 0 to %d", opts.Parallel, maxParallel)
	case opts.BatchDelay < 0:
		return nil, fmt.Errorf("a delay of %v, want 0 or more", opts.BatchDelay)
	case opts.BatchDelay > 0 && opts.MaxBatch < 2:
		return nil, errors.New("BatchDelay makes batches, but MaxBatch allows one image only")
	}
	ports, err := arrays.PortsOf(model)
	if err != nil {
		return nil, err
	}
	program, err := lower.Compile(ctx, model, lower.Options{Limits: opts.Limits})
	if err != nil {
		return nil, err
	}
	engines, err := newEngines(ctx, program.Plan, opts)
	if err != nil {
		return nil, err
	}
	s, err := newSession(ctx, engines, ports, opts)
	if err != nil {
		return nil, err
	}
	s.boxes = model.Detection
	return s, nil
}

func newSession(ctx context.Context, engines *engines, ports *arrays.Ports, opts Options) (*Session, error) {
	plan := engines.plan
	s := &Session{
		device:   engines.device.Info(),
		labels:   plan.Labels,
		maxBatch: max(1, opts.MaxBatch),
		engines:  engines,
		observe:  opts.Observe,
	}
	for i, t := range plan.InputTensors() {
		s.inputs = append(s.inputs, newIO(t, plan.Inputs[i], ports.Inputs[i]))
	}
	for k, i := range plan.Outputs {
		s.outputs = append(s.outputs, newIO(plan.Tensors[i], bcnn.Input{}, ports.Outputs[k]))
	}
	err := s.checkMemory(opts, cap(engines.slots))
	if err == nil {
		_, err = engines.checkAndRun(ctx, tensors(s.outputs, 1), tensors(s.inputs, 1))
	}
	if err != nil {
		engines.close()
		return nil, err
	}
	if opts.BatchDelay > 0 {
		s.batcher = newBatcher(batchConfig{
			execute: engines.checkAndRun, max: s.maxBatch, delay: opts.BatchDelay, workers: cap(engines.slots), alarm: newAlarm,
			tensors: func() (out, in []Tensor) { return tensors(s.outputs, s.maxBatch), tensors(s.inputs, s.maxBatch) },
		})
	}
	return s, nil
}

func newIO(t plan.Tensor, in bcnn.Input, port arrays.Port) IO {
	io := IO{
		Name: t.Name, DType: t.DType, Shape: t.Shape, Layout: NHWC, Resize: in.Resize, Photo: in.Photo,
		FileLayout: NHWC, FileDims: []int{t.Shape.H, t.Shape.W, t.Shape.C},
	}
	values := 1
	for _, d := range port.Dims {
		values *= d
	}
	if values == t.Shape.Values() {
		io.FileDims = port.Dims
		if port.ChannelsFirst {
			io.FileLayout = NCHW
		}
	}
	return io
}

// checkMemory refuses batches whose inputs and outputs take more memory than there is: the first
// Run of so many images would end the process. With BatchDelay each worker has a batch of its own.
func (s *Session) checkMemory(opts Options, workers int) error {
	limit := cmp.Or(opts.Limits.ArenaBytes, host.Available())
	if limit == 0 {
		return nil // unknown
	}
	image := int64(0)
	for _, list := range [][]IO{s.inputs, s.outputs} {
		for _, io := range list {
			image += int64(io.Shape.Bytes(io.DType))
		}
	}
	images := int64(s.maxBatch)
	if opts.BatchDelay > 0 {
		images *= int64(workers)
	}
	if image > 0 && images > limit/image {
		return fmt.Errorf("%w: the inputs and outputs of %d images of %d bytes each, and the limit is %d bytes",
			ErrTooLarge, images, image, limit)
	}
	return nil
}

// tensors allocates n images of each.
func tensors(list []IO, n int) []Tensor {
	made := make([]Tensor, len(list))
	for i, io := range list {
		made[i] = NewTensor(io.DType, n, io.Shape)
	}
	return made
}

// Inputs describes the tensors that Run reads.
func (s *Session) Inputs() []IO { return slices.Clone(s.inputs) }

// Outputs describes the tensors that Run writes. A Softmax at the end of a network is
// left out: see vision.TopK.
func (s *Session) Outputs() []IO { return slices.Clone(s.outputs) }

// Labels names the classes of a classifier, in the order of its outputs, or of a detector. There may
// be none.
func (s *Session) Labels() []string { return slices.Clone(s.labels) }

// Detection says how boxes are made of the outputs of a detector: see vision.NewDetector. It is nil for other
// models, and not to be changed.
func (s *Session) Detection() *bcnn.Detection { return s.boxes }

// MaxBatch is the number of images in a Run at the most.
func (s *Session) MaxBatch() int { return s.maxBatch }

// Device describes the device.
func (s *Session) Device() Device { return s.device }

// Explain returns what the device has chosen for each step of the network, and why;
// nothing after Close.
func (s *Session) Explain() []Choice { return s.engines.explain() }

// Run computes the outputs of a batch: a tensor for each of Inputs and Outputs, all of
// the same N, 1 ≤ N ≤ MaxBatch. The caller keeps the memory; nothing is retained. Run
// allocates none, but where more goroutines call at the same time than ever before.
// When ctx ends, Run returns its error as soon as what is in hand is done, and at once
// while it waits for its turn; what out holds then is unspecified.
func (s *Session) Run(ctx context.Context, out, in []Tensor) error {
	batch, err := s.check(ctx, out, in)
	if err != nil {
		return err
	}
	if s.observe == nil {
		_, err := s.run(ctx, out, in, batch)
		return err
	}
	called := clock.Now()
	seen, err := s.run(ctx, out, in, batch)
	o := Observation{Images: in[0].N, Batch: seen.batch, First: seen.first, Running: seen.running, Err: err}
	reached := seen.began
	if seen.batch == 0 {
		reached = clock.Now()
	}
	o.Waiting = time.Duration(reached - called)
	s.observe(o)
	return err
}

// deviceRun is what has been seen of a run of the device: nothing if it was not reached.
type deviceRun struct {
	batch   int // images
	first   bool
	began   clock.Instant // this and running only if the session is observed
	running time.Duration
}

func (s *Session) run(ctx context.Context, out, in []Tensor, batch backend.Batch) (deviceRun, error) {
	if s.batcher != nil && in[0].N < s.maxBatch {
		return s.batcher.run(ctx, out, in)
	}
	return s.engines.run(ctx, batch)
}

// Enqueue is Run for tensors in memory of the device: it puts a run of 1 to MaxBatch
// images on a stream and returns. CUDA devices alone have this; the error of others
// matches errors.ErrUnsupported. stream is a CUstream of the primary context, 0 for the
// default stream, and in and out are addresses in memory of the device, of tensors without
// gaps, in the order of Inputs and Outputs. Only the stream waits: for what is on it
// before, and for earlier runs of the session on others. Memory and stream must be there
// until the run has been done; Close waits for it. ctx bounds the time until an engine is
// free. BatchDelay has no effect.
func (s *Session) Enqueue(ctx context.Context, stream uintptr, images int, out, in []uintptr) error {
	if ctx == nil {
		return errors.New("no context")
	}
	e, err := s.engines.begin(ctx)
	if err != nil {
		return err
	}
	defer s.engines.end(e)
	return e.Enqueue(ctx, stream, images, out, in)
}

// Predict is Run into new tensors.
func (s *Session) Predict(ctx context.Context, in ...Tensor) ([]Tensor, error) {
	n := 0
	if len(in) > 0 {
		n = max(0, min(in[0].N, s.maxBatch)) // Run refuses others
	}
	out := tensors(s.outputs, n)
	if err := s.Run(ctx, out, in); err != nil {
		return nil, err
	}
	return out, nil
}

// check makes a batch of the caller's tensors: the only check of them, whatever becomes of the batch.
func (s *Session) check(ctx context.Context, out, in []Tensor) (backend.Batch, error) {
	if ctx == nil {
		return backend.Batch{}, errors.New("no context")
	}
	if err := ctx.Err(); err != nil {
		return backend.Batch{}, err
	}
	return s.engines.first.Check(out, in)
}

// Close waits for the Runs in progress and frees everything. Runs that wait for their
// turn, and later ones, return ErrClosed; a second Close does nothing.
func (s *Session) Close() error {
	err := s.engines.close()
	if s.batcher != nil {
		s.batcher.close()
	}
	return err
}
