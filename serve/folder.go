package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/recognize"
	"github.com/bitcnn/bitcnn/internal/text"
)

// extensions are those of files in the folder of models; of files with the same name the first.
var extensions = []string{".bcnn", ".onnx", ".tflite", ".xml", ".cfg"}

// parted are the formats of which a model is two files, by the extension of the first: that of the
// second, with the weights. Others have files with these extensions, too, so that content decides.
var parted = map[string]struct {
	format  recognize.Format
	weights string
}{
	".xml": {recognize.OpenVINO, ".bin"},
	".cfg": {recognize.Darknet, ".weights"},
}

// weightsOf returns the file with the weights of a model that is two files; "" of others.
func weightsOf(file string) string {
	ext := filepath.Ext(file)
	if p, ok := parted[ext]; ok {
		return strings.TrimSuffix(file, ext) + p.weights
	}
	return ""
}

// isModel reports whether a file with one of the extensions is that of a model. Of two files both are
// there, and the first is what its name says; anything else is for others, or not complete yet.
func isModel(file string) bool {
	weights := weightsOf(file)
	if weights == "" {
		return true // rubbish, too: the index says what it is
	}
	if info, err := os.Stat(weights); err != nil || info.IsDir() {
		return false
	}
	format, err := recognize.Path(file)
	return err == nil && format == parted[filepath.Ext(file)].format
}

// inFolder lists what is in the folder of models by the names of models, and what is no model there:
// folders, and what no model can be called after.
func (r *repository) inFolder() (found map[string]place, refused map[string]error, err error) {
	found, refused = map[string]place{}, map[string]error{}
	if r.folder == "" {
		return found, refused, nil
	}
	single, err := modelsIn(r.folder)
	if err != nil {
		return nil, nil, err
	}
	list, err := os.ReadDir(r.folder)
	if err != nil {
		return nil, nil, files.Name(r.folder, err)
	}
	for name, file := range single {
		found[name] = place{path: file}
	}
	for _, f := range list {
		if name := f.Name(); !hidden(name) && isFolder(r.folder, f) {
			folder := filepath.Join(r.folder, name)
			if err := checkFolder(folder); err != nil {
				refused[name] = err
			} else if other, taken := found[name]; taken {
				refused[name] = files.Name(folder, fmt.Errorf("%s is the model of this name", text.Quote(filepath.Base(other.path))))
			} else {
				found[name] = place{folder, true}
			}
		}
	}
	for name, p := range found {
		if err := checkName(name); err != nil {
			delete(found, name)
			refused[name] = files.Name(p.path, err)
		}
	}
	return found, refused, nil
}

// modelsIn lists the files of models in a folder by the names of models.
func modelsIn(folder string) (map[string]string, error) {
	found := map[string]string{}
	list, err := os.ReadDir(folder)
	if err != nil {
		return nil, files.Name(folder, err)
	}
	for _, ext := range extensions {
		for _, file := range list {
			name, ok := strings.CutSuffix(file.Name(), ext)
			path := filepath.Join(folder, file.Name())
			if _, taken := found[name]; ok && name != "" && !taken && !file.IsDir() && isModel(path) {
				found[name] = path
			}
		}
	}
	return found, nil
}

// FindModel returns the file of the one model in a folder, whatever it is called: of those files
// that Options.Folder is about. Programs that store models for a server often say nothing but
// where they have put them. It is an error if there is none, or more than one.
func FindModel(folder string) (string, error) {
	found, err := modelsIn(folder)
	if err != nil {
		return "", err
	}
	list := slices.Sorted(maps.Values(found))
	if len(list) == 1 {
		return list[0], nil
	}
	err = fmt.Errorf("no model found, want exactly one file that ends in %s", wanted)
	switch {
	case len(list) == 0 && checkFolder(folder) == nil:
		err = errors.New("it has versions of a model, not a model: serve the folder that contains it")
	case len(list) > 1:
		err = fmt.Errorf("%d models found, such as %s and %s, want exactly one", len(list),
			text.Quote(filepath.Base(list[0])), text.Quote(filepath.Base(list[1])))
	}
	return "", files.Name(folder, err)
}

