package serve

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/internal/files"
)

// loading is a version that is loaded, and what came of it.
type loading struct {
	entry    *entry
	served   *served
	settings *settings
	dir      string // of the files that the settings name
	config   string // the file of the settings
	source   string // the file of the model

	model *model
	err   error
}

// reload loads the versions of an entry that its settings choose: all of them, or those whose files
// are other ones than before. They take the place of what is there at once. Versions that are no longer
// chosen stay until all others are there; where one cannot be loaded, the one that was there stays.
// Where ctx ends, nothing has happened: who looks at the files later loads what has changed.
func (r *repository) reload(ctx context.Context, e *entry, all bool) error {
	select {
	case e.loading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.loading }()
	now := e.place.survey()
	set, err := settingsAt(e.place, now)
	var numbers []int64
	if err == nil {
		numbers, err = e.chosen(set, now)
	}
	if err != nil {
		e.loaded, e.seen = now, now
		r.mu.Lock()
		defer r.mu.Unlock()
		e.reason = err.Error()
		r.metrics.of(e.name).unloaded.Inc()
		r.log.ErrorContext(ctx, "model not loaded", "model", e.name, "error", err)
		return err
	}
	for _, name := range now.others {
		_, err := versionOf(name)
		err = files.Name(filepath.Join(e.place.path, name), err)
		r.log.WarnContext(ctx, "folder is not a version of the model", "model", e.name, "error", err)
	}
	list := r.versionsToLoad(e, numbers, now, set, all || !now.config.same(e.loaded.config))
	for i := range list {
		l := &list[i]
		l.model, l.err = r.open(ctx, l)
		if l.err != nil && ctx.Err() != nil {
			r.log.DebugContext(ctx, "load cancelled", "model", e.name, "error", l.err)
			for _, l := range list {
				if l.model != nil {
					_ = l.model.session.Close() // nobody has it
				}
			}
			return ctx.Err()
		}
	}
	e.loaded, e.seen = now, now
	for _, l := range list {
		l.served.files = now.versions[l.served.number]
	}
	return r.put(ctx, e, numbers, list)
}

// chosen returns the versions that settings choose.
func (e *entry) chosen(set *settings, now survey) ([]int64, error) {
	if !e.place.folder {
		return []int64{firstVersion}, nil // there may be no file: a model that is inside has none
	}
	if len(now.versions) == 0 {
		return nil, files.Name(e.place.path, errors.New("no versions are left in it"))
	}
	return chosen(set.VersionPolicy, now), nil
}

// versionsToLoad returns the versions to load of those that are chosen. What is loaded of the files that
// are there stays, unless all are wanted. The caller has the entry.
func (r *repository) versionsToLoad(e *entry, numbers []int64, now survey, set *settings, all bool) []loading {
	var list []loading
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, number := range numbers {
		i := slices.IndexFunc(e.versions, func(v *served) bool { return v.number == number })
		var v *served
		if i >= 0 {
			v = e.versions[i]
		} else {
			v = r.newServed(e, number)
		}
		if all || i < 0 || !sameStamps(v.files, now.versions[number]) {
			list = append(list, loading{entry: e, served: v, settings: set, dir: e.place.dir(), config: e.place.config()})
		}
	}
	return list
}

func (r *repository) newServed(e *entry, number int64) *served {
	return &served{number: number, counters: newCounters(r.metrics.of(e.name))}
}

// open loads a version.
func (r *repository) open(ctx context.Context, l *loading) (m *model, err error) {
	if l.source, err = l.entry.place.fileOf(l.served.number, l.settings.DefaultModelFilename); err != nil {
		return nil, err
	}
	net, err := r.load(ctx, l.source)
	if err != nil {
		return nil, files.Name(l.source, err)
	}
	return openModel(ctx, *l, net, r.session, r.photos)
}

// put makes the versions that have been loaded, or not, those of the entry. The caller has the entry.
func (r *repository) put(ctx context.Context, e *entry, numbers []int64, list []loading) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed { // nobody can have them
		var errs []error
		for _, l := range list {
			if l.model != nil {
				errs = append(errs, l.model.session.Close())
			}
		}
		return cmp.Or(errors.Join(errs...), bitcnn.ErrClosed)
	}
	e.reason = ""
	var errs []error
	for _, l := range list {
		v := l.served
		if !slices.Contains(e.versions, v) {
			e.versions = append(e.versions, v)
		}
		if l.err != nil {
			v.reason = l.err.Error()
			v.counters.seen.unloaded.Inc()
			r.log.ErrorContext(ctx, "model not loaded", "model", e.name, "version", v.version(), "error", l.err)
			errs = append(errs, l.err)
			continue
		}
		r.replace(e, v, l.model)
		v.reason, e.unloaded = "", false
		r.log.InfoContext(ctx, "model loaded", "model", e.name, "version", v.version(), "source", l.source,
			"device", l.model.session.Device().ID, "max_batch", l.model.session.MaxBatch())
	}
	failed := slices.ContainsFunc(e.versions, func(v *served) bool {
		return slices.Contains(numbers, v.number) && v.current == nil
	})
	e.versions = slices.DeleteFunc(e.versions, func(v *served) bool {
		if slices.Contains(numbers, v.number) || failed && v.current != nil {
			return false
		}
		if v.current != nil {
			r.log.InfoContext(ctx, "version unloaded", "model", e.name, "version", v.version())
			r.replace(e, v, nil)
		}
		return true
	})
	slices.SortFunc(e.versions, func(a, b *served) int { return cmp.Compare(a.number, b.number) })
	r.weigh(e)
	return errors.Join(errs...)
}

// weigh notes the weights of the versions of an entry that are there. The caller holds mu.
func (r *repository) weigh(e *entry) {
	bytes := int64(0)
	for _, v := range e.versions {
		if v.current != nil {
			bytes += v.current.weights
		}
	}
	r.metrics.of(e.name).weights.Set(float64(bytes))
}

// replace sets the model of a version of an entry; nil means none. The caller holds mu.
func (r *repository) replace(e *entry, v *served, m *model) {
	if old := v.current; old != nil {
		d := old.session.Device()
		r.metrics.models.DeleteLabelValues(e.name, v.version(), d.ID, d.Name)
		r.retire(old)
	}
	if v.current = m; m != nil {
		d := m.session.Device()
		r.metrics.models.WithLabelValues(e.name, v.version(), d.ID, d.Name).Set(1)
		v.counters.seen.loaded.SetToCurrentTime()
	}
}
