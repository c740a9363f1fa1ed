package serve

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}

// logging makes a server that loads as it is told, without a model, and its log.
func logging(t *testing.T, o Options) (*Server, *logged) {
	log := &logged{}
	o.Logger, o.Session.Device = slog.New(slog.NewTextHandler(log, nil)), "cpu"
	if o.Load == nil {
		o.Load = loadTest
	}
	s, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, log
}

// canBeCalled makes an empty file and reports whether it has that name: some systems have no names
// that are not UTF-8, or change them.
func canBeCalled(t *testing.T, dir, name string) bool {
	if os.WriteFile(filepath.Join(dir, name), nil, 0o644) != nil {
		return false
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == name }) {
		return true
	}
	require.NoError(t, os.Remove(filepath.Join(dir, name)))
	return false
}

// Names that fit into no answer and no metric are refused, and end nothing.
func TestNamesThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	saveModel(t, "digits", filepath.Join(dir, "good.bcnn"))
	bad := []string{"stats"}
	if canBeCalled(t, dir, "caf\xe9.bcnn") {
		bad = append(bad, "caf\xe9")
	}
	saveModel(t, "digits", filepath.Join(dir, "stats.bcnn"))
	s, log := logging(t, Options{Folder: dir})
	url, client := overWeb(t, s), overWire(t, s)
	require.NoError(t, s.AddFolder(t.Context()))
	for range 3 {
		require.NoError(t, s.Reload(t.Context()))
	}
	require.Equal(t, len(bad), log.count("level=ERROR"))
	have := index(t, url)
	require.Len(t, have, 1+len(bad))
	require.Equal(t, "READY", have["good"].State)
	require.Contains(t, have["stats"].Reason, "stats.bcnn: a model cannot be called")
	if len(bad) > 1 {
		require.Contains(t, have[`caf\xe9`].Reason, `caf\xe9.bcnn: the name "caf\xe9" is not UTF-8`)
	}
	answer, err := client.RepositoryIndex(t.Context(), &pb.RepositoryIndexRequest{})
	require.NoError(t, err)
	require.Len(t, answer.Models, 1+len(bad))
	post(t, url+"/v2/repository/models/stats/load", []byte{}).fails(t, 404, "there is no model")
	post(t, url+"/v2/repository/models/caf%E9/load", []byte{}).fails(t, 404, "there is no model")
	require.Equal(t, 200, get(t, url+"/metrics").status)
	for _, name := range []string{"", "\xff", "a\xff", "stats", ".", ".."} {
		require.Error(t, s.Add(t.Context(), name, "digits"), "%q", name)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "stats.bcnn")))
	require.NoError(t, s.Reload(t.Context()))
	require.NotContains(t, index(t, url), "stats")
}

// A fault while files are looked at is logged, and the next look comes.
func TestWatchSurvives(t *testing.T) {
	dir := t.TempDir()
	saveModel(t, "digits", filepath.Join(dir, "a.bcnn"))
	broken := true
	s, log := logging(t, Options{Folder: dir, Load: func(ctx context.Context, source string) (*bitcnn.Model, error) {
		if broken {
			panic("broken")
		}
		return loadTest(ctx, source)
	}})
	for range 3 {
		s.lookOnce(t.Context())
	}
	require.Equal(t, 2, log.count("panic=broken"), "the first look finds the file")
	require.Positive(t, log.count("survival_test.go"), "with a stack")
	broken = false
	s.lookOnce(t.Context())
	require.True(t, s.Ready())
}

