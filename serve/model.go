package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/arrays"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
	"github.com/bitcnn/bitcnn/serve/internal/tensor"
	"github.com/bitcnn/bitcnn/vision"
)

// model is a model that is loaded. Who uses it has acquired it of the repository, so that its
// session is closed when nobody does any more.
type model struct {
	name       string
	version    string
	settings   *settings
	delay      time.Duration // Options.BatchDelay of the session
	session    *bitcnn.Session
	labels     []string
	inputs     []port
	outputs    []port
	classifier *vision.Classifier // nil if it does not classify images
	detector   *vision.Detector   // nil if it does not find boxes on them
	photos     vision.Options     // for both
	counters   *counters
	weights    int64 // bytes
	users      sync.WaitGroup
}

// port is an input or an output of a model as clients see it: with the name, the dimensions
// and the order that it has in the file that the model was converted from.
type port struct {
	arrays.Port
	io       bitcnn.IO
	datatype string
}

// shape returns that of so many images.
func (p port) shape(images int) []int64 {
	shape := make([]int64, 1, 1+len(p.Dims))
	shape[0] = int64(images)
	for _, d := range p.Dims {
		shape = append(shape, int64(d))
	}
	return shape
}

// format is the order of the dimensions of an image.
func (p port) format() pb.ModelInput_Format {
	switch {
	case len(p.Dims) != 3:
		return pb.ModelInput_FORMAT_NONE
	case p.ChannelsFirst:
		return pb.ModelInput_FORMAT_NCHW
	}
	return pb.ModelInput_FORMAT_NHWC
}

// datatypes are those of arrays that hold the values in a form of their own.
var datatypes = map[bcnn.SourceType]string{
	bcnn.SourceBits: tensor.Int32, bcnn.SourceInt8: tensor.Int8, bcnn.SourceUint8: tensor.Uint8,
	bcnn.SourceInt32: tensor.Int32, bcnn.SourceInt64: tensor.Int64,
}

func newPort(p arrays.Port, io bitcnn.IO) (port, error) {
	datatype, ok := datatypes[p.Form()]
	switch {
	case ok:
	case io.DType == bitcnn.Uint8:
		datatype = tensor.Uint8
	case io.DType == bitcnn.Float32:
		datatype = tensor.FP32
	default:
		return port{}, fmt.Errorf("%s is a tensor of %v", p.Name, io.DType)
	}
	return port{p, io, datatype}, nil
}

// openModel opens a session for the network of a version, as its settings say.
func openModel(ctx context.Context, l loading, net *bitcnn.Model, opts bitcnn.Options, photos vision.Options) (*model, error) {
	if file := labelFile(l.settings); file != "" {
		list, err := labelsOf(l.dir, file)
		if err != nil {
			return nil, err
		}
		named := *net // others may have this network, too
		named.Labels, net = list, &named
	}
	opts, err := withSettings(opts, l.settings)
	if err != nil {
		return nil, files.Name(l.config, err)
	}
	ports, err := arrays.PortsOf(net)
	if err != nil {
		return nil, files.Name(l.source, err)
	}
	opts.Observe = l.served.counters.observe
	s, err := bitcnn.Open(ctx, net, opts)
	if err != nil {
		return nil, files.Name(l.source, err)
	}
	m := &model{
		name: l.entry.name, version: l.served.version(), settings: l.settings, delay: opts.BatchDelay, session: s,
		labels: s.Labels(), counters: l.served.counters,
	}
	for _, layer := range net.Layers {
		bytes, _ := bcnn.ParameterBytes(layer.Op)
		m.weights += bytes
	}
	if m.inputs, err = newPorts(ports.Inputs, s.Inputs()); err == nil {
		m.outputs, err = newPorts(ports.Outputs, s.Outputs())
	}
	if err = files.Name(l.source, err); err == nil {
		err = files.Name(l.config, m.checkSettings(l.settings, l.source))
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	m.photos = photos
	if s.Detection() != nil {
		m.detector, m.labels = newDetector(s, photos), nil // they are not those of outputs
		return m, nil
	}
	// What is no image is no error: then nothing can be classified.
	m.classifier, _ = vision.NewClassifier(s, photos)
	if m.classifier != nil && m.session.Inputs()[0].DType != bitcnn.Uint8 {
		m.classifier = nil // nobody knows the scale of the bytes
	}
	return m, nil
}

func newPorts(list []arrays.Port, ios []bitcnn.IO) ([]port, error) {
	ports := make([]port, len(list))
	for i, p := range list {
		var err error
		if ports[i], err = newPort(p, ios[i]); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

func (m *model) release() { m.users.Done() }

// retire closes the session when nobody uses the model any more.
func (m *model) retire() error {
	m.users.Wait()
	return m.session.Close()
}
