package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
)

// values returns the lines of /metrics whose series begin so.
func values(t *testing.T, url, series string) []string {
	var found []string
	for line := range strings.Lines(string(get(t, url+"/metrics").body)) {
		if strings.HasPrefix(line, series) {
			found = append(found, strings.TrimSuffix(line, "\n"))
		}
	}
	return found
}

// An alert needs a series that is there before anything has happened.
func TestMetricsBeginWithZero(t *testing.T) {
	url := overWeb(t, newServer(t, Options{}, "digits"))
	require.Equal(t, []string{
		`bcnn_rejected_total{reason="connections"} 0`, `bcnn_rejected_total{reason="headers"} 0`,
		`bcnn_rejected_total{reason="health"} 0`,
		`bcnn_rejected_total{reason="memory"} 0`, `bcnn_rejected_total{reason="requests"} 0`,
	}, values(t, url, "bcnn_rejected_total"))
	require.Equal(t, []string{`bcnn_model_load_failures_total{model="digits"} 0`}, values(t, url, "bcnn_model_load_failures"))
	require.Equal(t, []string{`bcnn_images_total{model="digits"} 0`}, values(t, url, "bcnn_images_total"))
	failures := values(t, url, "bcnn_request_failures_total")
	require.Len(t, failures, len(protocols)*len(failureCodes))
	for _, code := range []string{"Canceled", "DeadlineExceeded", "Internal", "InvalidArgument", "ResourceExhausted", "Unavailable"} {
		for _, protocol := range []string{"http", "grpc"} {
			require.Contains(t, failures,
				fmt.Sprintf(`bcnn_request_failures_total{code="%s",model="digits",protocol="%s"} 0`, code, protocol))
		}
	}
	post(t, url+"/v2/models/digits/infer", []byte("{}"))
	require.Len(t, values(t, url, "bcnn_request_failures_total"), len(failures))
}

func TestMetricsOfLoads(t *testing.T) {
	folder := t.TempDir()
	bad := filepath.Join(folder, "bad.bcnn")
	require.NoError(t, os.WriteFile(bad, []byte("rubbish"), 0o600))
	s := newServer(t, Options{Folder: folder}, "digits")
	url := overWeb(t, s)
	require.Error(t, s.AddFolder(t.Context()))
	post(t, url+"/v2/repository/models/bad/load", []byte{}).fails(t, 400, "bad.bcnn")
	post(t, url+"/v2/repository/models/none/load", []byte{}).fails(t, 404, "none")
	require.Equal(t, []string{
		`bcnn_model_load_failures_total{model="bad"} 2`, `bcnn_model_load_failures_total{model="digits"} 0`,
	}, values(t, url, "bcnn_model_load_failures_total"))

	loaded := func() []string { return values(t, url, "bcnn_model_loaded_timestamp_seconds") }
	first := loaded()
	require.Len(t, first, 2)
	require.Equal(t, `bcnn_model_loaded_timestamp_seconds{model="bad"} 0`, first[0])
	require.Regexp(t, regexp.MustCompile(`{model="digits"} [1-9]\.[0-9]+e\+09$`), first[1])
	post(t, url+"/v2/repository/models/digits/load", []byte{})
	second := loaded()
	require.NotEqual(t, first[1], second[1])

	net, err := bitcnn.Bundled("digits")
	require.NoError(t, err)
	bytes := int64(0)
	for _, l := range net.Layers {
		sum, _ := bcnn.ParameterBytes(l.Op)
		bytes += sum
	}
	weights := func() string { return values(t, url, `bcnn_model_weight_bytes{model="digits"}`)[0] }
	require.Equal(t, fmt.Sprintf(`bcnn_model_weight_bytes{model="digits"} %d`, bytes), weights())
	require.Equal(t, []string{`bcnn_model_weight_bytes{model="bad"} 0`}, values(t, url, `bcnn_model_weight_bytes{model="bad"}`))
	post(t, url+"/v2/repository/models/digits/unload", []byte{})
	require.Equal(t, `bcnn_model_weight_bytes{model="digits"} 0`, weights())
	require.Equal(t, second, loaded())
	require.Empty(t, values(t, url, `bcnn_model_load_failures_total{model="none"}`))
}
