package serve

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

const (
	settingsBytes = 64 << 10
	labelsBytes   = 1 << 20
)

// The most that settings may say, which is what the flags of the command allow.
const (
	mostImages   = 1 << 16
	mostParallel = 1024
	mostDelay    = time.Minute
)

// settings are those of one model, in the form of Triton's config.pbtxt. Fields that pb.ModelConfig
// does not have are errors. Of those that it has, these change nothing here, and are no errors:
// optimization and parameters tell other engines how to get faster, and the outputs here are the
// same bits whatever makes them; model_warmup runs a model before the first request, as opening a
// session does by itself; preferred_batch_size, as no size of a batch is better than those near it;
// preserve_ordering, as each answer goes to who has asked; the name of an instance_group.
type settings = pb.ModelConfig

// settingsAt reads the settings of a model. Where there is no file, nothing is set.
func settingsAt(p place, s survey) (*settings, error) {
	file := p.config()
	if s.config.file == nil {
		// A link that leads nowhere is a file that somebody wants to be read.
		if _, err := os.Lstat(file); err != nil || len(s.versions) == 0 {
			return &settings{}, nil
		}
	}
	content, err := files.ReadText(file, settingsBytes)
	if err != nil {
		return nil, err
	}
	c, err := parseSettings(content)
	switch {
	case err != nil && leadsOut(file):
		// Clients are told the reason, which quotes the file.
		err = errors.New("it is a link to a file outside its folder that is not a settings file")
	case err == nil && !p.folder:
		switch {
		case c.VersionPolicy != nil:
			err = errors.New("version_policy: a file has one version; want a folder of versions")
		case c.DefaultModelFilename != "":
			err = errors.New("default_model_filename: the settings are of the file beside them")
		}
	}
	return c, files.Name(file, err)
}

// parseSettings reads settings, and checks what can be checked without the model.
func parseSettings(content string) (*settings, error) {
	c := &settings{}
	if err := prototext.Unmarshal([]byte(content), c); err != nil {
		// The words of the package have spaces of one kind or another, so that nobody relies on them.
		words := strings.ReplaceAll(err.Error(), "\u00a0", " ")
		return nil, errors.New(strings.TrimPrefix(words, "proto: "))
	}
	return c, errors.Join(checkBatches(c), checkInstances(c), checkPolicy(c.VersionPolicy), checkFiles(c))
}

func checkBatches(c *settings) error {
	if n := c.MaxBatchSize; n < 0 || n > mostImages {
		return fmt.Errorf("max_batch_size: it is %d, want 0 to %d", n, mostImages)
	}
	most := uint64(mostDelay / time.Microsecond)
	if d := c.GetDynamicBatching().GetMaxQueueDelayMicroseconds(); d > most {
		return fmt.Errorf("dynamic_batching: max_queue_delay_microseconds is %d, want at most %d", d, most)
	}
	return nil
}

func checkInstances(c *settings) error {
	if n := len(c.InstanceGroup); n > 1 {
		return fmt.Errorf("instance_group: there are %d, want one: a model runs on one device", n)
	}
	for _, g := range c.InstanceGroup {
		switch {
		case g.GetCount() < 0 || g.GetCount() > mostParallel:
			return fmt.Errorf("instance_group: count is %d, want 0 to %d", g.GetCount(), mostParallel)
		case pb.ModelInstanceGroup_Kind_name[int32(g.GetKind())] == "":
			return fmt.Errorf("instance_group: unknown kind %d", g.GetKind())
		}
	}
	return nil
}

func checkPolicy(p *pb.ModelVersionPolicy) error {
	switch p := p.GetPolicyChoice().(type) {
	case *pb.ModelVersionPolicy_Latest_:
		if p.Latest.GetNumVersions() == 0 {
			return errors.New("version_policy: latest has no num_versions, want 1 or more")
		}
	case *pb.ModelVersionPolicy_Specific_:
		list := p.Specific.GetVersions()
		if len(list) == 0 {
			return errors.New("version_policy: specific has no versions")
		}
		for _, v := range list {
			if v < 1 {
				return fmt.Errorf("version_policy: %d is not a version, want a positive whole number", v)
			}
		}
	}
	return nil
}

func checkFiles(c *settings) error {
	if name := c.DefaultModelFilename; name != "" && (name != filepath.Base(name) || !filepath.IsLocal(name) || name == ".") {
		return fmt.Errorf("default_model_filename: %s is not a file name", text.Quote(name))
	}
	for _, o := range c.Output {
		if name := o.GetLabelFilename(); name != "" && !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("label_filename: %s is not in the folder of the model", text.Quote(name))
		}
	}
	return nil
}

// chosen returns the versions to serve, of those that there are. One that is asked for by its number
// is chosen even if it is not there: who loads it says so.
func chosen(policy *pb.ModelVersionPolicy, there survey) []int64 {
	have := slices.Sorted(maps.Keys(there.versions))
	switch p := policy.GetPolicyChoice().(type) {
	case *pb.ModelVersionPolicy_All_:
		return have
	case *pb.ModelVersionPolicy_Specific_:
		want := slices.Clone(p.Specific.GetVersions())
		slices.Sort(want)
		return slices.Compact(want)
	default:
		n := uint64(max(1, policy.GetLatest().GetNumVersions()))
		return have[len(have)-int(min(n, uint64(len(have)))):]
	}
}

