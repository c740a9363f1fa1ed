package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
)

// repository has the models by their names. Names that clients give are looked up, and never a
// part of the name of a file.
type repository struct {
	load    func(ctx context.Context, source string) (*bitcnn.Model, error)
	session bitcnn.Options
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
	name, source string
	counters     *counters

	loading chan struct{} // has an element while somebody loads it
	// stamp is that of the file that was loaded last, or tried; seen that of the last look.
	// Who loads the entry reads and writes them.
	stamp, seen stamp

	// These belong to the mutex of the repository.
	current  *model // nil if there is none
	reason   string // why it could not be loaded, or not anew
	unloaded bool   // a client wants it so
}

// States of a model in the index.
const (
	stateReady       = "READY"
	stateUnavailable = "UNAVAILABLE"
)

func (r *repository) add(ctx context.Context, name, source string) error {
	if err := checkName(name); err != nil {
		return files.Name(source, err)
	}
	e, err := r.enter(name, source)
	if err != nil {
		return err
	}
	return r.reload(ctx, e)
}

// enter makes an entry of a new name.
func (r *repository) enter(name, source string) (*entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, bitcnn.ErrClosed
	}
	if e := r.entries[name]; e != nil {
		return nil, fmt.Errorf("two models are called %s: %s and %s", text.Quote(name), text.Escape(e.source),
			text.Escape(source))
	}
	e := &entry{
		name: name, source: source, counters: newCounters(r.metrics.of(name)), loading: make(chan struct{}, 1),
	}
	r.entries[name] = e
	return e, nil
}

// reload loads the model of an entry, which takes the place of the one that is there at once.
// If it cannot be loaded, that one stays. Where ctx ends, nothing has happened: who looks at the
// files later loads what has changed.
func (r *repository) reload(ctx context.Context, e *entry) error {
	select {
	case e.loading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.loading }()
	now := stampOf(e.source)
	m, err := r.open(ctx, e)
	err = files.Name(e.source, err)
	if err != nil && ctx.Err() != nil {
		r.log.DebugContext(ctx, "load given up", "model", e.name, "error", err)
		return ctx.Err()
	}
	e.stamp, e.seen = now, now
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		e.reason = err.Error()
		e.counters.seen.unloaded.Inc()
		r.log.ErrorContext(ctx, "model not loaded", "model", e.name, "error", err)
		return err
	}
	if r.closed { // nobody can have it
		return cmp.Or(m.session.Close(), bitcnn.ErrClosed)
	}
	r.replace(e, m)
	e.reason, e.unloaded = "", false
	device := m.session.Device()
	r.log.InfoContext(ctx, "model loaded", "model", e.name, "source", e.source, "device", device.ID, "max_batch", m.session.MaxBatch())
	return nil
}

func (r *repository) open(ctx context.Context, e *entry) (*model, error) {
	net, err := r.load(ctx, e.source)
	if err != nil {
		return nil, err
	}
	return openModel(ctx, e.name, net, r.session, e.counters)
}

// replace sets the model of an entry; nil means none. The caller holds mu.
func (r *repository) replace(e *entry, m *model) {
	if old := e.current; old != nil {
		d := old.session.Device()
		r.metrics.models.DeleteLabelValues(e.name, d.ID, d.Name)
		r.retire(old)
	}
	e.counters.seen.holds(m)
	if e.current = m; m != nil {
		d := m.session.Device()
		r.metrics.models.WithLabelValues(e.name, d.ID, d.Name).Set(1)
	}
}

// retire closes a model that nobody acquires any more, when those who have are done.
func (r *repository) retire(m *model) {
	r.retiring.Go(func() {
		if err := m.retire(); err != nil {
			r.log.Error("model not closed", "model", m.name, "error", err)
		}
	})
}

// acquire returns the model of a name, which the caller has to release.
func (r *repository) acquire(name, wanted string) (*model, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, err := r.find(name, wanted)
	if err != nil {
		return nil, err
	}
	if e.current == nil {
		return nil, failf(codes.Unavailable, "the model %s is not loaded: %s", text.Quote(name), e.why())
	}
	e.current.users.Add(1)
	return e.current, nil
}

// why says why there is no model. The caller holds the mutex of the repository.
func (e *entry) why() string {
	if e.unloaded {
		return "it was unloaded"
	}
	return cmp.Or(e.reason, "it has not been loaded yet")
}

// find returns an entry. The caller holds mu.
func (r *repository) find(name, wanted string) (*entry, error) {
	e := r.entries[name]
	if e == nil {
		return nil, failf(codes.NotFound, "there is no model %s", text.Quote(name))
	}
	if wanted != "" && wanted != version {
		return nil, failf(codes.NotFound, "the model %s has no version %s, only %s", text.Quote(name), text.Quote(wanted),
			version)
	}
	return e, nil
}

// loadNamed loads a model anew for a client: one that is known, or a file of the folder.
func (r *repository) loadNamed(ctx context.Context, name string) error {
	r.mu.RLock()
	e := r.entries[name]
	r.mu.RUnlock()
	if e == nil {
		found, err := r.inFolder()
		if err != nil {
			return err
		}
		source, ok := found[name]
		if !ok || checkName(name) != nil {
			return failf(codes.NotFound, "there is no model %s, nor a file of it in the folder of models", text.Quote(name))
		}
		if e, err = r.enter(name, source); err != nil {
			return failure{codes.Unavailable, err} // another client does the same
		}
	}
	if err := r.reload(ctx, e); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return failure{codes.InvalidArgument, err}
	}
	return nil
}

// unload takes a model out; requests that are in progress are answered.
func (r *repository) unload(ctx context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.find(name, "")
	if err != nil {
		return err
	}
	r.replace(e, nil)
	e.unloaded, e.reason = true, ""
	r.log.InfoContext(ctx, "model unloaded", "model", name)
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
		i := indexed{e.name, version, stateReady, e.reason}
		if e.current == nil {
			i.State, i.Reason = stateUnavailable, e.why()
			if e.unloaded {
				i.Reason = "unloaded"
			}
		}
		r.mu.RUnlock()
		if !ready || i.State == stateReady {
			list = append(list, i)
		}
	}
	if ready {
		return list
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(r.refused)) {
		list = append(list, indexed{text.Escape(name), version, stateUnavailable, r.refused[name].Error()})
	}
	return list
}

// ready reports whether a model is loaded, or clients have unloaded all of them.
func (r *repository) ready() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	unloaded := len(r.entries) > 0
	for _, e := range r.entries {
		if e.current != nil {
			return true
		}
		unloaded = unloaded && e.unloaded
	}
	return unloaded
}

// statistics returns those of a model, or of all.
func (r *repository) statistics(name, wanted string) ([]*entry, error) {
	if name == "" {
		return r.list(), nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, err := r.find(name, wanted)
	return []*entry{e}, err
}

// close takes all models out and waits until they are closed.
func (r *repository) close() error {
	r.mu.Lock()
	r.closed = true
	for _, e := range r.entries {
		r.replace(e, nil)
	}
	r.mu.Unlock()
	r.retiring.Wait()
	return nil
}
