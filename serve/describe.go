package serve

import (
	"fmt"
	"time"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
	"github.com/bitcnn/bitcnn/serve/internal/picture"
	"github.com/bitcnn/bitcnn/serve/internal/tensor"
)

// serverName and protocolExtensions are the metadata of the server.
const serverName = "bitcnn"

var protocolExtensions = []string{
	"binary_tensor_data", "classification", "model_configuration", "model_repository", "statistics",
}

var dataTypes = map[string]pb.DataType{
	tensor.Uint8: pb.DataType_TYPE_UINT8, tensor.Int8: pb.DataType_TYPE_INT8, tensor.Int32: pb.DataType_TYPE_INT32,
	tensor.Int64: pb.DataType_TYPE_INT64, tensor.FP32: pb.DataType_TYPE_FP32,
}

// config describes a model as Triton's configuration does.
func (m *model) config(opts bitcnn.Options) *pb.ModelConfig {
	c := &pb.ModelConfig{Name: m.name, Platform: platform, Backend: serverName, MaxBatchSize: int32(m.session.MaxBatch())}
	for _, p := range m.inputs {
		in := &pb.ModelInput{Name: p.Name, DataType: dataTypes[p.datatype], Dims: p.shape(0)[1:]}
		if len(p.Dims) == 3 {
			in.Format = pb.ModelInput_FORMAT_NHWC
			if p.ChannelsFirst {
				in.Format = pb.ModelInput_FORMAT_NCHW
			}
		}
		c.Input = append(c.Input, in)
	}
	for _, p := range m.outputs {
		c.Output = append(c.Output, &pb.ModelOutput{Name: p.Name, DataType: dataTypes[p.datatype], Dims: p.shape(0)[1:]})
	}
	if opts.BatchDelay > 0 {
		c.SchedulingChoice = &pb.ModelConfig_DynamicBatching{DynamicBatching: &pb.ModelDynamicBatching{
			MaxQueueDelayMicroseconds: uint64(opts.BatchDelay / time.Microsecond),
		}}
	}
	return c
}

// statistics are those of a model, or of all if it has no name.
func (s *Server) statistics(name, wanted string) (*pb.ModelStatisticsResponse, error) {
	list, err := s.repository.statistics(name, wanted)
	if err != nil {
		return nil, err
	}
	answer := &pb.ModelStatisticsResponse{}
	for _, e := range list {
		answer.ModelStats = append(answer.ModelStats, e.counters.statistics(e.name))
	}
	return answer, nil
}

// describe describes a model to the page.
func (m *model) describe() picture.Model {
	d := picture.Model{Name: m.name, Device: m.session.Device().ID, Labels: m.labels}
	for _, p := range m.inputs {
		d.Inputs = append(d.Inputs, fmt.Sprintf("%s %s %s", p.Name, p.datatype, dimensions(p)))
	}
	for _, p := range m.outputs {
		d.Outputs = append(d.Outputs, fmt.Sprintf("%s %s %s", p.Name, p.datatype, dimensions(p)))
	}
	if m.classifier != nil {
		d.Labels, d.Input = m.classifier.Labels(), picture.SizeOf(m.classifier)
	}
	return d
}
