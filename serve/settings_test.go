package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
)

// A configuration as it is written for Triton, of digits.
const tritonConfig = `
name: "m"
platform: "bitcnn_bcnn"
max_batch_size: 4
input [ { name: "input" data_type: TYPE_UINT8 format: FORMAT_NHWC dims: [ 28, 28, 1 ] } ]
output [ { name: "output" data_type: TYPE_FP32 dims: [ 10 ] label_filename: "labels.txt" } ]
dynamic_batching { preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: 300 preserve_ordering: true }
instance_group [ { name: "g" count: 2 kind: KIND_CPU } ]
version_policy: { latest { num_versions: 1 } }
default_model_filename: "net.bcnn"
optimization { execution_accelerators { gpu_execution_accelerator: [ { name: "tensorrt"
  parameters { key: "precision_mode" value: "FP16" } } ] } graph { level: 1 } cuda { graphs: true } priority: PRIORITY_MAX }
parameters: { key: "threads" value: { string_value: "4" } }
model_warmup [ { name: "w" batch_size: 1 inputs { key: "input" value { data_type: TYPE_UINT8 dims: [28, 28, 1] zero_data: true } } } ]
`

// tenLabels are labels for the outputs of digits.
const tenLabels = "null\neins\nzwei\ndrei\nvier\nfünf\nsechs\nsieben\nacht\nneun\n"

// The settings of a model take the place of those of the server.
func TestSettings(t *testing.T) {
	dir := repositoryOf(t, map[string]string{
		"m/1/net.bcnn": "digits", "m/1/model.bcnn": "rubbish", "m/" + configName: tritonConfig, "m/labels.txt": tenLabels,
		"plain/1/model.bcnn": "digits", "flat.bcnn": "digits", "flat.pbtxt": "\ufeffmax_batch_size: 2 # as an editor writes it\r\n",
	})
	s := newServer(t, Options{Folder: dir, Session: bitcnn.Options{MaxBatch: 8, BatchDelay: time.Millisecond}})
	require.NoError(t, s.AddFolder(t.Context()))
	url := overWeb(t, s)
	for model, want := range map[string]struct{ images, delay int }{"m": {4, 300}, "plain": {8, 1000}, "flat": {2, 1000}} {
		var config struct {
			Images  int `json:"max_batch_size"`
			Dynamic struct {
				Delay int `json:"max_queue_delay_microseconds"`
			} `json:"dynamic_batching"`
		}
		get(t, url+"/v2/models/"+model+"/config").decode(t, &config)
		require.Equal(t, want.images, config.Images, model)
		require.Equal(t, want.delay, config.Dynamic.Delay, model)
	}
	require.Equal(t, "fünf", labels(t, url, "m")[5])
	require.Contains(t, string(get(t, url+"/v2/models/m/config").body),
		`"parameters":{"threads":{"string_value":"4"}}`)
	require.Contains(t, string(get(t, url+"/v2/models/m/config").body), `"label_filename":"labels.txt"`)
	five := `{"inputs":[{"name":"input","shape":[5,28,28,1],"datatype":"UINT8","data":[0` +
		strings.Repeat(",0", 5*784-1) + `]}]}`
	post(t, url+"/v2/models/m/infer", []byte(five)).fails(t, http.StatusBadRequest, "4")
	post(t, url+"/v2/models/plain/infer", []byte(five)).decode(t, &object{})

	put(t, filepath.Join(dir, "flat.pbtxt"), "max_batch_size: 3")
	settle(t, s)
	require.Contains(t, string(get(t, url+"/v2/models/flat/config").body), `"max_batch_size":3`)

	// They change: the model is loaded anew. They are wrong: it stays, and the index says why.
	put(t, filepath.Join(dir, "m", configName), strings.Replace(tritonConfig, "size: 4", "size: 6", 1))
	settle(t, s)
	require.Contains(t, string(get(t, url+"/v2/models/m/config").body), `"max_batch_size":6`)
	put(t, filepath.Join(dir, "m", configName), "max_batch_sice: 3")
	settle(t, s)
	require.Contains(t, string(get(t, url+"/v2/models/m/config").body), `"max_batch_size":6`)
	require.Equal(t, "READY", index(t, url)["m"].State)
	require.Contains(t, index(t, url)["m"].Reason, filepath.Join("m", configName)+": ")
	require.Contains(t, index(t, url)["m"].Reason, "max_batch_sice")
	require.NoError(t, os.Remove(filepath.Join(dir, "m", configName)))
	put(t, filepath.Join(dir, "m/1/model.bcnn"), "digits")
	settle(t, s)
	require.Contains(t, string(get(t, url+"/v2/models/m/config").body), `"max_batch_size":8`)
	require.Empty(t, index(t, url)["m"].Reason)
}

