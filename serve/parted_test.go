package serve

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// spotsOfDarknet are the two files of a detector of light squares, as spots makes one, which are the more
// certain the larger the factor is.
func spotsOfDarknet(factor float32) (cfg, weights string) {
	cfg = "[net]\nheight=8\nwidth=8\nchannels=1\n[maxpool]\nsize=2\nstride=2\n[convolutional]\nfilters=6\nsize=1\nactivation=linear\n[yolo]\nclasses=1\nanchors=2,2\n"
	b := binary.LittleEndian.AppendUint32(nil, 0)
	b = binary.LittleEndian.AppendUint32(b, 2)
	b = append(b, make([]byte, 12)...)
	for _, v := range []float32{0, 0, 0, 0, -4, 20, 0, 0, 0, 0, factor, 0} { // biases, and weights
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return cfg, string(b)
}

// openVINO returns the two files of a network of OpenVINO.
func openVINO(t *testing.T, name string) (graph, constants string) {
	folder := filepath.Join("..", "bcnn", "openvino", "testdata")
	xml, err := os.ReadFile(filepath.Join(folder, name+".xml"))
	require.NoError(t, err)
	bin, err := os.ReadFile(filepath.Join(folder, name+".bin"))
	require.NoError(t, err)
	return string(xml), string(bin)
}

// A model of two files is one when both are there, and another one when either changes.
func TestModelsOfTwoFiles(t *testing.T) {
	graph, constants := openVINO(t, "bc_pad_plus1")
	other, otherConstants := openVINO(t, "uint8_nhwc_input")
	cfg, weights := spotsOfDarknet(10)
	_, stronger := spotsOfDarknet(20)
	dir := repositoryOf(t, map[string]string{
		"net.xml": graph, "net.bin": constants, "spots.cfg": cfg, "tri/1/model.xml": graph, "tri/1/model.bin": constants,
		"tri/config.pbtxt": `backend: "openvino"`, "later.cfg": cfg, "first.xml": graph, "first.bin": constants, "first.bcnn": "digits",
	})
	s := newServer(t, Options{Folder: dir})
	require.NoError(t, s.AddFolder(t.Context()))
	url := overWeb(t, s)
	ready := func() (names []string) {
		for _, i := range rows(t, url) {
			require.Equal(t, "READY", i.State, i.Reason)
			names = append(names, i.Name)
		}
		return names
	}
	replace := func(name, content string) { // as another file, as mv does
		put(t, filepath.Join(dir, name+".new"), content)
		require.NoError(t, os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)))
	}
	require.Equal(t, []string{"first", "net", "tri"}, ready())
	require.Len(t, labels(t, url, "first"), 10, "the model file comes first")

	// The weights come.
	replace("spots.weights", weights)
	require.NoError(t, s.Reload(t.Context()))
	require.NotContains(t, labels(t, url, "spots"), "0", "they may be copied right now")
	settle(t, s)
	require.Equal(t, []string{"first", "net", "spots", "tri"}, ready())
	score := func() float32 {
		var found struct{ Boxes []struct{ Score float32 } }
		post(t, url+"/v2/models/spots/detect", spotted(t)).decode(t, &found)
		require.Len(t, found.Boxes, 2)
		return found.Boxes[1].Score
	}
	before := score()

	// They alone change, and are gone, which changes nothing, and are rubbish.
	replace("spots.weights", stronger)
	settle(t, s)
	after := score()
	require.Greater(t, after, before)
	require.NoError(t, os.Remove(filepath.Join(dir, "spots.weights")))
	settle(t, s)
	require.Equal(t, after, score())
	require.Contains(t, ready(), "spots")
	replace("spots.weights", weights[:30])
	_ = s.Reload(t.Context())
	require.Error(t, s.Reload(t.Context()))
	require.Equal(t, after, score())
	require.Contains(t, index(t, url)["spots"].Reason, "spots.cfg: ")
	replace("spots.weights", weights)
	settle(t, s)
	require.Equal(t, before, score())

	// The graph changes with its constants.
	inputs := func(name string) string {
		var m struct{ Inputs []struct{ Datatype string } }
		get(t, url+"/v2/models/"+name).decode(t, &m)
		return m.Inputs[0].Datatype
	}
	require.Equal(t, "FP32", inputs("net"))
	for _, name := range []string{"net", "tri/1/model"} {
		replace(name+".bin", otherConstants)
		replace(name+".xml", other)
	}
	settle(t, s)
	require.Equal(t, "UINT8", inputs("net"))
	require.Equal(t, "UINT8", inputs("tri"))

	found, err := FindModel(repositoryOf(t, map[string]string{"a.xml": graph, "a.bin": constants, "b.xml": "<html/>"}))
	require.NoError(t, err)
	require.Equal(t, "a.xml", filepath.Base(found))
	_, err = FindModel(repositoryOf(t, map[string]string{"a.xml": graph}))
	require.ErrorContains(t, err, "no model found, want exactly one file that ends in .bcnn, .onnx, .tflite, .xml (with .bin beside it) or .cfg (with .weights)")
}

// What ends as models of two files do, and is none, is left out, and nothing is said of it.
func TestFilesThatEndAsModels(t *testing.T) {
	graph, _ := openVINO(t, "bc_pad_plus1")
	cfg, _ := spotsOfDarknet(10)
	contents := map[string]string{
		"m.bcnn": "digits", "alone.xml": graph, "alone.cfg": cfg, "empty.xml": "", "empty.bin": "", "empty.cfg": "", "empty.weights": "",
		"page.xml": "<html><net/></html>", "page.bin": "x", "entities.xml": `<!DOCTYPE net [<!ENTITY a "aaaa">]><config>&a;</config>`, "entities.bin": "x",
		"settings.cfg": "[core]\nbare = true\n", "settings.weights": "x", "binary.cfg": "\x00\x01\x02", "binary.weights": "x",
		"darknet.xml": cfg, "darknet.bin": "x", "graph.cfg": graph, "graph.weights": "x", ".xml": graph, ".bin": "x",
		"long.cfg": "#" + strings.Repeat("x", 1<<20), "long.weights": "x",
	}
	dir := repositoryOf(t, contents)
	for _, name := range []string{"folder.xml", "beside.weights", "beside.bin"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	put(t, filepath.Join(dir, "beside.cfg"), cfg)
	put(t, filepath.Join(dir, "beside.xml"), graph)
	var log bytes.Buffer
	s := newServer(t, Options{Folder: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, s.AddFolder(t.Context()))
	for range 3 {
		require.NoError(t, s.Reload(t.Context()))
	}
	url := overWeb(t, s)
	have := rows(t, url)
	require.Contains(t, have, indexed{"m", "1", "READY", ""})
	for _, i := range have {
		require.Contains(t, []string{"m", "folder.xml", "beside.weights", "beside.bin"}, i.Name, "folders that are no models are in the index as before")
	}
	require.Equal(t, 4, strings.Count(log.String(), "\n"), "m, and three folders once: %s", log.String())
	post(t, url+"/v2/repository/models/alone/load", []byte{}).fails(t, 404, "and no file of it in the folder of models")
}
