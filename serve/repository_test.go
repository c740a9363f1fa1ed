package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// saveModel writes a bundled model to a file, in one step.
func saveModel(t *testing.T, name, file string) {
	net, err := bitcnn.Bundled(name)
	require.NoError(t, err)
	require.NoError(t, modelfile.Save(file, net))
}

// labels are those of a model, by the page.
func labels(t *testing.T, url, model string) []string {
	var list []struct {
		Name   string
		Labels []string
	}
	get(t, url+"/page/models").decode(t, &list)
	for _, m := range list {
		if m.Name == model {
			return m.Labels
		}
	}
	return nil
}

func index(t *testing.T, url string) map[string]indexed {
	var list []indexed
	post(t, url+"/v2/repository/index", []byte{}).decode(t, &list)
	byName := map[string]indexed{}
	for _, i := range list {
		byName[i.Name] = i
	}
	return byName
}

func TestLoadAndUnload(t *testing.T) {
	s := newServer(t, Options{}, "digits", "float")
	url, client := overWeb(t, s), overWire(t, s)
	post(t, url+"/v2/repository/models/digits/unload",
		object{"parameters": object{"unload_dependents": false}}).decode(t, &object{})
	require.Equal(t, indexed{"digits", "1", "UNAVAILABLE", "unloaded"}, index(t, url)["digits"])
	require.True(t, s.Ready(), "the other one is there")
	require.Equal(t, http.StatusServiceUnavailable, get(t, url+"/v2/models/digits/ready").status)
	post(t, url+"/v2/models/digits/infer", []byte(imageJSON)).fails(t, http.StatusServiceUnavailable, "it was unloaded")
	_, err := client.ModelInfer(t.Context(), &pb.ModelInferRequest{ModelName: "digits"})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.NoError(t, s.Reload(t.Context()))
	require.NoError(t, s.Reload(t.Context()))
	require.Equal(t, "UNAVAILABLE", index(t, url)["digits"].State, "what a client has unloaded stays so")

	_, err = client.RepositoryModelUnload(t.Context(), &pb.RepositoryModelUnloadRequest{ModelName: "float"})
	require.NoError(t, err)
	require.True(t, s.Ready(), "there is nothing that clients want and do not get")
	_, err = client.RepositoryModelLoad(t.Context(), &pb.RepositoryModelLoadRequest{ModelName: "float"})
	require.NoError(t, err)
	post(t, url+"/v2/repository/models/digits/load", []byte{}).decode(t, &object{})
	post(t, url+"/v2/models/digits/infer", []byte(imageJSON)).decode(t, &object{})
	var ready []indexed
	post(t, url+"/v2/repository/index", object{"ready": true}).decode(t, &ready)
	require.Len(t, ready, 2)

	post(t, url+"/v2/repository/models/none/load", []byte{}).fails(t, 404, `no model "none"`)
	post(t, url+"/v2/repository/models/none/unload", []byte{}).fails(t, 404, `no model "none"`)
	post(t, url+"/v2/repository/models/digits/load", object{"parameters": object{"config": "{}"}}).fails(t, 400,
		"parameters are not supported")
	post(t, url+"/v2/repository/models/digits/load", []byte("{")).fails(t, 400, "not valid JSON")
	post(t, url+"/v2/repository/index", []byte("{")).fails(t, 400, "not valid JSON")

	fixed := newServer(t, Options{Fixed: true}, "digits")
	url = overWeb(t, fixed)
	post(t, url+"/v2/repository/models/digits/unload", []byte{}).fails(t, http.StatusForbidden, "may not load")
	post(t, url+"/v2/repository/models/digits/load", []byte{}).fails(t, http.StatusForbidden, "may not load")
	_, err = overWire(t, fixed).RepositoryModelUnload(t.Context(), &pb.RepositoryModelUnloadRequest{ModelName: "digits"})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
}