// newInFolder makes entries of what is in the folder and has none.
func (r *repository) newInFolder() ([]*entry, error) {
	found, refused, err := r.inFolder()
	r.mu.Lock()
	if err == nil {
		maps.DeleteFunc(found, func(name string, _ place) bool { return r.entries[name] != nil })
		r.refuse(refused)
	}
	r.unreadable(err)
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var list []*entry
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if e, err := r.enter(name, found[name]); err == nil { // else a client was faster
			list = append(list, e)
		}
	}
	return list, nil
}

// refuse keeps what is no model for the index, and logs it once. What has become of a model that is
// loaded is said of that. The caller holds mu.
func (r *repository) refuse(refused map[string]error) {
	maps.DeleteFunc(refused, func(name string, _ error) bool {
		e := r.entries[name]
		return e != nil && e.place.folder
	})
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		if old := r.refused[name]; old == nil || old.Error() != refused[name].Error() {
			r.log.Error("model not loaded", "error", refused[name])
		}
	}
	r.refused = refused
}

// unreadable logs that the folder cannot be read, or can again, when that has changed. The caller
// holds mu.
func (r *repository) unreadable(err error) {
	why := ""
	if err != nil {
		why = err.Error()
	}
	switch {
	case why == r.unread:
	case err != nil:
		r.log.Error("folder of models not read", "error", err)
	default:
		r.log.Info("folder of models is read again", "folder", text.Escape(r.folder))
	}
	r.unread = why
}

func (r *repository) addFolder(ctx context.Context) error {
	list, err := r.newInFolder()
	if err != nil {
		return err
	}
	if r.folder != "" && len(list) == 0 {
		r.log.Warn("there is no model in the folder", "folder", text.Escape(r.folder), "want", folderHelp)
	}
	var errs []error
	for _, e := range list {
		errs = append(errs, r.reload(ctx, e, true))
	}
	return errors.Join(errs...)
}

// wanted says what files of models end in, and folderHelp what a folder of models has.
const (
	wanted     = ".bcnn, .onnx, .tflite, .xml (with .bin beside it) or .cfg (with .weights)"
	folderHelp = "NAME and one of " + wanted + ", or NAME/1/model.onnx"
)

// look loads models anew whose files have changed, and those that are new in the folder. Files must
// have been the same for two looks: they may be copied right now. A model that is gone stays loaded.
func (r *repository) look(ctx context.Context) error {
	_, err := r.newInFolder()
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	for _, e := range r.list() {
		r.mu.RLock()
		unloaded := e.unloaded
		r.mu.RUnlock()
		if !unloaded && e.changed() {
			errs = append(errs, r.reload(ctx, e, false))
		}
	}
	return errors.Join(errs...)
}

// changed looks at the files of an entry.
func (e *entry) changed() bool {
	select {
	case e.loading <- struct{}{}:
	default:
		return false // it is being loaded
	}
	defer func() { <-e.loading }()
	now := e.place.survey()
	settled := now.same(e.seen)
	e.seen = now
	return settled && len(now.versions) > 0 && !now.same(e.loaded)
}

// stamp says whether a file has changed.
type stamp struct {
	modified time.Time
	size     int64
	file     os.FileInfo // nil if there is no file
}

// stampOf looks at a file; what is none, or not there, has no stamp.
func stampOf(source string) stamp {
	info, err := os.Stat(source)
	if err != nil {
		return stamp{}
	}
	os.SameFile(info, info) // Windows looks it up by its path when it is first compared: now
	return stamp{info.ModTime(), info.Size(), info}
}

// same reports whether two stamps are of the same file in the same state. Another file by the same
// name, as mv makes it, is told apart even where time and size are equal.
func (s stamp) same(other stamp) bool {
	if s.file == nil || other.file == nil {
		return s.file == nil && other.file == nil
	}
	return s.modified.Equal(other.modified) && s.size == other.size && os.SameFile(s.file, other.file)
}

// checkName refuses names that a model cannot be asked for by. Those that are not UTF-8 fit into
// no JSON, no message of gRPC and no metric.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("a model needs a name")
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %s is not UTF-8: a model needs another one", text.Quote(name))
	case name == "stats" || name == "." || name == "..":
		return fmt.Errorf("a model cannot be called %s: /v2/models/%s is something else", text.Quote(name), name)
	}
	return nil
}
