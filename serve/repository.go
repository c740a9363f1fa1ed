package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/vision"
)

// repository has the models by their names. Names that clients give are looked up, and never a
// part of the name of a file.
type repository struct {
	load    func(ctx context.Context, source string) (*bitcnn.Model, error)
	session bitcnn.Options
	photos  vision.Options
	folder  string
	log     *slog.Logger
	metrics *metrics

	mu       sync.RWMutex
	entries  map[string]*entry
	refused  map[string]error // files of the folder that no model can be called after, by their names
	unread   string           // why the folder could not be read at the last look; empty if it was
	closed   bool
	retiring sync.WaitGroup // models that have been taken out and are still used
}

// entry is a model that may be loaded.
type entry struct {
	name  string
	place place

	loading chan struct{} // has an element while somebody loads it
	// loaded is what was there when it was loaded last, or tried; seen that of the last look.
	// Who loads the entry reads and writes them.
	loaded, seen survey

	// These belong to the mutex of the repository; who changes versions has loading, too.
	versions []*served // in their order
	reason   string    // why it could not be loaded, or not anew
	unloaded bool      // a client wants it so
}

// served is a version of a model.
type served struct {
	number   int64
	counters *counters
	files    []namedStamp // that were loaded last, or tried: of who loads the entry

	// These belong to the mutex of the repository.
	current *model // nil if there is none
	reason  string // why it could not be loaded, or not anew
}

// firstVersion is the version of a model that is a file: files that change take the place of each other.
const firstVersion = 1

func (v *served) version() string { return strconv.FormatInt(v.number, 10) }

// States of a model in the index.
const (
	stateReady       = "READY"
	stateUnavailable = "UNAVAILABLE"
)

func (r *repository) add(ctx context.Context, name, source string) error {
	if err := checkName(name); err != nil {
		return files.Name(source, err)
	}
	e, err := r.enter(name, place{path: source})
	if err != nil {
		return err
	}
	return r.reload(ctx, e, true)
}

// enter makes an entry of a new name.
func (r *repository) enter(name string, at place) (*entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, bitcnn.ErrClosed
	}
	if e := r.entries[name]; e != nil {
		return nil, fmt.Errorf("two models are called %s: %s and %s", text.Quote(name), text.Escape(e.place.path),
			text.Escape(at.path))
	}
	e := &entry{name: name, place: at, loading: make(chan struct{}, 1)}
	if !at.folder {
		e.versions = []*served{r.newServed(e, firstVersion)}
	}
	r.entries[name] = e
	return e, nil
}

// retire closes a model that nobody acquires any more, when those who have are done.
func (r *repository) retire(m *model) {
	r.retiring.Go(func() {
		if err := m.retire(); err != nil {
			r.log.Error("model not closed", "model", m.name, "error", err)
		}
	})
}

// acquire returns a version of the model of a name, which the caller has to release. No version is
// the newest that is loaded.
func (r *repository) acquire(name, wanted string) (*model, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, list, err := r.find(name, wanted)
	if err != nil {
		return nil, err
	}
	for _, v := range slices.Backward(list) {
		if v.current != nil {
			v.current.users.Add(1)
			return v.current, nil
		}
	}
	return nil, failf(codes.Unavailable, "the model %s is not loaded: %s", text.Quote(name), e.why(list))
}

// why says why there is no model. The caller holds the mutex of the repository.
func (e *entry) why(list []*served) string {
	if e.unloaded {
		return "it was unloaded"
	}
	reason := e.reason
	for _, v := range slices.Backward(list) {
		reason = cmp.Or(reason, v.reason)
	}
	return cmp.Or(reason, "it has not been loaded yet")
}

// find returns an entry and its versions, or the one that is wanted. The caller holds mu.
func (r *repository) find(name, wanted string) (*entry, []*served, error) {
	e := r.entries[name]
	if e == nil {
		return nil, nil, failf(codes.NotFound, "there is no model %s", text.Quote(name))
	}
	if wanted == "" || len(e.versions) == 0 {
		return e, e.versions, nil
	}
	have := make([]string, len(e.versions))
	for i, v := range e.versions {
		if have[i] = v.version(); have[i] == wanted {
			return e, e.versions[i : i+1], nil
		}
	}
	return nil, nil, failf(codes.NotFound, "the model %s has no version %s, only %s", text.Quote(name), text.Quote(wanted),
		strings.Join(have, ", "))
}

