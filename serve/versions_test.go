package serve

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// repositoryOf makes a folder of models: the names of bundled ones become those models, anything else
// the content of the file.
func repositoryOf(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for path, content := range files {
		put(t, filepath.Join(dir, filepath.FromSlash(path)), content)
	}
	return dir
}

func put(t *testing.T, file, content string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	if content == "digits" || content == "vehiclenet" {
		saveModel(t, content, file)
		return
	}
	require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
}

// rows lists the index.
func rows(t *testing.T, url string) []indexed {
	var list []indexed
	post(t, url+"/v2/repository/index", []byte{}).decode(t, &list)
	return list
}

// settle looks until files that have changed are loaded. Errors are in the index.
func settle(t *testing.T, s *Server) {
	for range 2 {
		_ = s.Reload(t.Context())
	}
}

// Versions come, are rubbish, and go; the one that was there answers until another can.
func TestVersions(t *testing.T) {
	dir := repositoryOf(t, map[string]string{"m/1/model.bcnn": "digits"})
	var log bytes.Buffer
	s := newServer(t, Options{Folder: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, s.AddFolder(t.Context()))
	url, client := overWeb(t, s), overWire(t, s)
	require.Equal(t, []indexed{{"m", "1", "READY", ""}}, rows(t, url))
	require.Len(t, labels(t, url, "m"), 10)
	require.Contains(t, string(get(t, url+"/metrics").body), `bcnn_model_info{device="cpu",model="m",`)
	require.Contains(t, string(get(t, url+"/metrics").body), `version="1"} 1`)

	put(t, filepath.Join(dir, "m/2/model.bcnn"), "rubbish")
	settle(t, s)
	have := rows(t, url)
	require.Len(t, have, 2)
	require.Equal(t, indexed{"m", "1", "READY", ""}, have[0])
	require.Equal(t, "UNAVAILABLE", have[1].State)
	require.Contains(t, have[1].Reason, filepath.Join("2", "model.bcnn")+": ")
	require.Contains(t, log.String(), `msg="model not loaded" model=m version=2`)
	require.Len(t, labels(t, url, "m"), 10)
	require.Equal(t, http.StatusOK, get(t, url+"/v2/models/m/ready").status)
	require.Equal(t, http.StatusServiceUnavailable, get(t, url+"/v2/models/m/versions/2/ready").status)
	post(t, url+"/v2/models/m/versions/2/infer", []byte(imageJSON)).fails(t, http.StatusServiceUnavailable, "model.bcnn: ")

	put(t, filepath.Join(dir, "m/2/model.bcnn"), "vehiclenet")
	settle(t, s)
	require.Equal(t, []indexed{{"m", "2", "READY", ""}}, rows(t, url))
	require.Len(t, labels(t, url, "m"), 6)
	get(t, url+"/v2/models/m/versions/1").fails(t, 404, `the model "m" has no version "1", only 2`)
	_, err := client.ModelInfer(t.Context(), &pb.ModelInferRequest{ModelName: "m", ModelVersion: "1"})
	require.Equal(t, codes.NotFound, status.Code(err))
	metrics := string(get(t, url+"/metrics").body)
	require.Contains(t, metrics, `version="2"} 1`)
	require.NotContains(t, metrics, `version="1"} 1`)

	// 10 is newer than 2, though not for who sorts words.
	put(t, filepath.Join(dir, "m/10/model.bcnn"), "digits")
	settle(t, s)
	require.Equal(t, []indexed{{"m", "10", "READY", ""}}, rows(t, url))

	// Back to the one before.
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "m/10")))
	settle(t, s)
	require.Equal(t, []indexed{{"m", "2", "READY", ""}}, rows(t, url))
	// The model is gone: still there.
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "m")))
	settle(t, s)
	require.Equal(t, []indexed{{"m", "2", "READY", ""}}, rows(t, url))

	// A new model, by a look and by a client.
	put(t, filepath.Join(dir, "n/7/model.bcnn"), "digits")
	put(t, filepath.Join(dir, "o/3/model.bcnn"), "digits")
	post(t, url+"/v2/repository/models/o/load", []byte{}).decode(t, &object{})
	settle(t, s)
	require.Contains(t, rows(t, url), indexed{"n", "7", "READY", ""})
	require.Contains(t, rows(t, url), indexed{"o", "3", "READY", ""})
	post(t, url+"/v2/repository/models/o/unload", []byte{}).decode(t, &object{})
	require.Contains(t, rows(t, url), indexed{"o", "3", "UNAVAILABLE", "unloaded"})
	post(t, url+"/v2/repository/models/o/load", []byte{}).decode(t, &object{})
	require.Contains(t, rows(t, url), indexed{"o", "3", "READY", ""})
}