// A load that its client gives up leaves nothing: who looks next loads the model.
func TestLoadGivenUp(t *testing.T) {
	dir := t.TempDir()
	saveModel(t, "digits", filepath.Join(dir, "a.bcnn"))
	begun, blocked := make(chan struct{}), true
	s, log := logging(t, Options{Folder: dir, Load: func(ctx context.Context, source string) (*bitcnn.Model, error) {
		if blocked {
			begun <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return loadTest(ctx, source)
	}})
	url := overWeb(t, s)
	giveUp := func() {
		ctx, cancel := context.WithCancel(t.Context())
		second, leave := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { gone <- s.repository.loadNamed(ctx, "a") }()
		<-begun
		go func() { gone <- s.repository.loadNamed(second, "a") }() // it waits for the first
		leave()
		require.ErrorIs(t, <-gone, context.Canceled)
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
	}
	giveUp()
	require.Equal(t, indexed{"a", "1", "UNAVAILABLE", "it has not been loaded yet"}, index(t, url)["a"])
	post(t, url+"/v2/models/a/infer", []byte(imageJSON)).fails(t, 503, "it has not been loaded yet")
	blocked = false
	for range 2 {
		require.NoError(t, s.Reload(t.Context()))
	}
	require.Equal(t, "READY", index(t, url)["a"].State)

	// A file that has changed likewise.
	saveModel(t, "vehiclenet", filepath.Join(dir, "a.bcnn"))
	blocked = true
	giveUp()
	require.Equal(t, indexed{"a", "1", "READY", ""}, index(t, url)["a"])
	blocked = false
	for range 2 {
		require.NoError(t, s.Reload(t.Context()))
	}
	require.Len(t, labels(t, url, "a"), 6)
	require.Zero(t, log.count("level=ERROR"))
}

// A model that is unloaded while its file is loaded anew stays out.
func TestUnloadWhileLoading(t *testing.T) {
	dir := t.TempDir()
	saveModel(t, "digits", filepath.Join(dir, "a.bcnn"))
	begun, open := make(chan struct{}, 2), make(chan struct{}, 2)
	s, log := logging(t, Options{Folder: dir, Load: func(ctx context.Context, source string) (*bitcnn.Model, error) {
		begun <- struct{}{}
		<-open
		return loadTest(ctx, source)
	}})
	url := overWeb(t, s)
	open <- struct{}{}
	require.NoError(t, s.AddFolder(t.Context()))
	<-begun
	saveModel(t, "vehiclenet", filepath.Join(dir, "a.bcnn"))
	require.NoError(t, s.Reload(t.Context()))
	looked, unloaded := make(chan error, 1), make(chan error, 1)
	go func() { looked <- s.Reload(t.Context()) }()
	<-begun
	go func() { unloaded <- s.repository.unload(t.Context(), "a") }()
	select {
	case err := <-unloaded: // too early
		unloaded <- err
	case <-time.After(20 * time.Millisecond):
	}
	open <- struct{}{}
	require.NoError(t, <-looked)
	require.NoError(t, <-unloaded)
	require.Equal(t, indexed{"a", "1", "UNAVAILABLE", "unloaded"}, index(t, url)["a"])
	for range 3 {
		require.NoError(t, s.repository.unload(t.Context(), "a"))
	}
	require.Equal(t, 1, log.count("model unloaded"), "once")

	// Whoever gives up waiting has unloaded nothing.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.repository.entries["a"].loading <- struct{}{}
	require.ErrorIs(t, s.repository.unload(ctx, "a"), context.Canceled)
	<-s.repository.entries["a"].loading
}

// A folder that cannot be read is logged once, and when it can be read again.
func TestUnreadableFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "models")
	require.NoError(t, os.Mkdir(dir, 0o755))
	s, log := logging(t, Options{Folder: dir})
	require.NoError(t, s.AddFolder(t.Context()))
	require.NoError(t, os.Remove(dir))
	for range 3 {
		require.Error(t, s.Reload(t.Context()))
	}
	require.Equal(t, 1, log.count("folder of models not read"))
	require.NoError(t, os.Mkdir(dir, 0o755))
	for range 3 {
		require.NoError(t, s.Reload(t.Context()))
	}
	require.Equal(t, 1, log.count("folder of models is read again"))
}

// Another file of the same size and time is another file.
func TestReplacedFile(t *testing.T) {
	dir := t.TempDir()
	file, next := filepath.Join(dir, "a.bcnn"), filepath.Join(dir, "next")
	at, loads := time.Unix(1e9, 0), 0
	for _, name := range []string{file, next} {
		require.NoError(t, os.WriteFile(name, []byte("model"), 0o644))
		require.NoError(t, os.Chtimes(name, at, at))
	}
	s, _ := logging(t, Options{Folder: dir, Load: func(ctx context.Context, _ string) (*bitcnn.Model, error) {
		loads++
		return loadTest(ctx, "digits")
	}})
	require.NoError(t, s.AddFolder(t.Context()))
	for range 3 {
		require.NoError(t, s.Reload(t.Context()))
	}
	require.Equal(t, 1, loads)
	require.NoError(t, os.Rename(next, file))
	for range 3 {
		require.NoError(t, s.Reload(t.Context()))
	}
	require.Equal(t, 2, loads)
}