// A folder of models: files come, change and are replaced by rubbish; nobody notices but by
// the answers.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	saveModel(t, "digits", filepath.Join(dir, "a.bcnn"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.onnx"), []byte("rubbish"), 0o644)) // a.bcnn is a
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("rubbish"), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "below.bcnn"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.bcnn"), []byte("rubbish"), 0o644))
	s := newServer(t, Options{Folder: dir})
	url := overWeb(t, s)
	require.False(t, s.Ready())
	require.Equal(t, http.StatusServiceUnavailable, get(t, url+"/v2/health/ready").status)
	err := s.AddFolder(t.Context())
	require.ErrorContains(t, err, filepath.Join(dir, "bad.bcnn")+": ")
	require.NotContains(t, err.Error(), "a.onnx")
	require.True(t, s.Ready())
	have := index(t, url)
	require.Len(t, have, 3)
	require.Contains(t, have["below.bcnn"].Reason, "not a model")
	require.Equal(t, "READY", have["a"].State)
	require.Contains(t, have["bad"].Reason, "bad.bcnn: ")
	post(t, url+"/v2/models/bad/infer", []byte(imageJSON)).fails(t, http.StatusServiceUnavailable, "not loaded: ")

	look := func() { _ = s.Reload(t.Context()) } // errors are in the index
	// The file changes: the model is the new one at the second look, when it has settled.
	saveModel(t, "vehiclenet", filepath.Join(dir, "a.bcnn"))
	look()
	require.Len(t, labels(t, url, "a"), 10)
	look()
	require.Len(t, labels(t, url, "a"), 6)

	// Rubbish takes its place: the model that was there answers, and the index says why.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.bcnn"), []byte("rubbish"), 0o644))
	look()
	look()
	require.Len(t, labels(t, url, "a"), 6)
	require.Contains(t, index(t, url)["a"].Reason, "a.bcnn: ")
	require.Equal(t, "READY", index(t, url)["a"].State)
	post(t, url+"/v2/repository/models/a/load", []byte{}).fails(t, 400, "a.bcnn: ")
	require.Len(t, labels(t, url, "a"), 6)

	// It is gone: still there. It is back: new.
	require.NoError(t, os.Remove(filepath.Join(dir, "a.bcnn")))
	look()
	look()
	require.Len(t, labels(t, url, "a"), 6)
	saveModel(t, "digits", filepath.Join(dir, "a.bcnn"))
	look()
	look()
	require.Len(t, labels(t, url, "a"), 10)
	require.Empty(t, index(t, url)["a"].Reason)

	// A new file, by a look and by a client.
	saveModel(t, "digits", filepath.Join(dir, "b.bcnn"))
	look()
	look()
	require.Len(t, labels(t, url, "b"), 10)
	saveModel(t, "digits", filepath.Join(dir, "c.bcnn"))
	post(t, url+"/v2/repository/models/c/load", []byte{}).decode(t, &object{})
	require.Len(t, labels(t, url, "c"), 10)
}

// Kubernetes mounts a ConfigMap as links into a folder that a link leads to, which it turns to
// another folder when the content changes.
func TestMountedFolder(t *testing.T) {
	dir := t.TempDir()
	turn := func(to string) {
		next := filepath.Join(dir, "..next")
		testenv.Symlink(t, to, next)
		require.NoError(t, os.Rename(next, filepath.Join(dir, "..data")))
	}
	for version, model := range map[string]string{"..1": "digits", "..2": "vehiclenet"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o755))
		saveModel(t, model, filepath.Join(dir, version, "a.bcnn"))
	}
	turn("..1")
	require.NoError(t, os.Symlink(filepath.Join("..data", "a.bcnn"), filepath.Join(dir, "a.bcnn")))
	found, err := FindModel(dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "a.bcnn"), found)
	s := newServer(t, Options{Folder: dir})
	require.NoError(t, s.AddFolder(t.Context()))
	url := overWeb(t, s)
	require.Len(t, labels(t, url, "a"), 10)
	turn("..2")
	for range 2 {
		require.NoError(t, s.Reload(t.Context()))
	}
	require.Len(t, labels(t, url, "a"), 6)
	require.Len(t, index(t, url), 1)
}

// Names of models are no paths.
func TestTraversal(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "in"), 0o755))
	saveModel(t, "digits", filepath.Join(dir, "secret.bcnn"))
	s := newServer(t, Options{Folder: filepath.Join(dir, "in")})
	url, client := overWeb(t, s), overWire(t, s)
	for _, name := range []string{
		"../secret", "..%2Fsecret", "%2e%2e%2fsecret", "..%5csecret", "%2e%2e/secret", "....//secret", "secret%00",
		filepath.ToSlash(dir) + "/secret", "in/../../secret", ".", "..", "%2e%2e",
	} {
		for _, path := range []string{"/v2/repository/models/" + name + "/load", "/v2/models/" + name + "/infer"} {
			require.Contains(t, []int{400, 404, 405}, post(t, url+path, []byte{}).status, path)
		}
		require.Contains(t, []int{400, 404, 405}, get(t, url+"/v2/models/"+name).status, name)
		require.NotEqual(t, 200, get(t, url+"/"+name+".bcnn").status, name)
		_, err := client.RepositoryModelLoad(t.Context(), &pb.RepositoryModelLoadRequest{ModelName: name})
		require.Equal(t, codes.NotFound, status.Code(err), name)
	}
	require.Empty(t, index(t, url))
}