// What of several versions is served, and which one answers.
func TestVersionPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		want   []string // versions that are ready
		reason string   // of what is not
	}{
		"default":      {"", []string{"5"}, ""},
		"no choice":    {"version_policy {}", []string{"5"}, ""},
		"latest":       {"version_policy: { latest { num_versions: 2 } }", []string{"3", "5"}, ""},
		"latest, many": {"version_policy: { latest { num_versions: 4000000000 } }", []string{"1", "3", "5"}, ""},
		"specific":     {"version_policy: { specific { versions: [3, 1, 3] } }", []string{"1", "3"}, ""},
		"all":          {"version_policy: { all {} }", []string{"1", "3", "5"}, ""},
		"not there":    {"version_policy: { specific { versions: [1, 4] } }", []string{"1"}, filepath.Join("m", "4") + ": "},
	} {
		dir := repositoryOf(t, map[string]string{
			"m/1/model.bcnn": "digits", "m/3/model.bcnn": "vehiclenet", "m/5/model.bcnn": "digits", "m/" + configName: c.config,
		})
		s := newServer(t, Options{Folder: dir})
		err := s.AddFolder(t.Context())
		if c.reason == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.reason, name)
		}
		url, client := overWeb(t, s), overWire(t, s)
		var ready []string
		for _, i := range rows(t, url) {
			if i.State == "READY" {
				ready = append(ready, i.Version)
			} else {
				require.Contains(t, i.Reason, c.reason, name)
			}
		}
		require.Equal(t, c.want, ready, name)
		var metadata struct{ Versions []string }
		get(t, url+"/v2/models/m").decode(t, &metadata)
		require.Equal(t, c.want, metadata.Versions, name)
		m, err := client.ModelMetadata(t.Context(), &pb.ModelMetadataRequest{Name: "m"})
		require.NoError(t, err, name)
		require.Equal(t, c.want, m.Versions, name)
		newest := c.want[len(c.want)-1]
		stats, err := client.ModelStatistics(t.Context(), &pb.ModelStatisticsRequest{Name: "m", Version: newest})
		require.NoError(t, err, name)
		require.Len(t, stats.ModelStats, 1, name)
		require.Equal(t, newest, stats.ModelStats[0].Version, name)
		require.Len(t, labels(t, url, "m"), map[string]int{"1": 10, "3": 6, "5": 10}[newest], name)
	}
}

