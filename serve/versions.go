package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
)

// configName is what Triton calls the file of the settings of a model, in its folder.
const configName = "config.pbtxt"

// place is where a model is: in a file, or in a folder with a folder for each version.
type place struct {
	path   string
	folder bool
}

// dir is the folder that the files are in which the settings name.
func (p place) dir() string {
	if p.folder {
		return p.path
	}
	return filepath.Dir(p.path)
}

// config returns the file that may have the settings of the model.
func (p place) config() string {
	if p.folder {
		return filepath.Join(p.path, configName)
	}
	return strings.TrimSuffix(p.path, filepath.Ext(p.path)) + ".pbtxt"
}

// version returns the folder of a version.
func (p place) version(number int64) string {
	return filepath.Join(p.path, strconv.FormatInt(number, 10))
}

// survey is what was at a place at a look.
type survey struct {
	config   stamp
	versions map[int64][]namedStamp
	others   []string // folders that are no versions
}

// namedStamp is a file of a version.
type namedStamp struct {
	name string
	stamp
}

func sameStamps(a, b []namedStamp) bool {
	return slices.EqualFunc(a, b, func(a, b namedStamp) bool { return a.name == b.name && a.same(b.stamp) })
}

func (s survey) same(other survey) bool {
	if len(s.versions) != len(other.versions) || !s.config.same(other.config) || !slices.Equal(s.others, other.others) {
		return false
	}
	for v, list := range s.versions {
		have, ok := other.versions[v]
		if !ok || !sameStamps(list, have) {
			return false
		}
	}
	return true
}

// survey looks at a place. Where a file of a model alone is gone, or that of its weights, nothing is
// there.
func (p place) survey() survey {
	s := survey{versions: map[int64][]namedStamp{}}
	if !p.folder {
		st := stampOf(p.path)
		if st.file == nil {
			return s
		}
		stamps := []namedStamp{{"", st}}
		if weights := weightsOf(p.path); weights != "" {
			w := stampOf(weights)
			if w.file == nil {
				return s
			}
			stamps = append(stamps, namedStamp{filepath.Ext(weights), w})
		}
		s.versions[firstVersion] = stamps
		if st.file.Mode().IsRegular() { // else it may be the name of a model that is inside
			s.config = stampOf(p.config())
		}
		return s
	}
	s.config = stampOf(p.config())
	list, err := os.ReadDir(p.path)
	if err != nil {
		return s
	}
	for _, f := range list {
		if hidden(f.Name()) || !isFolder(p.path, f) {
			continue
		}
		number, err := versionOf(f.Name())
		if err != nil {
			s.others = append(s.others, f.Name())
			continue
		}
		s.versions[number] = stampsIn(p.version(number))
	}
	return s
}

// stampsIn looks at all files of a version: some formats have more than one.
func stampsIn(folder string) []namedStamp {
	list, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	stamps := make([]namedStamp, 0, len(list))
	for _, f := range list {
		stamps = append(stamps, namedStamp{f.Name(), stampOf(filepath.Join(folder, f.Name()))})
	}
	return stamps
}

// hidden says that a name is for others: Kubernetes keeps what it mounts in folders with such names.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// isFolder reports whether an element of a folder is one, or a link to one.
func isFolder(in string, f os.DirEntry) bool {
	if f.Type()&os.ModeSymlink == 0 {
		return f.IsDir()
	}
	info, err := os.Stat(filepath.Join(in, f.Name()))
	return err == nil && info.IsDir()
}

// versionOf reads the name of the folder of a version.
func versionOf(name string) (int64, error) {
	number, err := strconv.ParseInt(name, 10, 64)
	if err != nil || number < 1 || strconv.FormatInt(number, 10) != name {
		return 0, fmt.Errorf("%s is not a version, want a positive whole number", text.Quote(name))
	}
	return number, nil
}

// checkFolder says why a folder is no model.
func checkFolder(folder string) error {
	list, err := os.ReadDir(folder)
	if err != nil {
		return files.Name(folder, err)
	}
	for _, f := range list {
		if _, err := versionOf(f.Name()); err == nil && isFolder(folder, f) {
			return nil
		}
	}
	return files.Name(folder, errors.New("not a model: it has no version folder, such as 1"))
}

// fileOf returns the file of a version: the one that the settings name, or else that which is called
// model.
func (p place) fileOf(number int64, named string) (string, error) {
	if !p.folder {
		return p.path, nil
	}
	dir := p.version(number)
	list, err := os.ReadDir(dir)
	if err != nil {
		return "", files.Name(dir, err)
	}
	want := []string{named}
	if named == "" {
		want = nil
		for _, ext := range extensions {
			want = append(want, "model"+ext)
		}
	}
	for _, name := range want {
		for _, f := range list {
			if f.Name() == name && !f.IsDir() {
				return filepath.Join(dir, name), nil
			}
		}
	}
	return "", files.Name(dir, fmt.Errorf("no file %s in it", strings.Join(want, ", nor ")))
}

// leadsOut reports whether a file is a link to one that is not below its folder.
func leadsOut(file string) bool {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return true
	}
	defer root.Close()
	_, err = root.Stat(filepath.Base(file))
	return err != nil
}

// labelsOf reads the labels in a file below a folder, one a line. No link leads out of the folder, as
// clients are told what is in the file.
func labelsOf(dir, file string) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, files.Name(dir, err)
	}
	defer root.Close()
	content, err := files.ReadTextIn(root, filepath.FromSlash(file), labelsBytes)
	if err != nil {
		return nil, files.Name(dir, err)
	}
	var labels []string
	for l := range strings.Lines(strings.TrimRight(content, "\r\n")) {
		labels = append(labels, strings.TrimRight(l, "\r\n"))
	}
	if len(labels) == 0 {
		return nil, files.Name(filepath.Join(dir, file), errors.New("no labels in it"))
	}
	return labels, nil
}