// withSettings returns the options of a session: those that the server gives to all, and in their
// place what the settings of the model say.
func withSettings(o bitcnn.Options, c *settings) (bitcnn.Options, error) {
	o.MaxBatch = cmp.Or(int(c.MaxBatchSize), o.MaxBatch)
	if d := c.GetDynamicBatching(); d != nil {
		o.BatchDelay = time.Duration(d.GetMaxQueueDelayMicroseconds()) * time.Microsecond
	}
	if o.BatchDelay > 0 && o.MaxBatch < 2 {
		if c.GetDynamicBatching() != nil {
			return o, errors.New("dynamic_batching: it makes batches, but max_batch_size allows one image only")
		}
		o.BatchDelay = 0 // the server's, for models that have batches
	}
	for _, g := range c.InstanceGroup {
		o.Parallel = cmp.Or(int(g.GetCount()), o.Parallel)
		if g.GetKind() == pb.ModelInstanceGroup_KIND_CPU {
			o.Device = onProcessor
		}
	}
	return o, nil
}

// onProcessor is the device that is no GPU.
const onProcessor = "cpu"

// labelFile returns the file of the labels, or nothing.
func labelFile(c *settings) string {
	for _, o := range c.Output {
		if o.GetLabelFilename() != "" {
			return o.GetLabelFilename()
		}
	}
	return ""
}

// engines are the names of what runs models of a format elsewhere, which settings that were written
// for it have: platforms and backends.
var engines = map[string][]string{
	".onnx":   {"onnxruntime_onnx", "onnxruntime"},
	".tflite": {"armnn_tflite", "tflite"},
	".xml":    {"openvino"},
}

// checkSettings compares what settings say of a model with what it is.
func (m *model) checkSettings(c *settings, source string) error {
	if c.Name != "" && c.Name != m.name {
		return fmt.Errorf("name: it is %s, but the model is called %s", text.Quote(c.Name), text.Quote(m.name))
	}
	for _, f := range [][2]string{{"platform", c.Platform}, {"backend", c.Backend}} {
		field, is := f[0], f[1]
		known := append([]string{platform, serverName}, engines[filepath.Ext(source)]...)
		if is != "" && !slices.Contains(known, is) {
			return fmt.Errorf("%s: it is %s, which does not run %s; want one of %s, or leave it out", field, text.Quote(is),
				text.Quote(filepath.Base(source)), strings.Join(known, ", "))
		}
	}
	for _, g := range c.InstanceGroup {
		if d := m.session.Device().ID; g.GetKind() == pb.ModelInstanceGroup_KIND_GPU && d == onProcessor {
			return fmt.Errorf("instance_group: kind is KIND_GPU, but the model runs on the device %s", d)
		}
	}
	ins := make([]described, 0, len(c.Input))
	for _, i := range c.Input {
		ins = append(ins, described{i.GetName(), i.GetDataType(), i.GetFormat(), i.GetDims()})
	}
	outs := make([]described, 0, len(c.Output))
	for n, o := range c.Output {
		outs = append(outs, described{o.GetName(), o.GetDataType(), pb.ModelInput_FORMAT_NONE, o.GetDims()})
		if o.GetLabelFilename() != "" && (n > 0 || o.GetName() != "" && o.GetName() != m.outputs[0].Name) {
			return fmt.Errorf("output: %s has a label_filename, but the labels are those of %s, which has to come first",
				text.Quote(o.GetName()), text.Quote(m.outputs[0].Name))
		}
	}
	return errors.Join(m.checkPorts("input", ins, m.inputs, c), m.checkPorts("output", outs, m.outputs, c))
}

// described is an input or an output as settings have it.
type described struct {
	name     string
	datatype pb.DataType
	format   pb.ModelInput_Format
	dims     []int64
}

// checkPorts compares inputs or outputs, if there are any in the settings. Their order is free, and so
// is the one that has no name where there is one only.
func (m *model) checkPorts(field string, list []described, ports []port, c *settings) error {
	if len(list) != 0 && len(list) != len(ports) {
		return fmt.Errorf("%s: there are %d, but the model has %d", field, len(list), len(ports))
	}
	seen := map[string]bool{}
	for _, d := range list {
		i := slices.IndexFunc(ports, func(p port) bool { return p.Name == d.name })
		if i < 0 && d.name == "" && len(ports) == 1 {
			i = 0
		}
		if i < 0 || seen[d.name] {
			names := make([]string, len(ports))
			for i, p := range ports {
				names[i] = text.Quote(p.Name)
			}
			return fmt.Errorf("%s: there is a %s, but the model has %s", field, text.Quote(d.name), strings.Join(names, ", "))
		}
		seen[d.name] = true
		p := ports[i]
		what := field + " " + text.Quote(p.Name)
		if is := dataTypes[p.datatype]; d.datatype != pb.DataType_TYPE_INVALID && d.datatype != is {
			return fmt.Errorf("%s: data_type is %v, but that of the model is %v", what, d.datatype, is)
		}
		if is := p.format(); d.format != pb.ModelInput_FORMAT_NONE && d.format != is {
			return fmt.Errorf("%s: format is %v, but that of the model is %v", what, d.format, is)
		}
		if !m.fits(d.dims, p, c) {
			return fmt.Errorf("%s: dims are %v, but those of the model are %v, behind the batch", what, d.dims, p.shape(0)[1:])
		}
	}
	return nil
}

// fits reports whether dimensions in settings are those of a port; -1 stands for any number. Without a
// max_batch_size those of Triton begin with the batch.
func (m *model) fits(dims []int64, p port, c *settings) bool {
	want := p.shape(0)[1:]
	if c.MaxBatchSize == 0 && len(dims) == len(want)+1 {
		if dims[0] != -1 && (dims[0] < 1 || dims[0] > int64(m.session.MaxBatch())) {
			return false
		}
		dims = dims[1:]
	}
	return len(dims) == 0 || slices.EqualFunc(dims, want, func(d, w int64) bool { return d == -1 || d == w })
}