// What a session is opened with.
func TestWithSettings(t *testing.T) {
	base := bitcnn.Options{MaxBatch: 8, BatchDelay: time.Millisecond, Parallel: 3, Device: "cuda"}
	for config, want := range map[string]bitcnn.Options{
		"":                                  base,
		"dynamic_batching {}":               {MaxBatch: 8, Parallel: 3, Device: "cuda"},
		"max_batch_size: 1":                 {MaxBatch: 1, Parallel: 3, Device: "cuda"},
		"instance_group { count: 5 }":       {MaxBatch: 8, BatchDelay: time.Millisecond, Parallel: 5, Device: "cuda"},
		"instance_group { kind: KIND_CPU }": {MaxBatch: 8, BatchDelay: time.Millisecond, Parallel: 3, Device: "cpu"},
		"dynamic_batching { max_queue_delay_microseconds: 7 }": {MaxBatch: 8, BatchDelay: 7 * time.Microsecond, Parallel: 3, Device: "cuda"},
	} {
		c, err := parseSettings(config)
		require.NoError(t, err, config)
		got, err := withSettings(base, c)
		require.NoError(t, err, config)
		require.Equal(t, want, got, config)
	}
	c, err := parseSettings("max_batch_size: 1 dynamic_batching { max_queue_delay_microseconds: 7 }")
	require.NoError(t, err)
	_, err = withSettings(base, c)
	require.ErrorContains(t, err, "max_batch_size allows one image only")
}

// What settings say and nobody would do is an error that names the file and the field.
func TestWrongSettings(t *testing.T) {
	for config, words := range map[string]string{
		"max_batch_size: -1":                                              "max_batch_size: it is -1",
		"max_batch_size: 65537":                                           "max_batch_size: it is 65537",
		"max_batch_size: 99999999999":                                     "(line 1:17): invalid value for int32 type: 99999999999",
		"max_batch_size":                                                  "syntax error",
		"sequence_batching {}":                                            "unknown field: sequence_batching",
		"ensemble_scheduling {}":                                          "unknown field: ensemble_scheduling",
		"response_cache { enable: true }":                                 "unknown field: response_cache",
		`metric_tags { key: "a" value: "b" }`:                             "unknown field: metric_tags",
		"model_transaction_policy {}":                                     "unknown field: model_transaction_policy",
		"dynamic_batching { priority_levels: 2 }":                         "unknown field: priority_levels",
		"dynamic_batching { max_queue_delay_microseconds: 60000001 }":     "max_queue_delay_microseconds is 60000001",
		"dynamic_batching { default_queue_policy {} }":                    "unknown field: default_queue_policy",
		"instance_group { gpus: [0] }":                                    "unknown field: gpus",
		"instance_group { count: -1 }":                                    "instance_group: count is -1",
		"instance_group { count: 1025 }":                                  "instance_group: count is 1025",
		"instance_group { kind: 9 }":                                      "instance_group: unknown kind 9",
		"instance_group { kind: KIND_GPU }":                               "instance_group: kind is KIND_GPU, but the model runs on the device cpu",
		"instance_group {} instance_group {}":                             "instance_group: there are 2",
		"version_policy { latest {} }":                                    "latest has no num_versions",
		"version_policy { specific {} }":                                  "specific has no versions",
		"version_policy { specific { versions: 0 } }":                     "0 is not a version",
		`default_model_filename: "../secret.bcnn"`:                        "default_model_filename: ",
		`default_model_filename: ".."`:                                    "default_model_filename: ",
		`default_model_filename: "none.bcnn"`:                             "no file none.bcnn in it",
		`output { label_filename: "../labels.txt" }`:                      "label_filename: ",
		`output { label_filename: "/etc/hosts" }`:                         "label_filename: ",
		`output { name: "output" label_filename: "none.txt" }`:            "none.txt: ",
		`output { name: "output" label_filename: "two.txt" }`:             "2 labels for 10 outputs",
		`output { name: "output" label_filename: "empty.txt" }`:           "no labels in it",
		`name: "other"`:                                                   `name: it is "other", but the model is called "m"`,
		`platform: "tensorrt_plan"`:                                       `platform: it is "tensorrt_plan"`,
		`platform: "onnxruntime_onnx"`:                                    `platform: it is "onnxruntime_onnx", which does not run "model.bcnn"`,
		`backend: "pytorch"`:                                              `backend: it is "pytorch"`,
		`input { name: "x" }`:                                             `input: there is a "x", but the model has "input"`,
		`input { name: "input" } input { name: "input" }`:                 "input: there are 2, but the model has 1",
		`input { name: "input" data_type: TYPE_FP32 }`:                    "data_type is TYPE_FP32, but that of the model is TYPE_UINT8",
		`input { name: "input" format: FORMAT_NCHW }`:                     "format is FORMAT_NCHW, but that of the model is FORMAT_NHWC",
		`input { name: "input" dims: [ 1, 28, 28 ] }`:                     "dims are [1 28 28], but those of the model are [28 28 1]",
		`max_batch_size: 8 input { name: "input" dims: [ -1, 28, 28, 1]}`: "dims are [-1 28 28 1]",
		`input { name: "input" dims: [ 17, 28, 28, 1 ] }`:                 "dims are [17 28 28 1]",
		`input { name: "input" reshape { shape: [ 784 ] } }`:              "unknown field: reshape",
		`input { name: "input" optional: true }`:                          "unknown field: optional",
		`output { name: "y" }`:                                            `output: there is a "y", but the model has "output"`,
		`output { name: "output" data_type: TYPE_INT64 }`:                 "data_type is TYPE_INT64",
		"# " + strings.Repeat("x", settingsBytes):                         "65536",
	} {
		dir := repositoryOf(t, map[string]string{
			"m/1/model.bcnn": "digits", "m/" + configName: config, "m/two.txt": "a\nb\n", "m/empty.txt": "\n",
		})
		s := newServer(t, Options{Folder: dir})
		err := s.AddFolder(t.Context())
		require.ErrorContains(t, err, words, config)
		require.ErrorContains(t, err, filepath.Join(dir, "m"), config)
		require.NotContains(t, err.Error(), "\u00a0", config)
		require.NotContains(t, err.Error(), "proto:", config)
		require.False(t, s.Ready(), config)
	}
}