// versions lists those of a model that are loaded.
func (r *repository) versions(name string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := []string{}
	if e := r.entries[name]; e != nil {
		for _, v := range e.versions {
			if v.current != nil {
				list = append(list, v.version())
			}
		}
	}
	return list
}

// loadNamed loads a model anew for a client: one that is known, or what is in the folder.
func (r *repository) loadNamed(ctx context.Context, name string) error {
	r.mu.RLock()
	e := r.entries[name]
	r.mu.RUnlock()
	if e == nil {
		found, refused, err := r.inFolder()
		if err != nil {
			return err
		}
		if refused[name] != nil {
			return failf(codes.NotFound, "there is no model %s: %w", text.Quote(name), refused[name])
		}
		at, ok := found[name]
		if !ok {
			return failf(codes.NotFound, "no model %s, and no file of it in the folder of models", text.Quote(name))
		}
		if e, err = r.enter(name, at); err != nil {
			return failure{codes.Unavailable, err} // another client does the same
		}
	}
	if err := r.reload(ctx, e, true); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return failure{codes.InvalidArgument, err}
	}
	return nil
}

// unload takes a model out; requests that are in progress are answered. It waits for a load in progress,
// which would bring the model back.
func (r *repository) unload(ctx context.Context, name string) error {
	r.mu.RLock()
	e, _, err := r.find(name, "")
	r.mu.RUnlock()
	if err != nil {
		return err
	}
	select {
	case e.loading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.loading }()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !e.unloaded {
		r.log.InfoContext(ctx, "model unloaded", "model", name)
	}
	for _, v := range e.versions {
		r.replace(e, v, nil)
		v.reason = ""
	}
	r.weigh(e)
	e.unloaded, e.reason = true, ""
	return nil
}

// list returns all entries by name.
func (r *repository) list() []*entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []*entry
	for _, name := range slices.Sorted(maps.Keys(r.entries)) {
		list = append(list, r.entries[name])
	}
	return list
}

// indexed is an entry as the index shows it.
type indexed struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
}

// index lists the models; those that are ready alone if so wanted.
func (r *repository) index(ready bool) []indexed {
	list := []indexed{}
	for _, e := range r.list() {
		r.mu.RLock()
		for _, i := range e.indexed() {
			if !ready || i.State == stateReady {
				list = append(list, i)
			}
		}
		r.mu.RUnlock()
	}
	if ready {
		return list
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(r.refused)) {
		list = append(list, indexed{text.Escape(name), "", stateUnavailable, r.refused[name].Error()})
	}
	return list
}

// indexed lists the versions of an entry. The caller holds the mutex of the repository.
func (e *entry) indexed() []indexed {
	var list []indexed
	for _, v := range e.versions {
		i := indexed{e.name, v.version(), stateReady, cmp.Or(v.reason, e.reason)}
		if v.current == nil {
			i.State, i.Reason = stateUnavailable, e.why([]*served{v})
		}
		list = append(list, i)
	}
	if len(list) == 0 {
		list = []indexed{{e.name, "", stateUnavailable, e.why(nil)}}
	}
	if e.unloaded {
		for i := range list {
			list[i].Reason = "unloaded"
		}
	}
	return list
}

// ready reports whether a model is loaded, or clients have unloaded all of them.
func (r *repository) ready() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	unloaded := len(r.entries) > 0
	for _, e := range r.entries {
		for _, v := range e.versions {
			if v.current != nil {
				return true
			}
		}
		unloaded = unloaded && e.unloaded
	}
	return unloaded
}

// tally has the counters of a version.
type tally struct {
	name, version string
	counters      *counters
}

// statistics returns those of a model, or of all.
func (r *repository) statistics(name, wanted string) ([]tally, error) {
	list := r.list()
	r.mu.RLock()
	defer r.mu.RUnlock()
	if name != "" {
		e, _, err := r.find(name, wanted)
		if err != nil {
			return nil, err
		}
		list = []*entry{e}
	}
	var all []tally
	for _, e := range list {
		for _, v := range e.versions {
			if name == "" || wanted == "" || v.version() == wanted {
				all = append(all, tally{e.name, v.version(), v.counters})
			}
		}
	}
	return all, nil
}

// close takes all models out and waits until they are closed.
func (r *repository) close() error {
	r.mu.Lock()
	r.closed = true
	for _, e := range r.entries {
		for _, v := range e.versions {
			r.replace(e, v, nil)
		}
	}
	r.mu.Unlock()
	r.retiring.Wait()
	return nil
}