// What has not changed is not loaded again when others come, and what is not chosen is not loaded at all.
func TestVersionsThatStay(t *testing.T) {
	dir := repositoryOf(t, map[string]string{
		"m/1/model.bcnn": "digits", "m/" + configName: "version_policy { specific { versions: [ 1, 3 ] } }",
	})
	var log bytes.Buffer
	s := newServer(t, Options{Folder: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.ErrorContains(t, s.AddFolder(t.Context()), filepath.Join("m", "3")+": ")
	loads := func(version string) int {
		return strings.Count(log.String(), `msg="model loaded" model=m version=`+version+" ")
	}
	put(t, filepath.Join(dir, "m/2/model.bcnn"), "rubbish")
	settle(t, s)
	put(t, filepath.Join(dir, "m/3/model.bcnn"), "digits")
	settle(t, s)
	require.Equal(t, []int{1, 0, 1}, []int{loads("1"), loads("2"), loads("3")}, log.String())
	require.Equal(t, []indexed{{"m", "1", "READY", ""}, {"m", "3", "READY", ""}}, rows(t, overWeb(t, s)))

	// A client wants all of them anew, and other settings are for all.
	url := overWeb(t, s)
	post(t, url+"/v2/repository/models/m/load", []byte{}).decode(t, &object{})
	require.Equal(t, []int{2, 2}, []int{loads("1"), loads("3")})
	put(t, filepath.Join(dir, "m", configName), "max_batch_size: 2 version_policy { specific { versions: [ 1, 3 ] } }")
	settle(t, s)
	require.Equal(t, []int{3, 3}, []int{loads("1"), loads("3")})
}

// A version that is asked for is the one that answers, and says so.
func TestVersionAnswers(t *testing.T) {
	dir := repositoryOf(t, map[string]string{
		"m/1/model.bcnn": "digits", "m/2/model.bcnn": "digits", "m/" + configName: "version_policy { all {} }",
	})
	s := newServer(t, Options{Folder: dir})
	require.NoError(t, s.AddFolder(t.Context()))
	url := overWeb(t, s)
	for path, want := range map[string]string{
		"/v2/models/m/infer": "2", "/v2/models/m/versions/1/infer": "1", "/v2/models/m/versions/2/infer": "2",
	} {
		var answer struct {
			Version string `json:"model_version"`
		}
		post(t, url+path, []byte(imageJSON)).decode(t, &answer)
		require.Equal(t, want, answer.Version, path)
	}
	for _, wanted := range []string{"3", "01", "+1", "x", "-1"} {
		get(t, url+"/v2/models/m/versions/"+wanted).fails(t, 404, "only 1, 2")
	}
	stats, err := overWire(t, s).ModelStatistics(t.Context(), &pb.ModelStatisticsRequest{})
	require.NoError(t, err)
	counts := map[string]uint64{}
	for _, m := range stats.ModelStats {
		counts[m.Version] = m.InferenceCount
	}
	require.Equal(t, map[string]uint64{"1": 1, "2": 2}, counts)
}

// A folder that is no model is said once, with the reason.
func TestFoldersThatAreNoModels(t *testing.T) {
	dir := repositoryOf(t, map[string]string{
		"empty/config.pbtxt": "", "zero/0/model.bcnn": "digits", "padded/01/model.bcnn": "digits", "file/1": "rubbish",
		"both/1/model.bcnn": "vehiclenet", "both.bcnn": "digits", ".git/1/model.bcnn": "digits",
		"stats/1/model.bcnn": "digits", "nofile/1/other.bcnn": "digits", "m/1/model.bcnn": "digits", "m/v2/model.bcnn": "digits",
	})
	var log bytes.Buffer
	s := newServer(t, Options{Folder: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.ErrorContains(t, s.AddFolder(t.Context()), "no file model.bcnn, nor model.onnx, nor model.tflite, nor model.xml, nor model.cfg in it")
	url := overWeb(t, s)
	settle(t, s)
	const none = "not a model: it has no version folder, such as 1"
	reasons := map[string]string{
		"empty": none, "zero": none, "padded": none, "file": none, "both": `"both.bcnn" is the model of this name`,
		"stats": "cannot be called", "nofile": "no file ",
	}
	said := 0
	for _, i := range rows(t, url) {
		if i.State == "READY" {
			require.Contains(t, []string{"both", "m"}, i.Name)
			continue
		}
		require.NotEmpty(t, reasons[i.Name], i.Name)
		require.Contains(t, i.Reason, reasons[i.Name])
		path := strings.TrimSuffix(strconv.Quote(filepath.Join(dir, i.Name)), `"`) // as the log has it
		require.Equal(t, 1, strings.Count(log.String(), "error="+path), "%s in %s", i.Name, log.String())
		said++
	}
	require.Equal(t, len(reasons), said)
	require.Equal(t, 1, strings.Count(log.String(), `v2\" is not a version`), log.String())
	require.NotContains(t, log.String(), ".git")
	post(t, url+"/v2/repository/models/zero/load", []byte{}).fails(t, 404, none)

	// It becomes one.
	put(t, filepath.Join(dir, "zero/1/model.bcnn"), "digits")
	settle(t, s)
	require.Contains(t, rows(t, url), indexed{"zero", "1", "READY", ""})

	log.Reset()
	empty := newServer(t, Options{Folder: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, empty.AddFolder(t.Context()))
	require.Contains(t, log.String(), "there is no model in the folder")
}

// What Triton has of an ONNX model is served as it is.
func TestONNXOfTriton(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "bcnn", "onnx", "testdata", "small.onnx"))
	require.NoError(t, err)
	dir := repositoryOf(t, map[string]string{
		"small/1/model.onnx": string(data), "small/1/model.tflite": "rubbish",
		"small/" + configName: `platform: "onnxruntime_onnx" backend: "onnxruntime" max_batch_size: 8
			input { name: "x" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 64, 8, 8 ] } output { name: "z" dims: [ 4, -1, -1 ] }`,
	})
	s := newServer(t, Options{Folder: dir})
	require.NoError(t, s.AddFolder(t.Context()))
	require.Equal(t, []indexed{{"small", "1", "READY", ""}}, rows(t, overWeb(t, s)))
	_, err = FindModel(filepath.Join(dir, "small"))
	require.ErrorContains(t, err, "it has versions of a model, not a model: serve the folder that contains it")
}

// A folder of a model may be a link to one.
func TestLinkedFolder(t *testing.T) {
	dir := repositoryOf(t, map[string]string{".far/4/model.bcnn": "digits"})
	testenv.Symlink(t, ".far", filepath.Join(dir, "m"))
	s := newServer(t, Options{Folder: dir})
	require.NoError(t, s.AddFolder(t.Context()))
	require.Equal(t, []indexed{{"m", "4", "READY", ""}}, rows(t, overWeb(t, s)))
}

// Labels may be a link in the folder of the model, as Kubernetes mounts them, and none to elsewhere:
// clients are told what is in the file.
func TestLinkedLabels(t *testing.T) {
	lines := "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"
	config := `output { label_filename: "labels.txt" }`
	dir := repositoryOf(t, map[string]string{
		"in/1/model.bcnn": "digits", "in/" + configName: config, "in/.data/labels.txt": lines,
		"out/1/model.bcnn": "digits", "out/" + configName: config, "secret.txt": lines,
	})
	testenv.Symlink(t, filepath.Join(".data", "labels.txt"), filepath.Join(dir, "in", "labels.txt"))
	testenv.Symlink(t, filepath.Join("..", "secret.txt"), filepath.Join(dir, "out", "labels.txt"))
	s := newServer(t, Options{Folder: dir})
	require.ErrorContains(t, s.AddFolder(t.Context()), "labels.txt: path escapes from parent")
	url := overWeb(t, s)
	require.Equal(t, "seven", labels(t, url, "in")[7])
	answer := string(get(t, url+"/v2/models").body) + string(get(t, url+"/page/models").body)
	require.NotContains(t, answer, `"name":"out","device"`)
	require.Contains(t, answer, `"name":"out","version":"1","state":"UNAVAILABLE"`)
}

// Settings may be a link, also to another folder. What is no settings is quoted only if it lies in the
// folder: clients are told why a model is not there.
func TestLinkedSettings(t *testing.T) {
	dir := repositoryOf(t, map[string]string{
		"in/1/model.bcnn": "digits", "in/.data/" + configName: "quoted: 1",
		"out/1/model.bcnn": "digits", "far/1/model.bcnn": "digits",
		".secret": "hidden:x:0:0", ".shared": "max_batch_size: 3",
	})
	testenv.Symlink(t, filepath.Join(".data", configName), filepath.Join(dir, "in", configName))
	testenv.Symlink(t, filepath.Join("..", ".secret"), filepath.Join(dir, "out", configName))
	testenv.Symlink(t, filepath.Join("..", ".shared"), filepath.Join(dir, "far", configName))
	s := newServer(t, Options{Folder: dir})
	err := s.AddFolder(t.Context())
	require.ErrorContains(t, err, "quoted")
	require.ErrorContains(t, err, filepath.Join(dir, "out", configName)+": it is a link to a file outside its folder that is not a settings file")
	require.NotContains(t, err.Error(), "hidden")
	answer := string(get(t, overWeb(t, s)+"/v2/models").body)
	require.NotContains(t, answer, "hidden")
	require.Contains(t, answer, `"name":"far","version":"1","state":"READY"`)
}

// Settings that are a link to nothing are not taken for none.
func TestSettingsThatLeadNowhere(t *testing.T) {
	dir := repositoryOf(t, map[string]string{"a/1/model.bcnn": "digits", "b.bcnn": "digits", ".gone": ""})
	testenv.Symlink(t, filepath.Join("..", ".gone"), filepath.Join(dir, "a", configName))
	testenv.Symlink(t, ".gone", filepath.Join(dir, "b.pbtxt"))
	require.NoError(t, os.Remove(filepath.Join(dir, ".gone")))
	s := newServer(t, Options{Folder: dir})
	err := s.AddFolder(t.Context())
	for _, file := range []string{filepath.Join("a", configName), "b.pbtxt"} {
		require.ErrorContains(t, err, filepath.Join(dir, file)+": ")
	}
	require.False(t, s.Ready())
}