// What settings say of a model and is so, or leaves it open, is none.
func TestRightSettings(t *testing.T) {
	for _, config := range []string{
		"", "# nothing", `backend: "bitcnn"`, "instance_group { kind: KIND_MODEL }", "instance_group { kind: KIND_AUTO count: 1 }",
		`input { name: "input" dims: [ 28, 28, 1 ] }`, `input { dims: [ -1, 28, 28, 1 ] }`, `input { dims: [ 1, 28, 28, -1 ] }`,
		`output { data_type: TYPE_FP32 dims: [ -1, 10 ] }`, `default_model_filename: "model.bcnn"`,
	} {
		dir := repositoryOf(t, map[string]string{"m/1/model.bcnn": "digits", "m/" + configName: config})
		require.NoError(t, newServer(t, Options{Folder: dir}).AddFolder(t.Context()), config)
	}
}

// The settings of a file are of that version alone, and of a regular file.
func TestSettingsOfAFile(t *testing.T) {
	for config, words := range map[string]string{
		"version_policy { all {} }":          "version_policy: a file has one version",
		`default_model_filename: "model"`:    "default_model_filename: the settings are of the file beside them",
		`name: "other"`:                      `flat.pbtxt: name: it is "other"`,
		`node { name: "a graph of others" }`: "flat.pbtxt: ",
	} {
		dir := repositoryOf(t, map[string]string{"flat.bcnn": "digits", "flat.pbtxt": config})
		require.ErrorContains(t, newServer(t, Options{Folder: dir}).AddFolder(t.Context()), words, config)
	}
	dir := repositoryOf(t, map[string]string{"flat.bcnn": "digits"})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "flat.pbtxt"), 0o755))
	require.ErrorContains(t, newServer(t, Options{Folder: dir}).AddFolder(t.Context()), "flat.pbtxt: ")
}

// Whatever a file says, its settings are within bounds, or an error.
func FuzzSettings(f *testing.F) {
	f.Add(tritonConfig)
	f.Add("max_batch_size: 1 dynamic_batching { }")
	f.Add("version_policy { specific { versions: [ 1, -2 ] } }")
	f.Add(`instance_group [ { count: 3 kind: 2 } ] default_model_filename: "a/b"`)
	f.Fuzz(func(t *testing.T, content string) {
		c, err := parseSettings(content)
		if err != nil {
			return
		}
		there := survey{versions: map[int64][]namedStamp{1: nil, 5: nil}}
		for _, v := range chosen(c.VersionPolicy, there) {
			if v < 1 {
				t.Fatalf("version %d", v)
			}
		}
		o, err := withSettings(bitcnn.Options{MaxBatch: 1}, c)
		if err != nil {
			return
		}
		if o.MaxBatch < 1 || o.MaxBatch > mostImages || o.Parallel < 0 || o.Parallel > mostParallel ||
			o.BatchDelay < 0 || o.BatchDelay > mostDelay || o.BatchDelay > 0 && o.MaxBatch < 2 {
			t.Fatalf("options %+v", o)
		}
		if n := c.DefaultModelFilename; n != "" && filepath.Dir(filepath.Join("m", n)) != "m" {
			t.Fatalf("the file %q is not in the folder of the version", n)
		}
	})
}
