package serve

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

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

// config describes a model as Triton's configuration does: with its settings, and what they leave
// open.
func (m *model) config() *pb.ModelConfig {
	c := proto.CloneOf(m.settings)
	labels := labelFile(c)
	c.Name, c.Platform, c.Backend, c.MaxBatchSize = m.name, platform, serverName, int32(m.session.MaxBatch())
	c.Input, c.Output = nil, nil
	for _, p := range m.inputs {
		c.Input = append(c.Input, &pb.ModelInput{
			Name: p.Name, DataType: dataTypes[p.datatype], Dims: p.shape(0)[1:], Format: p.format(),
		})
	}
	for _, p := range m.outputs {
		c.Output = append(c.Output, &pb.ModelOutput{
			Name: p.Name, DataType: dataTypes[p.datatype], Dims: p.shape(0)[1:], LabelFilename: labels,
		})
		labels = "" // those of others have none
	}
	if c.SchedulingChoice == nil && m.delay > 0 {
		c.SchedulingChoice = &pb.ModelConfig_DynamicBatching{DynamicBatching: &pb.ModelDynamicBatching{
			MaxQueueDelayMicroseconds: uint64(m.delay / time.Microsecond),
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
	for _, c := range list {
		answer.ModelStats = append(answer.ModelStats, c.counters.statistics(c.name, c.version))
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
		d.Labels, d.Input = m.classifier.Labels(), picture.SizeOf(m.classifier.Preprocessing())
	}
	if m.detector != nil {
		d.Labels, d.Input, d.Detects = m.detector.Labels(), picture.SizeOf(m.detector.Preprocessing()), true
	}
	return d
}
